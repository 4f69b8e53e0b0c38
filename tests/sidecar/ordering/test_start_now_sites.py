"""Jobs that start at once beside partitions, tiers, fair share and limits, through the daemon."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics

from tests.sidecar.ordering.sites_trial import (
    HOUR_S,
    SITES,
    WEEK_S,
    later,
    made_jobs,
    replayed,
    usage_by_week,
    usage_moved,
)


def test_usage_counts_what_ran_in_each_week() -> None:
    """Every second job starts at once, the others a week later; none runs for a week."""
    workload = made_jobs(60, 10, 1, SITES["one partition"].machine)
    assert workload.projects is not None
    second = np.arange(60) % 2
    shares = usage_by_week(workload, second * WEEK_S)
    work = workload.processors * workload.actual_runtime
    for week in (0, 1):
        used = np.bincount(workload.projects.codes, work * (second == week), 5)
        assert np.allclose(shares[week], 100 * used / used.sum())


@pytest.mark.parametrize(
    "name", ["fair share of 100,000", "partitions, fair share and limits", "one reservation"]
)
def test_head_jobs_and_accounts_have_what_the_site_gives_them(name: str) -> None:
    """By the week and account within two points, and no more head jobs late than without."""
    site = SITES[name]
    workload = made_jobs(150, 9, 3, site.machine)
    run, heads = replayed(workload, site)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.ordering is not None
    assert statistics.ordering.raised > 0
    assert statistics.ordering.missed <= statistics.ordering.raised / 10
    assert usage_moved(workload, run).max() < 2
    late = [
        int((later(workload, each.start_time, heads) > HOUR_S).sum())
        for each in (run.baseline, run.adjusted)
    ]
    assert len(heads.planned) > 10
    assert late[1] <= late[0] + 1
