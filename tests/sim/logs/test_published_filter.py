"""The published filter on the real logs: the numbers of jobs that everybody else has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.swf import read_swf

PUBLISHED = [
    ("KTH-SP2-1996-2.1-cln", 100, 28_467, 28_476),
    ("CTC-SP2-1996-3.1-cln", 338, 77_199, 77_222),
    ("SDSC-SP2-1998-4.2-cln", 128, 53_999, 59_715),
    ("SDSC-BLUE-2000-4.2-cln", 1_152, 232_536, 243_306),
    ("CEA-Curie-2011-2.1-cln", 80_640, 295_540, 312_826),
]


@pytest.mark.traces
@pytest.mark.parametrize(("name", "processors", "kept", "read"), PUBLISHED)
def test_keeps_the_published_number_of_jobs(
    trace: Callable[[str], Path], name: str, processors: int, kept: int, read: int
) -> None:
    log = read_swf(trace(f"{name}.swf.gz"))
    workload, report = workload_of_log(log, processors=processors)
    assert (len(workload), len(log)) == (kept, read)
    assert (report.jobs_kept, report.jobs_read) == (kept, read)
    assert sum(jobs for _, jobs in report.dropped) == read - kept
    assert (workload.actual_runtime <= workload.requested_time).all()
    assert (workload.processors <= processors).all()


@pytest.mark.traces
def test_report_says_why_jobs_were_dropped(trace: Callable[[str], Path]) -> None:
    _, report = workload_of_log(read_swf(trace("SDSC-SP2-1998-4.2-cln.swf.gz")))
    assert "5,671 jobs dropped: no runtime" in report.text
