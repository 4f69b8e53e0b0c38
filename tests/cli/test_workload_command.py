"""``foretime workload``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.errors import InputError
from foretime_sidecar.cli.workload import app
from foretime_sidecar.cli.workload_source import parse_missing_request
from typer.testing import CliRunner


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_generate_convert_and_describe(tmp_path: Path) -> None:
    made, copy = tmp_path / "made.swf.gz", tmp_path / "copy.swf"
    assert "generated, not real" in run("generate", "lublin2003", "--jobs", "500", "-o", made)
    run("generate", "lublin2003", "--jobs", "500", "-o", tmp_path / "again.swf.gz")
    assert made.read_bytes() == (tmp_path / "again.swf.gz").read_bytes()
    assert "500 jobs written" in run("convert", made, copy)
    assert copy.read_text().startswith("; Note: generated")
    text = run("describe", copy)
    assert "256 processors" in text
    assert "500 of 500 jobs kept" in text
    document = json.loads(run("describe", copy, "--json"))
    assert document["jobs"] == 500
    # The span is from the first submission here, from midnight where the load was set.
    assert document["offered_load"] == pytest.approx(0.7, rel=0.1)
    assert document["filters"]["jobs_kept"] == 500
    assert document["accuracy"]["p50"] <= document["accuracy"]["p90"] <= 1


def test_errors_reach_the_command_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        run("describe", tmp_path / "no.swf")
    made = tmp_path / "made.swf"
    run("generate", "lublin2003", "--jobs", "10", "-o", made)
    with pytest.raises(InputError, match="header says 256"):
        run("convert", made, tmp_path / "x.swf", "--processors", "7")
    with pytest.raises(InputError, match="can't be written"):
        run("convert", made, tmp_path / "no" / "x.swf")


def test_missing_request_option() -> None:
    assert parse_missing_request("drop") == "drop"
    assert parse_missing_request("runtime") == "runtime"
    assert parse_missing_request("1-00:00:00") == 86_400
    with pytest.raises(InputError, match="--missing-request soon"):
        parse_missing_request("soon")


@pytest.mark.parametrize("name", ["out.pbs", "out", "out.gz", "swf"])
def test_only_swf_is_written(tmp_path: Path, name: str) -> None:
    made, out = tmp_path / "made.SWF", tmp_path / name
    run("generate", "lublin2003", "--jobs", "10", "-o", made)
    with pytest.raises(InputError, match=r"what is written is SWF: end the name in \.swf, \.swf"):
        run("convert", made, out)
    with pytest.raises(InputError, match="what is written is SWF"):
        run("generate", "lublin2003", "--jobs", "10", "-o", out)
    assert not out.exists()
