"""The `foretime` command; errors are one line, with ``--json`` JSON besides, and an exit code.

`application` names every sub-command and its module. They are in `site_commands` and
`simulation_commands`; `options`, `reports` and `frame` are what they are made of.

Public names: `main`, `app`.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from itertools import pairwise

import typer
from foretime_estimators.jobs.errors import ForetimeError

from foretime_sidecar.cli.application import SIMULATION_PACKAGES, app
from foretime_sidecar.cli.frame.printable_text import print_what_can_be_shown
from foretime_sidecar.cli.frame.wrong_use import wrong_use
from foretime_sidecar.cli.options.json_option import error_as_json
from foretime_sidecar.wording.printable import printable


def main() -> None:
    """Run the command; wrong use and our own errors are one line on stderr and an exit code.

    With ``--json`` they are JSON on stdout besides.
    """
    print_what_can_be_shown()
    for before, word in pairwise(sys.argv):
        if not word or (word.startswith("--") and word.endswith("=")):
            after = word.removesuffix("=") or before
            sys.exit(_fail(f"an empty word after {after}; write a value, or leave both out", 2))
    try:
        sys.exit(app(prog_name="foretime", standalone_mode=False))
    except ForetimeError as error:
        sys.exit(_fail(str(error), error.exit_code))
    except typer.TyperException as error:
        sys.exit(_fail(wrong_use(error), 2))
    except BrokenPipeError:
        # Whoever read our output has gone (`foretime ... | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if isinstance(error, PermissionError) and error.filename is not None:
            remedy = "have it opened to you, or name another"
            sys.exit(_fail(f"{error.filename}: {error.strerror}; {remedy}", 2))
        if error.errno not in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(_fail(f"can't write the output: {error.strerror}", 1))
    except ModuleNotFoundError as error:
        if error.name not in SIMULATION_PACKAGES:
            raise
        sys.exit(_fail(f"this needs {error.name}: pip install 'foretime[sim]'", 1))


def _fail(message: str, code: int) -> int:
    if "--json" in sys.argv:
        print(json.dumps(error_as_json(message), indent=2))
    print(printable(f"foretime: {' '.join(message.split())}"), file=sys.stderr)
    return code
