"""``foretime study gaussier2015-beyond``, and its page is what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.frame.page import page_tables
from foretime_studies.frame.tables import fill_page
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


def test_the_page_is_what_was_found(repository: Path) -> None:
    page = repository / "docs" / "studies" / "gaussier2015-beyond.md"
    text = page.read_text(encoding="utf-8")
    folder = page.with_suffix("")
    assert fill_page(text, page_tables(folder)) == text
    document = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    logs = [word for word in document["command"].split() if word.endswith(".swf.gz")]
    assert len(logs) == 5
    assert all(log in text for log in logs)
