"""What slack would promise the jobs of a queue: by hand, and as laws."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.admission import Dependencies, GroupLimit
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.start_bounds import front_of_queue, start_bounds
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import SlackJobs, SlackSettings
from hypothesis import given
from hypothesis import strategies as st

from tests.sim.engine.forward.test_forward_runs import snapshots

AVERAGE = SlackSettings(average_wait_s=100.0)


def column(*values: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


def queue(**options: Any) -> Snapshot:
    """At 50 a job has four processors until 100; two more wait for them, then three others."""
    running = RunningJobs(column(0), column(4), column(100))
    pending = PendingJobs(
        column(40, 45, 47), column(4, 2, 2), column(50, 70, 70), **options.pop("pending", {})
    )
    return Snapshot(50, 4, running, pending, **options)


def test_a_bound_is_the_planned_start_and_the_slack_of_the_priority() -> None:
    """Planned waits of 60, 105 and 103 s, so that SP is 0.3, 0.525 and 0.515."""
    bounds = start_bounds(queue(), AVERAGE)
    assert bounds.planned_start.tolist() == [100, 150, 150]
    assert bounds.latest_start.tolist() == [100 + 270, 150 + 247, 150 + 248]


def test_priorities_shorten_the_bound() -> None:
    told = SlackJobs(np.array([1.0, 0, 0]), np.array([1.0, 0, -np.inf]), np.array([100.0, 10, 10]))
    bounds = start_bounds(queue(), SlackSettings(), slack_jobs=told)
    assert bounds.latest_start.tolist() == [100 + 70, 150 + 20, None]


def test_the_queues_order_counts() -> None:
    shortest = start_bounds(queue(), AVERAGE, order=Order.LJF)
    assert shortest.planned_start.tolist() == [170, 100, 100]


def test_who_is_not_in_the_queue_yet_is_promised_nothing() -> None:
    later = queue(pending={"eligible_time": column(40, 45, 60)})
    assert start_bounds(later, AVERAGE).latest_start.mask.tolist() == [False, False, True]
    waits = queue(pending={"dependencies": Dependencies.of_rows([(1, 0, 1, 0, 0)])})
    assert start_bounds(waits, AVERAGE).latest_start.mask.tolist() == [False, True, False]
    limited = queue(limits=(GroupLimit(column(0, 1), most_jobs=2),))
    assert start_bounds(limited, AVERAGE).latest_start.mask.tolist() == [True, False, False]


def test_jobs_are_planned_until_they_are_killed() -> None:
    limited = queue(pending={"time_limit": column(500, 70, 70), "scheduled_time": column(5, 5, 5)})
    assert start_bounds(limited, AVERAGE).planned_start.tolist() == [100, 600, 600]


def test_a_snapshot_has_no_past() -> None:
    with pytest.raises(InputError, match="average_wait_s is not given: a snapshot has no past"):
        start_bounds(queue(), SlackSettings())
    with pytest.raises(InputError, match="pending jobs: user_priority has shape"):
        start_bounds(queue(), AVERAGE, slack_jobs=SlackJobs.equal(2))


@given(snapshots(), st.floats(0, 9), st.floats(0, 200), st.data())
def test_the_bounds_can_be_kept(
    snapshot: Snapshot, slack_factor: float, average_wait_s: float, data: st.DataObject
) -> None:
    """By conservative backfilling, which uses no slack, however early jobs end from now on.

    What has ended before the plan is made is no early end, but another plan.
    """
    pending = snapshot.pending
    requested = replace(pending, scheduled_time=None, time_limit=None, plans=None)
    running = replace(snapshot.running, scheduled_time=None, time_limit=None)
    snapshot = replace(snapshot, pending=requested, running=running)
    settings = SlackSettings(slack_factor=slack_factor, average_wait_s=average_wait_s)
    bounds = start_bounds(snapshot, settings)
    longest = np.concatenate([running.requested_time, pending.requested_time])
    shares = data.draw(st.lists(st.integers(0, 10), min_size=len(longest), max_size=len(longest)))
    actual = longest * column(*shares) // 10
    runs_on = snapshot.now - running.start_time + 1
    actual[: len(running)] = np.maximum(actual[: len(running)], runs_on)
    policy = Policy(Order.FCFS, Backfill.CONSERVATIVE)
    starts = forward_runs(snapshot, policy, actual[None, :])[0, len(running) :]
    joined = pending.joins_at() <= snapshot.now
    assert np.array_equal(bounds.latest_start.mask, ~joined)
    assert (starts[joined] <= bounds.planned_start[joined]).all()
    assert (bounds.planned_start <= np.ma.getdata(bounds.latest_start)).all()


@given(snapshots(), st.sampled_from([Order.FCFS, Order.SJF, Order.PRIORITY]), st.integers(1, 8))
def test_the_first_of_a_queue_have_the_same_bounds_without_the_others(
    snapshot: Snapshot, order: Order, most: int
) -> None:
    now = replace(snapshot.pending, dependencies=None, eligible_time=None)
    now = replace(now, submit_time=np.minimum(now.submit_time, snapshot.now))
    snapshot = replace(snapshot, pending=now, limits=())
    whole = start_bounds(snapshot, AVERAGE, order=order)
    front, rows = front_of_queue(snapshot, order, most)
    assert len(front.pending) == len(rows) == min(most, len(now))
    alone = start_bounds(front, AVERAGE, order=order)
    assert alone.planned_start.tolist() == whole.planned_start[rows].tolist()
    assert alone.latest_start.tolist() == whole.latest_start[rows].tolist()
