"""docs/workloads.md: its table is what its own commands print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.cli.workload import app
from typer.testing import CliRunner

LOG = "KTH-SP2-1996-2.1-cln.swf.gz"


def printed(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run ``foretime workload ...`` lines; give what the last prints, without the distributions."""
    monkeypatch.setenv("COLUMNS", "80")  # a table wider than that is printed whole
    output = ""
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["foretime", "workload"]
        result = CliRunner().invoke(app, words[2:])
        assert result.exit_code == 0, result.output
        output = result.output
    return "\n".join(line.rstrip() for line in output.partition("└")[0].splitlines())


@pytest.mark.traces
def test_the_table_is_what_the_commands_print(
    repository: Path,
    trace: Callable[[str], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = (repository / "docs" / "workloads.md").read_text()
    section = page.partition("## Generated against real")[2]
    commands, table = re.findall(r"```\n(.*?)```", section, flags=re.DOTALL)[:2]
    (tmp_path / LOG).symlink_to(trace(LOG))
    monkeypatch.chdir(tmp_path)
    lines = commands.replace("\\\n", " ").splitlines()
    assert printed(lines, monkeypatch) == table.partition("└")[0].rstrip("\n")
