"""``foretime study gaussier2015``, and its page is what it wrote."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.families import family_named
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.scores.metrics import bounded_slowdown
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.labels import Labels
from foretime_studies.gaussier2015.study import CLAIRVOYANT_SJBF, EASY, StudySettings

Run = Callable[..., tuple[int, str, str]]


RESULTS = Path("docs/studies/gaussier2015")


def test_what_is_quick_to_run_again_is_as_written(
    repository: Path, trace: Callable[[str], Path]
) -> None:
    """EASY and clairvoyant EASY-SJBF on KTH, and the paper's choice, learned."""
    log = trace("KTH-SP2-1996-2.1-cln.swf.gz")
    workload, _ = workload_of_log(read_log(log), processors=100)
    with (repository / RESULTS / "triples.csv").open() as file:
        written = {tuple(row[:3]): float(row[4]) for row in list(csv.reader(file))[1:]}
    for triple in (EASY, CLAIRVOYANT_SJBF, StudySettings().paper_choice):
        policy = Policy(
            backfill=family_named(triple.backfill),
            correction=Correction.parse(triple.correction or "requested"),
            event_order=EventOrder.PER_EVENT,
        )
        estimator = estimator_of(triple.prediction, workload)
        schedule = simulate_with_estimator(workload, policy, estimator)
        wait = schedule.start_time - workload.submit_time
        found = float(bounded_slowdown(wait, workload.actual_runtime).mean())
        key = (triple.prediction, triple.correction or "", triple.backfill)
        assert found == pytest.approx(written[key], rel=1e-9)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    jobs = generate(120, processors=32, load=0.9)
    object.__setattr__(jobs, "users", Labels(np.arange(120, dtype=np.int32) % 4, tuple("abcd")))
    path = tmp_path_factory.mktemp("log") / "small.swf.gz"
    write_swf(log_of_workload(jobs), path)
    return path


def test_a_log_is_studied_and_kept(run: Run, small: Path, tmp_path: Path) -> None:
    words = ("study", "gaussier2015", small, "-o", tmp_path, "--repeat", "3")
    code, out, err = run(*words, "--processors", "small=40")
    # A busy machine is told every half minute how long it will still take.
    said = [line for line in err.splitlines() if " cells, about " not in line]
    assert (code, said) == (0, [])
    assert "120 of 120 jobs kept" in " ".join(out.split())
    assert "Table 6" in out
    assert "…" not in out
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["command"].endswith("small.swf.gz --processors small=40 --repeat 3")
    assert (tmp_path / "figure5.svg").exists()
    kept = (tmp_path / "cells.jsonl").read_text()
    assert kept.count("\n") == 130 + 3 * 5
    code, out, err = run(*words, "--processors", "small=40", "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (tmp_path / "cells.jsonl").read_text() == kept


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("no.swf",), "there is no such file"),
        (("SMALL", "SMALL"), "another log is called small"),
        (("SMALL", "--processors", "64"), "write a log and its size"),
        (("SMALL", "--processors", "KTH=64"), "none of the logs begins so"),
        (("SMALL", "--processors", "small=0"), "write a log and its size"),
        (("SMALL", "--repeat", "-1"), "--repeat"),
        (("SMALL", "-o", "SMALL"), "is a file"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    run: Run, small: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    given = [str(small) if word == "SMALL" else word for word in words]
    output = () if "-o" in words else ("-o", tmp_path)
    code, out, err = run("study", "gaussier2015", *given, *output)
    assert (code, out) == (2, "")
    assert says in err


def test_a_log_without_requests_is_refused_before_all_runs(
    run: Run, trace: Callable[[str], Path], tmp_path: Path
) -> None:
    log = trace("METACENTRUM-2009-2.swf.gz")
    for size in ((), ("--processors", "METACENTRUM=2000")):
        code, _, err = run("study", "gaussier2015", log, "-o", tmp_path, *size)
        assert code == 2
        assert "none of the 103,656 jobs has a requested time" in err
        assert "--missing-request" not in err, "which these studies have not"
    assert list(tmp_path.iterdir()) == []
