"""``foretime study gaussier2015-beyond``, and its page is what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.gaussier2015_beyond.cases import CASES

Run = Callable[..., tuple[int, str, str]]


def write_log(path: Path, seed: int) -> Path:
    write_swf(log_of_workload(generate(60, processors=16, load=0.95, seed=seed)), path)
    return path


def test_two_logs_are_studied_and_kept(run: Run, tmp_path: Path) -> None:
    logs = [write_log(tmp_path / f"{name}.swf.gz", seed) for seed, name in enumerate("ab", 1)]
    output = tmp_path / "out"
    words = ("study", "gaussier2015-beyond", *logs, "-o", output, "--repeat", "1")
    code, out, err = run(*words, "--processors", "a=20")
    # A busy machine is told every half minute how long it will still take.
    said = [line for line in err.splitlines() if " cells, about " not in line]
    assert (code, said) == (0, [])
    assert "Targets, chosen by waits" in out
    document = json.loads((output / "results.json").read_text())
    assert document["command"].endswith("b.swf.gz --processors a=20 --repeat 1")
    assert (output / "ablation.svg").exists()
    kept = (output / "cells.jsonl").read_text()
    assert kept.count("\n") == 2 * len(CASES)
    code, out, err = run(*words, "--processors", "a=20", "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (output / "cells.jsonl").read_text() == kept


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no.swf",), "there is no such file"),
        (("LOG", "LOG"), "another log is called a"),
        (("LOG", "--processors", "a=0"), "write a log and its size"),
        (("LOG", "--repeat", "0"), "--repeat"),
        (("LOG", "-o", "LOG"), "is a file"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    log = write_log(tmp_path / "a.swf.gz", 1)
    given = [str(log) if word == "LOG" else word for word in words]
    output = () if "-o" in words else ("-o", tmp_path / "out")
    code, out, err = run("study", "gaussier2015-beyond", *given, *output)
    assert (code, out) == (2, "")
    assert says in err
