"""docs/workloads.md: its table is what its own commands print."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sidecar.cli.simulation_commands.workload import app
from typer.testing import CliRunner

LOG = "KTH-SP2-1996-2.1-cln.swf.gz"


def printed(commands: list[str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Run ``foretime workload ...`` lines; give what the last prints, without the distributions."""
    monkeypatch.setenv("COLUMNS", "300")  # so that all logs stand side by side
    output = ""
    for command in commands:
        words = shlex.split(command)
        assert words[:2] == ["foretime", "workload"]
        result = CliRunner().invoke(app, words[2:])
        assert result.exit_code == 0, result.output
        output = result.output
    return "\n".join(line.rstrip() for line in output.partition("└")[0].splitlines())


def keys(document: object) -> set[str]:
    """Give every key, at any depth."""
    if isinstance(document, list):
        return {key for entry in document for key in keys(entry)}
    if not isinstance(document, dict):
        return set()
    return set(document) | {key for value in document.values() for key in keys(value)}


def test_every_key_of_the_description_is_explained(repository: Path, tmp_path: Path) -> None:
    log = tmp_path / "made.swf"
    CliRunner().invoke(app, ["generate", "lublin2003", "-n", "50", "-o", str(log)])
    found = keys(json.loads(CliRunner().invoke(app, ["describe", str(log), "--json"]).output))
    page = (repository / "docs" / "workloads.md").read_text()
    section = page.partition("## What `describe` shows")[2].partition("\n## ")[0]
    explained = set(re.findall(r"`(\w+)`", section))
    between = {"p25", "p50", "p75", "p90"}  # "p10 to p99"
    assert found - explained - between - {"logs", "jobs"} == set()
    assert explained - {"describe", "null"} <= found | {"reason"}


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
    lines = commands.splitlines()
    assert printed(lines, monkeypatch) == table.partition("└")[0].rstrip("\n")
