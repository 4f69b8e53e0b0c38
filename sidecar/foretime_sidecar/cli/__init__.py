"""The `foretime` command: one sub-command a module; errors are one line and an exit code."""

from __future__ import annotations

import os
import sys

from foretime_estimators.errors import ForetimeError

from foretime_sidecar.cli.application import app


def main() -> None:
    """Run the command; an error of ours is one line on stderr and its exit code, no traceback."""
    try:
        app()
    except ForetimeError as error:
        sys.exit(_fail(str(error), error.exit_code))
    except KeyboardInterrupt:
        sys.exit(_fail("interrupted", 130))
    except BrokenPipeError:
        # Whoever read our output has gone (`foretime ... | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except ModuleNotFoundError as error:
        if error.name not in {"lupa", "matplotlib", "pandas"}:
            raise
        sys.exit(_fail(f"this needs {error.name}: install foretime[sim]", 1))


def _fail(message: str, code: int) -> int:
    print(f"foretime: {message}", file=sys.stderr)
    return code
