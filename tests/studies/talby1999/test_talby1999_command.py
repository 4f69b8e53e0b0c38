"""``foretime study talby1999``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.talby1999.cases import other_cases

Run = Callable[..., tuple[int, str, str]]


def write_log(path: Path, seed: int = 1) -> Path:
    write_swf(log_of_workload(generate(60, processors=16, load=0.95, seed=seed)), path)
    return path


def test_two_logs_are_studied_and_kept(run: Run, tmp_path: Path) -> None:
    logs = [write_log(tmp_path / f"{name}.swf.gz", seed) for seed, name in enumerate("ab", 1)]
    output = tmp_path / "out"
    words = ("study", "talby1999", *logs, "-o", output, "--repeat", "1", "--processors", "a=20")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "Other logs" in out
    document = json.loads((output / "results.json").read_text())
    command = "foretime study talby1999 a.swf.gz b.swf.gz --processors a=20 --repeat 1"
    assert document["command"] == command
    assert (output / "logs.svg").exists()
    kept = (output / "cells.jsonl").read_text()
    assert kept.count("\n") == 2 * sum(1 + case.repeated for case in other_cases())
    code, out, err = run(*words, "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (output / "cells.jsonl").read_text() == kept


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no.swf",), "there is no such file"),
        (("LOG", "LOG"), "two logs have this name"),
        (("LOG", "--processors", "a=0"), "write a log and its size"),
        (("LOG", "--processors", "a=1"), "has a job of"),
        (("LOG", "--repeat", "-1"), "--repeat"),
        (("LOG", "-o", "LOG"), "is a file"),
        (("TIMELESS",), "does not say when it began"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    log = write_log(tmp_path / "a.swf.gz")
    timeless = tmp_path / "timeless.swf.gz"
    jobs = replace(generate(20, processors=16, load=0.5), unix_start_time=None)
    write_swf(log_of_workload(jobs), timeless)
    paths = {"LOG": str(log), "TIMELESS": str(timeless)}
    given = [paths.get(word, word) for word in words]
    output = () if "-o" in words else ("-o", tmp_path / "out")
    code, out, err = run("study", "talby1999", *given, *output)
    assert (code, out) == (2, "")
    assert says in err
