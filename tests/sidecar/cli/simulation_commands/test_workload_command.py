"""``foretime workload``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.cli.options.workload_source import parse_missing_request
from foretime_sidecar.cli.simulation_commands.workload import app
from typer.testing import CliRunner


def run(*arguments: str | Path) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_generated_log_is_converted_and_described_alike(tmp_path: Path) -> None:
    made, copy = tmp_path / "made.swf.gz", tmp_path / "copy.swf"
    assert "generated, not real" in run("generate", "lublin2003", "--jobs", "500", "-o", made)
    run("generate", "lublin2003", "--jobs", "500", "-o", tmp_path / "again.swf.gz")
    assert made.read_bytes() == (tmp_path / "again.swf.gz").read_bytes()
    assert "500 jobs written" in run("convert", made, copy)
    assert copy.read_text().startswith("; Note: generated")
    text = run("describe", copy)
    assert "256 processors" in text
    assert "500 of 500 jobs kept" in text
    document = json.loads(run("describe", copy, "--json"))["logs"][0]
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
    with pytest.raises(InputError, match="there is no such folder; make"):
        run("convert", made, tmp_path / "no" / "x.swf")


def test_logs_stand_side_by_side_where_the_terminal_has_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = [tmp_path / f"{name}.swf" for name in ("one", "two", "three")]
    for seed, log in enumerate(logs):
        run("generate", "lublin2003", "-n", "60", "--seed", str(seed), "-o", log)
    for columns, parts in (("80", 3), ("100", 2), ("300", 1), (None, 1)):
        if columns is None:
            monkeypatch.delenv("COLUMNS")  # what is no terminal gets one table
        else:
            monkeypatch.setenv("COLUMNS", columns)
        lines = run("describe", *logs).splitlines()
        weekends = [line for line in lines if "weekend" in line]
        assert len(weekends) == parts
        assert sum(line.count("of the mean") for line in weekends) == 3
        if columns is not None:
            assert max(len(line) for line in lines) <= int(columns)
    text = run("describe", logs[0])
    assert "hours and days of" in text
    assert "span " in text
    assert " s │" not in text, "times are D-HH:MM:SS"


def test_a_log_of_one_job_is_described_and_drawn(tmp_path: Path) -> None:
    log, picture = tmp_path / "one.swf", tmp_path / "one.svg"
    run("generate", "lublin2003", "-n", "1", "-o", log)
    assert "1 of 1 jobs kept" in run("describe", log, "--plot", picture)
    assert picture.read_text().startswith("<?xml")


def test_a_log_that_has_a_part_twice_is_told_to(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    run("generate", "lublin2003", "--jobs", "10", "-o", log)
    with log.open("a") as file:
        file.write(log.read_text())
    said = "10 jobs have numbers that others have"
    for shown in (run("convert", log, tmp_path / "out.swf"), run("describe", log)):
        assert said in " ".join(shown.split())


def test_missing_request_takes_a_word_or_a_duration() -> None:
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


def like(log: Path, out: Path, *arguments: str | int) -> str:
    return run("generate", "--like", log, "-o", out, *(str(word) for word in arguments))


def test_jobs_are_generated_like_those_of_a_log(tmp_path: Path) -> None:
    log, out = tmp_path / "log.swf", tmp_path / "made.swf"
    run("generate", "lublin2003", "--jobs", "800", "-o", log)
    assert "like the 800 of log" in like(log, out, "-n", 300, "--seed", 4)
    document = json.loads(run("describe", out, "--json"))["logs"][0]
    assert document["jobs"] == 300
    assert document["machine_processors"] == 256
    header = [line for line in out.read_text().splitlines() if line.startswith(";")]
    assert "seed 4, shrinking factor 1" in header[0]
    like(log, tmp_path / "again.swf", "-n", 300, "--seed", 4)
    assert out.read_bytes() == (tmp_path / "again.swf").read_bytes()
    # Without -n as many as the log has; other arrivals, fits and runtimes are other workloads.
    whole = tmp_path / "whole.swf"
    assert "800 jobs written" in like(log, whole)
    texts = {whole.read_text()}
    for words in (
        ("--arrivals", "modulated"),
        ("--fit", "likelihood"),
        ("--fit", "search"),
        ("--fit", "shape"),
        ("--runtimes", "in-bins"),
        ("--shrink", "0.5"),
    ):
        like(log, out, *words)
        texts.add(out.read_text())
    assert len(texts) == 7
    said = like(log, out, "--split-wide", 8)
    assert "wider than 8 processors are split" in said
    assert json.loads(run("describe", out, "--json"))["logs"][0]["size"]["maximum"] == 8


def test_jobs_that_the_model_does_not_know_are_told(tmp_path: Path) -> None:
    log, out = tmp_path / "log.swf", tmp_path / "made.swf"
    run("generate", "lublin2003", "--jobs", "800", "-o", log)
    words = ["generate", "--like", str(log), "--processors", "4", "-o", str(out)]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 0
    assert " jobs dropped: more than 4 processors" in ran.stderr
    assert json.loads(run("describe", out, "--json"))["logs"][0]["size"]["maximum"] <= 4


def test_generate_takes_a_model_or_a_log(tmp_path: Path) -> None:
    log, out = tmp_path / "log.swf", tmp_path / "made.swf"
    run("generate", "pc2", "--jobs", "50", "-o", log)
    for arguments, says in (
        ([], "give a MODEL, or --like LOG, and not both"),
        (["pc2", "--like", log], "give a MODEL, or --like LOG, and not both"),
        (["pc2", "--arrivals", "modulated"], "--arrivals modulated: this is for --like"),
        (["pc2", "--processors", "97"], "pc2 is for a machine of 96"),
        (["pc2", "--shrink", "0"], "factor 0"),
        (["pc2", "--split-wide", "0"], "--split-wide 0"),
        (["--like", log, "--load", "0.5"], "--load 0.5: this is for models"),
        (["--like", log, "--jobs", "0"], "0 jobs"),
        (["--like", log, "--shrink", "0"], "shrinking factor 0"),
        (["--like", tmp_path / "no.swf"], "no such file"),
        (["pc2", "--lenient"], "--lenient says how a log is read, and pc2 reads none"),
        (["pc2", "--format", "pbs"], "--format says how a log is read"),
        (["pc2", "--columns", "xdmod"], "--columns says how a log is read"),
        (["pc2", "--time-zone", "Mars/X"], "--time-zone says how a log is read"),
        (["pc2", "--missing-request", "soon"], "--missing-request says how a log is read"),
    ):
        with pytest.raises(InputError, match=says):
            run("generate", *arguments, "-o", out)
    with pytest.raises(InputError, match="this is the log"):
        like(log, log)
    few = tmp_path / "few.swf"
    run("generate", "pc2", "--jobs", "9", "-o", few)
    with pytest.raises(InputError, match="9 jobs are too few"):
        like(few, out)
    without = tmp_path / "without.swf"
    lines = [line.split() for line in log.read_text().splitlines() if not line.startswith(";")]
    rows = [" ".join([*words[:8], "-1", *words[9:]]) for words in lines]
    without.write_text("; MaxProcs: 96\n" + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match="none of the 50 jobs has a requested time"):
        like(without, out)
    assert "50 jobs written" in like(without, out, "--missing-request", "runtime")


@pytest.mark.parametrize(
    ("model", "jobs"), [("lublin2003", 5_000), ("downey1997", 5_000), ("pc2", 10_000)]
)
def test_each_model_is_generated_shrunk_and_loaded_by_name(
    tmp_path: Path, model: str, jobs: int
) -> None:
    out = tmp_path / "made.swf"
    assert f"{jobs:,} jobs written" in run("generate", model, "-o", out)
    whole = json.loads(run("describe", out, "--json"))["logs"][0]
    run("generate", model, "--shrink", "0.5", "-o", out)
    shrunk = json.loads(run("describe", out, "--json"))["logs"][0]
    assert shrunk["span_s"] == pytest.approx(whole["span_s"] / 2, abs=1)
    run("generate", model, "--load", "0.6", "-o", out)
    loaded = json.loads(run("describe", out, "--json"))["logs"][0]
    assert loaded["offered_load"] == pytest.approx(0.6, rel=0.02)


def test_describe_shows_logs_side_by_side(tmp_path: Path) -> None:
    one, other, picture = tmp_path / "one.swf", tmp_path / "other.swf", tmp_path / "logs.svg"
    run("generate", "lublin2003", "--jobs", "300", "-o", one)
    run("generate", "pc2", "--jobs", "200", "-o", other)
    other.write_text("; Note: uses the EASY scheduler\n" + other.read_text())
    text = run("describe", one, other, "--plot", picture)
    assert picture.read_text().count("time between submissions") == 2
    rows = {
        cells[0]: cells[1:]
        for line in text.splitlines()
        if len(cells := [cell.strip() for cell in line.strip("│┃").split("│")]) == 3
    }
    assert rows["jobs"] == ["300", "200"]
    assert rows["machine"] == ["256 processors", "96 processors"]
    assert rows["scheduler"] == ["–", "uses the EASY scheduler"]
    assert "s (off by" in rows["Weibull by likelihood"][0]
    documents = json.loads(run("describe", one, other, "--json"))["logs"]
    assert [document["name"] for document in documents] == ["one", "other"]
    assert documents[1]["scheduler"] == "uses the EASY scheduler"
    assert set(documents[0]["submissions"]["gap_s"]) >= {"mean", "minimum", "maximum", "p50"}
    with pytest.raises(InputError, match="give one log, not 2"):
        run("describe", one, other, "--processors", "300")


def test_describe_counts_overruns_whether_cut_or_not(tmp_path: Path) -> None:
    log = tmp_path / "log.swf"
    jobs = [(0, 5, 10), (0, 20, 10), (0, 30, 10)]
    log.write_text(
        "; MaxProcs: 4\n"
        + "".join(
            f"{number} {submit} -1 {runtime} 1 -1 -1 1 {asked} {' '.join(['-1'] * 9)}\n"
            for number, (submit, runtime, asked) in enumerate(jobs, 1)
        )
    )
    for words, longest in (([], 10), (["--keep-overruns"], 30)):
        document = json.loads(run("describe", log, "--json", *words))["logs"][0]
        assert document["filters"]["overran"] == 2
        assert document["runtime_s"]["maximum"] == longest
        assert document["submissions"] is None  # all in the same second
    assert "2 (66.67%)" in run("describe", log)


def test_estimates_are_drawn_for_models_and_logs(tmp_path: Path) -> None:
    plain, drawn, log = (tmp_path / name for name in ("plain.swf", "drawn.swf", "log.swf"))
    run("generate", "lublin2003", "-n", "1000", "-o", plain)
    words = ("--estimates", "tsafrir", "--longest-estimate", "2-00:00:00")
    said = run("generate", "lublin2003", "-n", "1000", *words, "-o", drawn)
    assert "Tsafrir, Etsion and Feitelson (2005), at most 172,800 s" in said
    one, other = json.loads(run("describe", plain, drawn, "--json"))["logs"]
    assert other["requested_time_s"]["maximum"] == 172_800
    assert other["requests"] == pytest.approx(35, abs=3)
    assert other["at_limit"] < 0.01
    # No runtime is cut any more at a request that its session would have made too short.
    assert other["runtime_s"]["mean"] >= one["runtime_s"]["mean"]
    assert other["jobs"] == 1_000
    # A log without requests: every job is kept, and none is cut.
    rows = [line.split() for line in plain.read_text().splitlines() if not line.startswith(";")]
    text = "\n".join(" ".join([*words[:8], "-1", *words[9:]]) for words in rows)
    log.write_text(f"; MaxProcs: 256\n{text}\n")
    said = like(log, drawn, "-n", 400, "--estimates", "tsafrir")
    assert "requested times instead by the model of Tsafrir" in said
    made = json.loads(run("describe", drawn, "--json"))["logs"][0]
    assert made["jobs"] == 400
    assert made["accuracy"]["maximum"] <= 1
    for arguments, says in (
        (["--longest-estimate", "4:00:00"], "--longest-estimate is for --estimates"),
        (["--estimates", "tsafrir", "--longest-estimate", "soon"], "--longest-estimate soon"),
        (["--estimates", "tsafrir", "--longest-estimate", "59:00"], "at least an hour"),
    ):
        with pytest.raises(InputError, match=says):
            run("generate", "lublin2003", "-n", "100", *arguments, "-o", drawn)
        with pytest.raises(InputError, match=says):
            like(plain, drawn, *arguments)
