"""Planned jobs beside observed ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.safety.ab_report import ab_report, compare
from foretime_sidecar.store.store import Store


def jobs(planned: bool, waits: list[int], users: int = 10) -> list[tuple[Any, ...]]:
    return [
        (planned, f"{planned}{number % users}", 1 + number, wait, number % 4 == 0)
        for number, wait in enumerate(waits)
    ]


def test_planned_and_observed_jobs_are_told_apart_in_each_figure() -> None:
    report = compare([*jobs(True, [0, 10, 20, 30]), *jobs(False, [100, -5])], 5)
    assert (report.since, report.large_processors) == (5, 4)
    planned, observed = report.planned, report.observed
    assert (planned.jobs, planned.users, planned.large_jobs) == (4, 4, 1)
    assert (planned.wait_mean_s.value, planned.wait_median_s.value) == (15, 10)
    assert planned.wait_p99_s.value == 30
    assert planned.outliving_percent.value == 25
    assert planned.large_wait_mean_s.value == 30
    assert planned.wait_mean_s.low is None  # too few users
    assert (observed.jobs, observed.wait_mean_s.value, observed.large_jobs) == (2, 50, 0)
    assert observed.large_wait_mean_s.value is None
    assert report.difference.wait_mean_s.value == -35
    assert report.difference.large_wait_mean_s.value is None


def test_no_jobs_at_all() -> None:
    report = compare([], 0)
    assert report.large_processors is None
    assert report.difference.wait_mean_s.value is None
    assert report.planned.jobs == 0


def test_intervals_hold_what_they_should() -> None:
    """Equal groups: the difference's interval holds 0; far apart ones: it does not."""
    waits = [100 + 37 * number % 91 for number in range(200)]
    same = compare([*jobs(True, waits), *jobs(False, waits)], 0).difference.wait_mean_s
    assert same.value == 0
    assert same.low is not None
    assert same.high is not None
    assert same.low < 0 < same.high
    apart = compare([*jobs(True, waits), *jobs(False, [w + 500 for w in waits])], 0)
    assert apart.difference.wait_mean_s.high is not None
    assert apart.difference.wait_mean_s.high < -400
    inside = apart.planned.wait_mean_s
    assert inside.low is not None
    assert inside.high is not None
    assert inside.value is not None
    assert inside.low <= inside.value <= inside.high


_DECIDE = "INSERT INTO job_decisions VALUES (NULL, ?, ?, ?, 'a', 'p', 'q', 1, ?, 3600, ?, ?, 1)"


@pytest.mark.parametrize(
    ("action", "reason", "planned", "observed"),
    [
        ("planned", "-", 1, 0),
        ("observed", "share", 0, 1),
        ("observed", "only-accounts", 0, 1),
        ("observed", "observe", 0, 0),  # before enforce
        ("left", "no-row", 0, 0),
        ("unplanned", "hook", 0, 0),
    ],
)
def test_who_is_in_which_group(
    record: Callable[..., FinishedRecord], action: str, reason: str, planned: int, observed: int
) -> None:
    store, one = Store(":memory:"), record(1)
    store.add_finished([one], Cursor(9))
    key = (one.job.request.job_id, one.job.request.submit_time)
    t_sched = None if action == "left" else 600
    # The first word counts, whatever became of the job later.
    rows = [(1, *key, action, t_sched, reason), (2, *key, "cleared", 3600, "modified")]
    store.write("test", _DECIDE, rows)
    report = ab_report(store, 0)
    assert (report.planned.jobs, report.observed.jobs) == (planned, observed)
    assert ab_report(store, key[1] + 1).planned.jobs == 0
