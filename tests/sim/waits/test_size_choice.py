"""The size, and the cluster, of least predicted turnaround."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.distributions.lifetimes import Lifetimes, RunningLives
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey_forecaster import DowneyForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.size_choice import (
    SizeChoice,
    choose_at_head,
    choose_at_submission,
    choose_cluster,
)

SIZES = np.array([2, 4, 8])
DECADES = Lifetimes(np.log([10.0, 10_000.0]), np.array([0.0, 1.0]))


@pytest.mark.parametrize(("work", "best"), [(800.0, 4), (80_000.0, 8)])
def test_short_jobs_take_what_is_free_and_long_ones_wait_for_more(work: float, best: int) -> None:
    """Four of twelve are free, the other eight as likely as not in 900 s."""
    lives = RunningLives([DECADES], np.array([100]))
    choice = choose_at_head(SIZES, work / SIZES, 4, np.array([8]), lives)
    assert choice.wait_s == pytest.approx([0, 0, 900], rel=1e-3)
    place = choice.best
    assert place is not None
    assert choice.processors[place] == best


def test_no_answer_and_equals() -> None:
    none = SizeChoice(SIZES, np.full(3, np.nan), np.ones(3))
    assert none.best is None
    equal = SizeChoice(SIZES[::-1], np.array([np.nan, 1.0, 0.0]), np.array([0.0, 1.0, 2.0]))
    assert equal.best == 2
    assert choose_cluster({"a": none}) is None
    assert choose_cluster({"none": none, "a": equal, "b": equal}) == ("a", 2)
    with pytest.raises(InputError, match="each of at least one size"):
        SizeChoice(SIZES, np.zeros(2), np.zeros(3))


def cluster(processors: int, held: int) -> Moment:
    """One job has run for 100 s and asked for 10,000."""
    now = 1_000_000
    empty = np.zeros(0, dtype=np.int64)
    running = RunningJobs(np.array([now - 100]), np.array([held]), np.array([10_000]))
    snapshot = Snapshot(now, processors, running, PendingJobs(empty, empty, empty))
    job = JobRequest("1", "u", None, held, 10_000, now - 100)
    return Moment(snapshot, Policy(backfill=Backfill.NONE), [job], empty)


def test_a_job_goes_to_the_cluster_where_it_ends_first() -> None:
    """A small idle cluster for the short job; the wide one, after a wait, for the long job."""
    asked = JobRequest("new", "u", None, 1, 1, 0)
    for work, expected in ((800.0, ("small", 4)), (200_000.0, ("wide", 32))):
        sizes = np.array([2, 4, 32])
        runtime = work / sizes
        limit = np.maximum(runtime, 1).astype(np.int64)
        choices = {
            name: choose_at_submission(asked, sizes, runtime, limit, moment, DowneyForecaster())
            for name, moment in {"small": cluster(16, 8), "wide": cluster(32, 31)}.items()
        }
        assert np.isnan(choices["small"].wait_s).tolist() == [False, False, True]
        assert choose_cluster(choices) == expected
