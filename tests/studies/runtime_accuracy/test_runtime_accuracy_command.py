"""``foretime study runtime-accuracy``, and its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.application import app
from foretime_studies.frame.page import page_tables
from typer.testing import CliRunner

runner = CliRunner()


def write_log(path: Path) -> Path:
    lines = ["; MaxProcs: 8"]
    for job in range(1, 61):
        fields = [job, 600 * job, 0, 100 + job % 7, 4, -1, -1, 4, 3_600, -1, 1, job % 3]
        lines.append(" ".join(map(str, [*fields, *[-1] * 6])))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_small_log(tmp_path: Path) -> None:
    log = write_log(tmp_path / "small.swf")
    folder = tmp_path / "out"
    command = ["study", "runtime-accuracy", str(log), "--jobs", "50", "-o", str(folder)]
    command += ["--estimator", "requested", "--estimator", "mixture:0.5"]
    ran = runner.invoke(app, command)
    assert ran.exit_code == 0, ran.output
    assert "mixture:0.5" in ran.output
    document = json.loads((folder / "results.json").read_text())
    assert document["command"] == (
        "foretime study runtime-accuracy small.swf --estimator requested --estimator mixture:0.5"
        " --jobs 50"
    )
    assert [table["key"] for table in document["tables"]] == ["overall", "published", "logs"]
    assert (folder / "logs.csv").exists()
    as_json = runner.invoke(app, [*command, "--json"])
    assert json.loads(as_json.output)["tables"] == document["tables"]


def test_a_wrong_estimator_is_refused_before_logs_are_read(tmp_path: Path) -> None:
    command = ["study", "runtime-accuracy", str(tmp_path / "none.swf"), "--estimator", "mixtre"]
    ran = runner.invoke(app, command)
    assert isinstance(ran.exception, InputError)
    assert "did you mean 'mixture'" in str(ran.exception)


@pytest.mark.parametrize("words", ["80.0%", "80.5%", "24.9%"])
def test_the_published_figures_stand_beside_ours(repository: Path, words: str) -> None:
    folder = repository / "docs" / "studies" / "runtime-accuracy"
    published = next(table for table in page_tables(folder) if table.key == "published")
    assert words in published.to_markdown()
