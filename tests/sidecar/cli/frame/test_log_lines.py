"""What the daemon logs of names that somebody else has chosen."""

from __future__ import annotations

import logging

import pytest
from foretime_sidecar.cli.frame.log_lines import LogLines

FORGED = "eve\nERROR all jobs are lost\r\x1b[2J"


def line_of(message: str, *arguments: object, raised: Exception | None = None) -> str:
    told = None if raised is None else (type(raised), raised, raised.__traceback__)
    record = logging.LogRecord("foretime", logging.WARNING, "", 0, message, arguments, told)
    return LogLines().format(record)


def test_a_name_ends_no_line_and_commands_no_terminal() -> None:
    logged = line_of("user %s is left alone", FORGED)
    assert logged == (r"WARNING user eve\nERROR all jobs are lost\x0d\x1b[2J is left alone")


def test_no_line_of_a_traceback_looks_like_a_message() -> None:
    with pytest.raises(ValueError, match="eve") as caught:
        raise ValueError(FORGED)
    first, *rest = line_of("a look failed", raised=caught.value).split("\n")
    assert first == "WARNING a look failed"
    assert any("ERROR all jobs are lost" in line for line in rest)
    assert all(line.startswith("  ") for line in rest)
    assert "\x1b" not in "".join(rest)
