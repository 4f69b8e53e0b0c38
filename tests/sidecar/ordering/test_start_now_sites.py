"""Jobs that start at once beside partitions, tiers, fair share and limits, through the daemon."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sim.scores.comparison import PairedRun

from tests.sidecar.ordering.sites_trial import (
    HOUR_S,
    SITES,
    WEEK_S,
    made_jobs,
    replayed,
    usage_by_week,
)

_PARTED = "three partitions, one of a higher tier"


def _raised(run: PairedRun) -> int:
    assert isinstance(run.statistics, AdjustedStatistics)
    assert run.statistics.ordering is not None
    assert run.statistics.ordering.missed <= run.statistics.ordering.raised / 10
    return run.statistics.ordering.raised


def test_usage_counts_what_ran_in_each_week() -> None:
    workload = made_jobs(60, 10, 1, SITES["one partition"].machine)
    start = workload.submit_time
    shares = usage_by_week(workload, start)
    assert shares.shape == (2, 5)
    assert np.allclose(shares.sum(axis=1), 100)
    assert np.allclose(usage_by_week(workload, start + WEEK_S)[1:], _first_week_on(workload, start))


def _first_week_on(workload: object, start: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return usage_by_week(workload, start)[:1]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["one reservation", _PARTED, "partitions, fair share and limits"])
def test_on_requests_no_head_job_starts_later_than_without(name: str) -> None:
    """Nothing is learned, so who goes first is gone by then whatever happens."""
    site = SITES[name]
    workload = made_jobs(120, 3, 2, site.machine)
    run, heads = replayed(workload, site, learn=False)
    assert heads.planned
    rows = np.array([int(job) - 1 for job in heads.planned])
    later = (run.adjusted.start_time - run.baseline.start_time)[rows]
    assert np.mean(later) < HOUR_S
    _raised(run)
