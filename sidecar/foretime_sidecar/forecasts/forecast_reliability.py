"""How well the forecasts that were served have done.

A bound that a job has waited past is missed at once, not only when the job starts. A job that is
withdrawn, or still waits, tells nothing of the bounds that it has not waited past.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.time_units import DAY_S
from foretime_sim.waits.forecaster import LEVELS

from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.store.served_forecasts import ForecastRows, ScoredForecast
from foretime_sidecar.store.store import Store

_AT_95 = LEVELS.index(0.95)


@dataclass(frozen=True, slots=True)
class DayScores:
    """The forecasts made on one day.

    Attributes
    ----------
    day
        Epoch seconds of its beginning (UTC).
    scored, median_error_s, brier_now
        As in `Reliability`.
    within_95
        Share of waits that did not exceed their 95% bound.
    """

    day: int
    scored: int
    within_95: float
    median_error_s: int
    brier_now: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """How well forecasts have done, over all users.

    Attributes
    ----------
    days
        Those made in so many days up to now.
    scored
        Forecasts whose job has started; the figures are of these, and the shares also of those that
        a job has waited past.
    users
        Whose jobs they were of.
    levels, share_within
        Of each level of forecast the share of waits that did not exceed its bound.
    brier_now
        Mean squared error of the probability of a start within a minute; ``None`` without any.
    median_error_s
        Half of the likely waits were off by no more.
    pinball_s
        Mean pinball loss over all levels, seconds.
    by_day
        Day by day, those with enough users.
    """

    days: int
    scored: int
    users: int
    levels: tuple[float, ...]
    share_within: tuple[float | None, ...]
    brier_now: float | None
    median_error_s: int | None
    pinball_s: float | None
    by_day: tuple[DayScores, ...]


def reliability(store: Store, now: int, days: int, smallest_group: int) -> Reliability:
    """Work out how well the forecasts of the last days have done.

    Reads the store apart from its other users, so no lock is needed.

    Parameters
    ----------
    store
        Where they are kept.
    now
        Epoch seconds.
    days
        How far back.
    smallest_group
        Figures of fewer users are left out.

    Raises
    ------
    StateError
        If the store can't be read.
    """
    span = now - days * DAY_S, now
    kept = ForecastRows(store)
    done = kept.scored(*span)
    started = [row for row in done if row.outcome == "started"]
    users = {row.user for row in started if row.user is not None}
    if len(users) < smallest_group:
        none = (None,) * len(LEVELS)
        return Reliability(days, 0, 0, LEVELS, none, None, None, None, ())
    # From which level on a bound is not known to be missed.
    passed = [row.held_from for row in done if row.outcome != "started"]
    passed += [
        bisect_left(wait_s, now - counts_from) for counts_from, wait_s in kept.waiting(*span)
    ]
    held = _counts([row.held_from for row in started])
    missed_early = len(passed) - _counts(passed)
    within = held / (len(started) + missed_early)
    by_day: dict[int, list[ScoredForecast]] = {}
    for row in started:
        by_day.setdefault(row.made_at // DAY_S * DAY_S, []).append(row)
    return Reliability(
        days,
        len(started),
        len(users),
        LEVELS,
        tuple(within.tolist()),
        _brier(started),
        _median_error(started),
        float(np.mean([row.pinball_s for row in started])),
        tuple(
            DayScores(
                day,
                len(rows),
                sum(row.held_from <= _AT_95 for row in rows) / len(rows),
                _median_error(rows),
                _brier(rows),
            )
            for day, rows in sorted(by_day.items())
            if len({row.user for row in rows if row.user is not None}) >= smallest_group
        ),
    )


def _counts(held_from: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Count for each level those that are held from it on or earlier."""
    return np.cumsum(np.bincount(np.array(held_from, np.int64), minlength=len(LEVELS) + 1))[:-1]


def _brier(rows: Sequence[ScoredForecast]) -> float:
    said = np.array([row.starts_now for row in rows])
    started_now = np.array([row.waited_s <= NOW_S for row in rows])
    return float(np.mean((said - started_now) ** 2))


def _median_error(rows: Sequence[ScoredForecast]) -> int:
    return round(float(np.median([abs(row.likely_wait_s - row.waited_s) for row in rows])))
