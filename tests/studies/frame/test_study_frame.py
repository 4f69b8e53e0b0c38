"""What the frame makes of a study: a command, its words, and a paper's rules and numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import pytest
import typer
from foretime_studies.frame.claims import keeps
from foretime_studies.frame.command import study_command
from foretime_studies.frame.options import Copies, Logs, Workers
from foretime_studies.frame.published import published
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import StudyTable
from typer.testing import CliRunner


@study_command(shown=("shown",))
def made_up(
    folder: Path,
    logs: Logs,
    repeat: Copies = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Soon.")] = False,
    name: Annotated[list[str] | None, typer.Option(help="Several.")] = None,
    workers: Workers = 2,
) -> StudyReport:
    """Study what there is not."""
    tables = [
        StudyTable.of(key, key.title(), [[("folder", folder.name), ("repeat", repeat)]])
        for key in ("shown", "other")
    ]
    return StudyReport("Made up", [f"{len(logs)} logs, {workers} at once"], tables)


@pytest.fixture
def app() -> typer.Typer:
    application = typer.Typer()
    application.command()(made_up)
    return application


def test_a_function_is_a_command(app: typer.Typer, tmp_path: Path) -> None:
    words = ["far/a.swf", "b c.swf", "--repeat", "5", "--quick", "--name", "x", "--name", "y"]
    ran = CliRunner().invoke(app, [*words, "--workers", "7", "-o", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    assert "2 logs, 7 at once" in ran.output
    assert "Shown" in ran.output
    assert "Other" not in ran.output
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert document["study"] == "made-up"
    command = "foretime study made-up a.swf 'b c.swf' --repeat 5 --quick --name x --name y"
    assert document["command"] == command
    assert [table["rows"] for table in document["tables"]] == [[["out", 5]]] * 2
    assert (tmp_path / "out" / "other.csv").read_text() == "folder,repeat\nout,5\n"


def test_what_is_at_its_default_is_not_in_the_command(app: typer.Typer, tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["a.swf", "--repeat", "3", "-o", str(tmp_path), "--json"])
    assert json.loads(ran.output)["command"] == "foretime study made-up a.swf"


@pytest.mark.parametrize(
    ("rule", "kept", "missed"),
    [
        ("> 0", 0.1, 0.0),
        (">= 0", 0.0, -0.1),
        ("< 2", 1.9, 2.0),
        ("<= 2", 2.0, 2.1),
        ("0.1 to 0.2", 0.2, 0.21),
        ("within 0.03", -0.03, -0.04),
    ],
)
def test_rules(rule: str, kept: float, missed: float) -> None:
    assert keeps(kept, rule)
    assert not keeps(missed, rule)


def test_printed_numbers_are_as_in_the_file() -> None:
    table_3 = published("foretime_studies.tang2010", "table3", keys=2)
    assert table_3["fcfs", 0.99] == {
        "wait": 65.5,
        "unitless_wait": 1.18,
        "slowdown": 5.79,
        "backfilled": None,
    }
    assert table_3["wfp", 1.0]["backfilled"] == 1_293
    assert isinstance(table_3["wfp", 1.0]["backfilled"], int)
