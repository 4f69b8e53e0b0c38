"""A replay names the users and sizes of jobs that wait longer with Foretime."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_sidecar.replays.worse_off_report import worse_off_lines
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import EstimatedSchedule
from foretime_sim.models.lublin2003 import generate
from foretime_sim.scores.comparison import PairedRun, compare
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

# One after the other, so that any of them may wait as long as it likes.
JOBS = replace(
    generate(1000, processors=64, seed=1),
    submit_time=100_000 * np.arange(1000, dtype=np.int64),
    actual_runtime=np.full(1000, 600, dtype=np.int64),
    requested_time=np.full(1000, 3600, dtype=np.int64),
    users=Labels(np.arange(1000, dtype=np.int32) % 5, ("ann", "bob", "carl", "dora", "erik")),
)
WAIT_S = 36_000


def told(jobs: Workload, factor: Float64Array) -> list[str]:
    """Give the lines, if each job waits `WAIT_S`, and with Foretime times a factor."""

    def run(jobs: Workload, repeat: int) -> PairedRun:
        ran = simulate(jobs)

        def waiting(wait_s: Int64Array) -> EstimatedSchedule:
            start = jobs.submit_time + wait_s
            moved = replace(ran, start_time=start, end_time=start + jobs.actual_runtime)
            return EstimatedSchedule(moved, jobs.requested_time)

        before = np.full(len(jobs), WAIT_S, dtype=np.int64)
        return PairedRun(waiting(before), waiting((before * factor).astype(np.int64)))

    return [str(line) for line in worse_off_lines(compare(jobs, run))]


def test_nobody_is_named_where_nobody_waits_longer() -> None:
    assert told(JOBS, np.full(len(JOBS), 1.04)) == [
        "0 of 5 users with over 50 scored jobs wait over 5% longer on average.",
        "No size of jobs waits over 5% longer on average.",
    ]


def test_the_users_who_wait_longest_are_named_with_both_waits() -> None:
    users = np.array([1.5, 1.1, 1.2, 1.3, 0.0])
    line, *_ = told(JOBS, users[np.arange(1000) % 5])
    assert line == (
        "4 of 5 users with over 50 scored jobs wait over 5% longer on average: ann (10:00:00, now "
        "15:00:00), dora (10:00:00, now 13:00:00), carl (10:00:00, now 12:00:00) and 1 more."
    )


def test_a_size_of_jobs_that_waits_longer_is_named() -> None:
    wide = JOBS.processors > 16
    assert wide.sum() > 50
    lines = told(replace(JOBS, users=None), np.where(wide, 1.5, 0.5))
    told_of = "over 0.25 (10:00:00, now 15:00:00)"
    assert lines == [
        f"Jobs of these shares of the machine wait over 5% longer on average: {told_of}."
    ]
