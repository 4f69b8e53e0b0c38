"""With ``--json`` what is wrong is JSON on stdout, and the usual line on stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

NOBODY = "no foretime daemon answers at unix:{0}/none"
ASK = "is it running (systemctl status foretime)?"


@pytest.mark.parametrize(
    ("command", "code", "what", "remedy"),
    [
        ("wait -n 1 -t 60 --socket {0}/none", 3, NOBODY, ASK),
        ("explain 4711 --socket {0}/none", 3, NOBODY, ASK),
        ("decisions --socket {0}/none", 3, NOBODY, ASK),
        ("estimators --socket {0}/none", 3, NOBODY, ASK),
        ("brought --socket {0}/none", 3, NOBODY, ASK),
        ("report ab --socket {0}/none", 3, NOBODY, ASK),
        ("status --socket {0}/none", 3, NOBODY, ASK),
        (
            "campaign status {0}/none.toml",
            2,
            "{0}/none.toml: can't read the campaign: No such file or directory",
            "name a TOML file",
        ),
        ("replay {0}/none.swf", 2, "{0}/none.swf: there is no such file", ""),
        (
            "explain 4711 --sockt x",
            2,
            "No such option: --sockt (Possible options: --json, --socket)",
            "see --help",
        ),
    ],
)
def test_what_is_wrong_is_json_on_stdout(
    run: Run, tmp_path: Path, command: str, code: int, what: str, remedy: str
) -> None:
    words = command.format(tmp_path).split()
    found, out, err = run(*words, "--json")
    assert found == code
    error = {"what": what.format(tmp_path), "remedy": remedy}
    assert json.loads(out) == {"error": error}
    assert err == f"foretime: {'; '.join(filter(None, error.values()))}\n"
    assert run(*words) == (code, "", err)
