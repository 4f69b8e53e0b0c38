"""``foretime study mira2018``, and its page."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_studies.frame.report import StudyReport
from foretime_studies.frame.tables import fill_page
from typer.testing import CliRunner

runner = CliRunner()


def test_the_page_is_what_the_command_writes(
    bluegene: Callable[[str], Path], repository: Path, tmp_path: Path
) -> None:
    logs = [str(bluegene(f"mira-2018-wk{week}.cobalt.log.gz")) for week in (1, 2, 3, 4)]
    machine = str(bluegene("mira-partitions.xml.gz"))
    command = ["study", "mira2018", *logs, "--machine", machine, "-o", str(tmp_path / "out")]
    ran = runner.invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert "Waits by queue" in ran.output
    document = json.loads((tmp_path / "out" / "results.json").read_text())
    assert document["command"].startswith("foretime study mira2018 mira-2018-wk1.cobalt.log.gz ")
    page = (repository / "docs" / "studies" / "mira2018.md").read_text(encoding="utf-8")
    assert fill_page(page, StudyReport.from_json(document).tables) == page


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "the file is empty"), ("01/18/2018 00:00:00;S;1;qtime=1\n", "no job ended in this log")],
)
def test_a_log_without_jobs_is_refused(
    text: str, message: str, bluegene: Callable[[str], Path], tmp_path: Path
) -> None:
    log = tmp_path / "week.log"
    log.write_text(text)
    machine = str(bluegene("mira-partitions.xml.gz"))
    ran = runner.invoke(app, ["study", "mira2018", str(log), "--machine", machine])
    assert isinstance(ran.exception, InputError)
    assert message in str(ran.exception)
