"""``foretime study graham2021``, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_studies.frame.page import page_tables
from typer.testing import CliRunner

from tests.support.workloads.graham_archives import made_polls, write_archive

runner = CliRunner()


def test_a_small_archive(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "polls.tar.xz", made_polls(days=25, jobs=12))
    folder = tmp_path / "out"
    command = ["study", "graham2021", str(archive), "-o", str(folder), "--workers", "1"]
    ran = runner.invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert "The published test" in ran.output
    document = json.loads((folder / "results.json").read_text())
    assert document["command"] == "foretime study graham2021 polls.tar.xz"
    keys = [table["key"] for table in document["tables"]]
    assert keys == ["published", "days", "online", "bounds", "slices", "ablations", "future"]
    assert (folder / "reliability.svg").exists()
    as_json = runner.invoke(app, [*command, "--json"])
    assert json.loads(as_json.output)["tables"] == document["tables"]


def test_what_is_no_archive(tmp_path: Path) -> None:
    text = tmp_path / "polls.csv"
    text.write_text("poll_time\n")
    ran = runner.invoke(app, ["study", "graham2021", str(text), "-o", str(tmp_path / "out")])
    assert isinstance(ran.exception, InputError)
    assert "is not a whole archive of Graham's polls" in str(ran.exception)


@pytest.mark.parametrize("word", ["41.6%", "59.9%"])
def test_the_published_figures_stand_beside_ours(repository: Path, word: str) -> None:
    folder = repository / "docs" / "studies" / "graham2021"
    published = next(table for table in page_tables(folder) if table.key == "published")
    assert word in published.to_markdown()
