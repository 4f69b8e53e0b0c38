"""``foretime study streit2002``, and its page is what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.policies.policy_switching import Quality
from foretime_sim.workloads.job_log import log_of_workload
from foretime_studies.frame.page import page_tables
from foretime_studies.streit2002.sets import KTH, LogSource
from foretime_studies.streit2002.study import (
    DECIDERS,
    SCHEDULERS,
    SJF,
    CaseResult,
    self_tuning,
)

Run = Callable[..., tuple[int, str, str]]
RESULTS = Path("docs/studies/streit2002")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with the name of KTH's."""
    path = tmp_path_factory.mktemp("log") / "KTH-SP2-1996-made.swf.gz"
    write_swf(log_of_workload(generate(120, processors=100, load=0.9)), path)
    return path


def test_sets_are_studied_and_kept(run: Run, small: Path, tmp_path: Path) -> None:
    sizes = ("--jobs", "60", "--seeds", "1", "--further-seeds", "1")
    code, out, err = run("study", "streit2002", small, "-o", tmp_path, *sizes)
    assert (code, err) == (0, "")
    assert "120 of 120 jobs kept" in " ".join(out.split())
    assert "Table 5" in out
    assert "What the paper says, and whether it holds" in out
    document = json.loads((tmp_path / "results.json").read_text())
    assert document["command"].endswith("made.swf.gz --seeds 1 --further-seeds 1 --jobs 60")
    assert (tmp_path / "figure8.svg").exists()
    assert (tmp_path / "table4.csv").exists()
    kept = (tmp_path / "cells.jsonl").read_text()
    again = run("study", "streit2002", small, "-o", tmp_path, *sizes, "--json")
    code, out, err = again
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
def test_bad_input_is_refused_in_one_line(
    run: Run, small: Path, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    given = [str(small) if word == "SMALL" else word for word in words]
    output = () if "-o" in words else ("-o", tmp_path / "here")
    code, out, err = run("study", "streit2002", *given, *output)
    assert (code, out) == (2, "")
    assert says in err
    assert not (tmp_path / "here").exists()


def test_what_is_quick_to_run_again_is_as_written(
    repository: Path, trace: Callable[[str], Path]
) -> None:
    """KTH's sets at a factor of 1.00: figures and two schedulers of the first, SJF on all."""
    log, _ = workload_of_log(
        read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz")), filters=Filters(overruns="keep")
    )
    source = LogSource.of(KTH, log)
    first = source.jobs("independent", 1, 10_000, 1.0)
    tables = {table.key: table for table in page_tables(repository / RESULTS)}
    table3 = {row[0]: row for row in tables["table3"].rows}
    titles = [column.title for column in tables["table3"].columns]
    seed_1 = titles.index("KTH paper") + 1
    assert table3["actual runtime, avg, s"][seed_1] == f"{first.actual_runtime.mean():,.0f}"
    assert (
        table3["interarrival time, avg, s"][seed_1] == f"{np.diff(first.submit_time).mean():,.0f}"
    )
    runs = {row[:3]: row for row in tables["table4"].rows}
    started = {row[:3]: row for row in tables["table4-started"].rows}
    for decider in DECIDERS:
        found = CaseResult.of(first, SCHEDULERS[self_tuning(decider, Quality.ARTWW)])
        key = ("KTH", "ARTwW", str(decider))
        assert runs[key][4] == f"{found.measures.artww_s:,.0f}"
        assert f"{found.measures.loss_of_capacity:.5f}" in runs[key]
        assert found.switched is not None
        assert started[key][4] == f"{found.switched.started['sjf']:,}"
    assert (repository / RESULTS / "intervals.csv").read_text() == tables["intervals"].to_csv()
    points = {row[:4]: row for row in tables["intervals"].rows}
    point = points["KTH", 1.0, "real", SJF]
    every = [
        CaseResult.of(source.jobs("independent", draw, 10_000, 1.0), SCHEDULERS[SJF]).measures
        for draw in range(1, int(point[4] or 0) + 1)
    ]
    assert point[5] == pytest.approx(np.mean([measured.artww_s for measured in every]), rel=1e-12)
