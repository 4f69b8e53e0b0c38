"""``foretime study streit2002``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.job_log import log_of_workload
from foretime_sim.lublin2003 import generate
from foretime_sim.swf import write_swf

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with the name of KTH's."""
    path = tmp_path_factory.mktemp("log") / "KTH-SP2-1996-made.swf.gz"
    write_swf(log_of_workload(generate(120, processors=100, load=0.9)), path)
    return path


def test_sets_are_studied_and_kept(run: Run, small: Path, tmp_path: Path) -> None:
    words = ("study", "streit2002", small, "-o", tmp_path, "--jobs", "60", "--seeds", "1")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "120 of 120 jobs kept" in " ".join(out.split())
    assert "Table 5" in out
    assert "What the paper says, and whether it holds" in out
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["command"].endswith("KTH-SP2-1996-made.swf.gz --seeds 1 --jobs 60")
    assert (tmp_path / "figure8.svg").exists()
    assert (tmp_path / "table4-PC2.csv").exists()
    kept = (tmp_path / "cells.jsonl").read_text()
    code, out, err = run(*words, "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (tmp_path / "cells.jsonl").read_text() == kept


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no.swf",), "no.swf: not a log of this study"),
        (("KTH-SP2-1996-no.swf",), "there is no such file"),
        (("SMALL", "SMALL"), "another log of KTH is given"),
        (("--jobs", "5"), "--jobs"),
        (("--seeds", "0"), "--seeds"),
        (("SMALL", "-o", "SMALL"), "is a file"),
    ],
)
def test_bad_input(
    run: Run, small: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    given = [str(small) if word == "SMALL" else word for word in words]
    output = () if "-o" in words else ("-o", tmp_path / "here")
    code, out, err = run("study", "streit2002", *given, *output)
    assert (code, out) == (2, "")
    assert says in err
    assert not (tmp_path / "here").exists()
