"""The months of a log, as Talby & Feitelson 1999 simulate it, and what the paper prints of them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.logs.swf import write_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from foretime_sim.workloads.site_clock import UTC, site_clock
from foretime_studies.talby1999 import paper
from foretime_studies.talby1999.months import by_months, month_names, read_months

STOCKHOLM = site_clock("Europe/Stockholm")


def seconds(text: str) -> int:
    return int(datetime.datetime.fromisoformat(text).timestamp())


def test_months_begin_at_the_sites_midnight() -> None:
    texts = ["1996-09-30T21:59:59+00:00", "1996-09-30T22:00:00+00:00", "1996-12-31T23:00:00+00:00"]
    times = np.array([seconds(text) for text in texts]) - 1_000
    assert month_names(times, 1_000, STOCKHOLM).tolist() == ["1996-09", "1996-10", "1997-01"]
    assert month_names(times, 1_000, UTC).tolist() == ["1996-09", "1996-09", "1996-12"]


def test_every_job_is_in_its_month_once() -> None:
    jobs = generate(900, processors=64, load=0.4)
    report = workload_of_log(log_of_workload(jobs), filters=Filters(overruns="keep"))[1]
    log = by_months(replace(jobs, unix_start_time=843_480_031), "Europe/Stockholm", report)
    assert len(log.months) > 1
    assert [month.name for month in log.months] == sorted(month.name for month in log.months)
    together = np.concatenate([month.jobs.submit_time for month in log.months])
    assert together.tolist() == jobs.submit_time.tolist()
    for month in log.months:
        assert month.jobs.job_id.tolist() == list(range(len(month.jobs)))
    with pytest.raises(InputError, match="UnixStartTime"):
        by_months(replace(jobs, unix_start_time=None), None, report)


def test_a_machine_too_small_is_refused(tmp_path: Path) -> None:
    jobs = replace(generate(60, processors=64, load=0.4), unix_start_time=843_480_031)
    path = tmp_path / "small.swf.gz"
    write_swf(log_of_workload(jobs), path)
    widest = int(jobs.processors.max())
    assert read_months(path, widest).whole.machine_processors == widest
    with pytest.raises(InputError, match=f"a job of {widest}"):
        read_months(path, widest - 1)


def test_what_is_printed_agrees_with_itself() -> None:
    for name, month in paper.MONTHS.items():
        # A fifth of the jobs at `high`, the others at `low`.
        of_fifths = 0.2 * month["high"] + 0.8 * month["low"]
        assert month["unequal"] == pytest.approx(of_fifths, rel=2e-3), name
    orders = paper.ORDERS
    assert orders["ast"]["equal"] == pytest.approx(paper.YEAR["priority"], abs=0.05)
    for order in orders.values():
        gain = 1 - order["equal"] / paper.YEAR["conservative"]
        assert gain == pytest.approx(order["gain"], abs=1e-3)


def test_the_papers_log(trace: Callable[[str], Path]) -> None:
    """Jobs a month come within 20 of what the paper says of its own, older copy."""
    log = read_months(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    assert log.papers
    counts = [len(month.jobs) for month in log.months]
    assert counts == [92, 2406, 1983, 2306, 2931, 2924, 2081, 2853, 4080, 2702, 2183, 1926]
    assert abs(min(counts[1:]) - paper.FEWEST_JOBS) <= 20
    assert abs(max(counts[1:]) - paper.MOST_JOBS) <= 20
    assert abs(sum(counts) / len(counts) - paper.JOBS_PER_MONTH) <= 20
