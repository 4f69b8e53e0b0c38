"""Jobs that were planned with t_sched beside those that might have been: what it did to them.

Under an enforce that is for a part of the cluster, some jobs are planned and others of the same
kind only observed. Both groups are of jobs that the table would plan, by the first word on each job
(whatever became of it later), so that they differ in nothing but that. They share one machine: what
helps one group may be taken from the other, and a small share shows its effect on the planned jobs
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array

from foretime_sidecar.store.decisions import ComparedJob, Decisions
from foretime_sidecar.store.store import Store

FEWEST_USERS = 6
"""Users that a group needs for an interval, which is over users: one's jobs are alike."""
RESAMPLES = 1000
_LEVEL = (2.5, 97.5)
_LARGE_QUANTILE = 0.9


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure.

    Attributes
    ----------
    value
        ``None`` with too few jobs.
    low, high
        The interval of 95% in which it lies; ``None`` with too few users.
    """

    value: float | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """One group of jobs, or what one has more than the other.

    Attributes
    ----------
    jobs, users
        How many.
    wait_mean_s, wait_median_s, wait_p99_s
        Of their waits, seconds.
    outliving_percent
        Those that ran longer than t_sched, or would have.
    large_jobs
        Those of at least ``large_processors``.
    large_wait_mean_s
        Mean wait of these, seconds.
    """

    jobs: int
    users: int
    wait_mean_s: Figure
    wait_median_s: Figure
    wait_p99_s: Figure
    outliving_percent: Figure
    large_jobs: int
    large_wait_mean_s: Figure


@dataclass(frozen=True, slots=True)
class AbReport:
    """Both groups, and planned less observed.

    Attributes
    ----------
    since
        Jobs submitted at this time or later, epoch seconds.
    large_processors
        From how many processors on a job is large: the largest tenth of the jobs.
    planned, observed, difference
        The groups, and the means and shares of the first less those of the second.
    """

    since: int
    large_processors: int | None
    planned: Group
    observed: Group
    difference: Group


@dataclass(frozen=True, slots=True)
class _Jobs:
    """Waits of a group, and sums by user: jobs, waits, outliving, large, waits of the large."""

    waits: Float64Array
    sums: Float64Array

    def mean(self, part: int, whole: int) -> float | None:
        total = self.sums[:, whole].sum()
        return float(self.sums[:, part].sum() / total) if total else None

    def resampled(self, part: int, whole: int, draws: Float64Array) -> Float64Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            found: Float64Array = (draws @ self.sums[:, part]) / (draws @ self.sums[:, whole])
        return found


_JOBS, _WAITS, _OUTLIVING, _LARGE, _LARGE_WAITS = range(5)


def ab_report(store: Store, since: int) -> AbReport:
    """Compare the groups.

    Parameters
    ----------
    store
        The sidecar's; used with its lock held.
    since
        Jobs submitted at this time or later count, epoch seconds.
    """
    return compare(Decisions(store).compared_since(since), since)


def compare(rows: Sequence[ComparedJob], since: int) -> AbReport:
    """Compare jobs given as (planned, user, processors, wait in seconds, outlived t_sched)."""
    sizes = sorted(row[2] for row in rows)
    large = sizes[min(int(_LARGE_QUANTILE * len(sizes)), len(sizes) - 1)] if sizes else None
    planned = _jobs([row for row in rows if row[0]], large)
    observed = _jobs([row for row in rows if not row[0]], large)
    random = np.random.default_rng(1)
    draws = [_draws(random, len(group.sums)) for group in (planned, observed)]
    return AbReport(
        since,
        large,
        _group(planned, draws[0]),
        _group(observed, draws[1]),
        _difference(planned, observed, draws),
    )


def _jobs(rows: Sequence[ComparedJob], large: int | None) -> _Jobs:
    users: dict[str | None, int] = {}
    for row in rows:
        users.setdefault(row[1], len(users))
    sums = np.zeros((len(users), 5))
    waits = np.array([max(row[3], 0) for row in rows], dtype=np.float64)
    for row, wait in zip(rows, waits, strict=True):
        is_large = large is not None and row[2] >= large
        sums[users[row[1]]] += (1, wait, bool(row[4]), is_large, wait * is_large)
    return _Jobs(waits, sums)


def _draws(random: np.random.Generator, users: int) -> Float64Array | None:
    """How often each user is in each resample."""
    if users < FEWEST_USERS:
        return None
    return random.multinomial(users, [1 / users] * users, size=RESAMPLES).astype(np.float64)


def _interval(value: float | None, resampled: Float64Array | None) -> Figure:
    if value is None or resampled is None or not np.isfinite(resampled).all():
        return Figure(value)
    low, high = np.percentile(resampled, _LEVEL)
    return Figure(value, float(low), float(high))


def _figure(jobs: _Jobs, draws: Float64Array | None, part: int, whole: int, by: float) -> Figure:
    value = jobs.mean(part, whole)
    resampled = None if draws is None else by * jobs.resampled(part, whole, draws)
    return _interval(None if value is None else by * value, resampled)


def _percentile(jobs: _Jobs, share: float) -> Figure:
    if not len(jobs.waits):
        return Figure(None)
    return Figure(float(np.quantile(jobs.waits, share, method="inverted_cdf")))


def _group(jobs: _Jobs, draws: Float64Array | None) -> Group:
    return Group(
        jobs=len(jobs.waits),
        users=len(jobs.sums),
        wait_mean_s=_figure(jobs, draws, _WAITS, _JOBS, 1),
        wait_median_s=_percentile(jobs, 0.5),
        wait_p99_s=_percentile(jobs, 0.99),
        outliving_percent=_figure(jobs, draws, _OUTLIVING, _JOBS, 100),
        large_jobs=int(jobs.sums[:, _LARGE].sum()),
        large_wait_mean_s=_figure(jobs, draws, _LARGE_WAITS, _LARGE, 1),
    )


def _difference(planned: _Jobs, observed: _Jobs, draws: Sequence[Float64Array | None]) -> Group:
    def less(part: int, whole: int, by: float) -> Figure:
        values = planned.mean(part, whole), observed.mean(part, whole)
        if values[0] is None or values[1] is None:
            return Figure(None)
        resampled = None
        if draws[0] is not None and draws[1] is not None:
            resampled = by * (
                planned.resampled(part, whole, draws[0]) - observed.resampled(part, whole, draws[1])
            )
        return _interval(by * (values[0] - values[1]), resampled)

    def apart(share: float) -> Figure:
        values = _percentile(planned, share).value, _percentile(observed, share).value
        known = values[0] is not None and values[1] is not None
        return Figure((values[0] or 0) - (values[1] or 0)) if known else Figure(None)

    return Group(
        jobs=len(planned.waits) - len(observed.waits),
        users=len(planned.sums) - len(observed.sums),
        wait_mean_s=less(_WAITS, _JOBS, 1),
        wait_median_s=apart(0.5),
        wait_p99_s=apart(0.99),
        outliving_percent=less(_OUTLIVING, _JOBS, 100),
        large_jobs=int(planned.sums[:, _LARGE].sum() - observed.sums[:, _LARGE].sum()),
        large_wait_mean_s=less(_LARGE_WAITS, _LARGE, 1),
    )
