"""Paths in a folder that one may not enter: refused in one line, wherever they are given."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder into which nobody may look; root, which runs tests, could look into any other."""
    folder = tmp_path / "closed"
    folder.mkdir()
    stat = os.stat

    def refused(path: Any, **how: Any) -> os.stat_result:
        if isinstance(path, str | Path) and folder in Path(path).parents:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", refused)
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "simulate CLOSED/x.swf",
        "workload describe CLOSED/x.swf",
        "simulate LOG --machine CLOSED/x.toml",
        "simulate LOG --csv CLOSED/x.csv",
        "simulate LOG --swf-out CLOSED/below/x.swf",
        "replay LOG --history CLOSED/x.swf",
        "replay LOG --state-dir CLOSED/state",
        "demo CLOSED/x.swf --socket SOCKET",
        "bgp show CLOSED/x.toml",
    ],
)
def test_is_refused_in_one_line(
    closed: Path, log: Path, run: Callable[..., tuple[int, str, str]], command: str
) -> None:
    # A demo's port may be in use on this machine; a socket of the test's own is not.
    socket = str(closed.parent / "socket")
    words = [
        word.replace("CLOSED", str(closed)).replace("SOCKET", socket) for word in command.split()
    ]
    code, out, err = run(*(log if word == "LOG" else word for word in words))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert str(closed) in err
    assert "Permission denied; " in err
