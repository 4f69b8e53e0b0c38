"""Every command has a man page, with each of its options."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from foretime_sidecar.cli.application import COMMANDS


@pytest.fixture(scope="module")
def pages(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("man1")
    program = repository / "contrib/packages/man_pages.py"
    subprocess.run([sys.executable, str(program), str(folder)], check=True)
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_there_is_a_page_of_each_command(pages: dict[str, str]) -> None:
    assert pages.keys() == {"foretime.1", *(f"foretime-{name}.1" for name in COMMANDS)}
    for name in COMMANDS:
        assert rf"\fBforetime\-{name}\fR(1)" in pages["foretime.1"]


def test_a_page_has_what_help_says(pages: dict[str, str]) -> None:
    wait = pages["foretime-wait.1"]
    assert ".SH SYNOPSIS\n\\fBforetime wait\\fR [OPTIONS] [JOB]\n" in wait
    assert ".TP\n\\fB\\-n, \\-\\-ntasks N\\fR\nTasks.\n" in wait
    assert "[bold]" not in "".join(pages.values())
    # Commands below a command, and rarely needed options, too.
    assert "\n.SS foretime config check\n" in pages["foretime-config.1"]
    assert r"\-\-event\-order" in pages["foretime-simulate.1"]


def test_no_line_is_taken_for_a_request(pages: dict[str, str]) -> None:
    requests = {"PP", "SH", "SS", "TH", "TP"}
    for text in pages.values():
        assert set(re.findall(r"^[.'](\w*)", text, re.MULTILINE)) <= requests
