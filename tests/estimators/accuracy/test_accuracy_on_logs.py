"""On real logs the production rule still shortens jobs, and what outlives A stays within bounds."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from foretime_estimators.accuracy.accuracy import AccuracySettings, Scheme
from foretime_estimators.estimators.accuracy_estimator import AccuracyEstimator
from foretime_estimators.estimators.testing import predictions
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest


def jobs_of(path: Path) -> list[FinishedJob]:
    """Jobs as logged, by SWF's columns: enough for this test, without the layer above."""
    jobs = []
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        if line.startswith(";"):
            continue
        field = [int(float(text)) for text in line.split()]
        runtime, processors, requested_time = field[3], max(field[4], field[7]), field[8]
        if min(runtime, processors, requested_time) <= 0:
            continue
        ending = {0: Ending.FAILED, 5: Ending.CANCELLED}.get(field[10], Ending.COMPLETED)
        if runtime >= requested_time:
            runtime, ending = requested_time, Ending.TIMED_OUT
        user, project = (str(code) if code >= 0 else None for code in field[11:13])
        request = JobRequest(str(field[0]), user, project, processors, requested_time, field[1])
        start_time = field[1] + max(0, field[2])
        jobs.append(FinishedJob(request, start_time, start_time + runtime, runtime, ending))
    return sorted(jobs, key=lambda job: job.request.submit_time)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "settings", "least_shortened", "most_outlived"),
    [
        ("KTH-SP2-1996-2.1-cln.swf.gz", AccuracySettings.tang2010(), 0.55, 0.25),
        ("KTH-SP2-1996-2.1-cln.swf.gz", AccuracySettings.production(), 0.25, 0.15),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", AccuracySettings.tang2010(), 0.75, 0.25),
        ("SDSC-SP2-1998-4.2-cln.swf.gz", AccuracySettings.production(), 0.33, 0.15),
    ],
)
def test_shares_of_shortened_and_outlived_jobs(
    trace: Callable[[str], Path],
    name: str,
    settings: AccuracySettings,
    least_shortened: float,
    most_outlived: float,
) -> None:
    jobs = jobs_of(trace(name))
    predicted = predictions(AccuracyEstimator(Scheme.COMBINED, settings), jobs)
    pairs = list(zip(jobs, predicted, strict=True))
    shortened = [(job, s) for job, s in pairs if s < job.request.requested_time]
    outlived = sum(job.actual_runtime > scheduled for job, scheduled in shortened)
    assert len(shortened) >= least_shortened * len(jobs)
    assert outlived <= most_outlived * len(shortened)
