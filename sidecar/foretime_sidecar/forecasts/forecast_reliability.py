"""How well the forecasts that were served have done.

A bound that a job has waited past is missed at once, not only when the job starts. A job that is
withdrawn, or still waits, tells nothing of the bounds that it has not waited past.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from foretime_estimators.time_units import DAY_S
from foretime_sim.waits.forecaster import LEVELS

from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.store.store import Store

_AT_95 = LEVELS.index(0.95)


@dataclass(frozen=True, slots=True)
class DayScores:
    """The forecasts made on one day; as `Reliability`.

    Attributes
    ----------
    day
        Epoch seconds of its beginning (UTC).
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


_DONE = """
SELECT made_at, user, starts_now, likely_wait_s, waited_s, held_from, pinball_s, outcome
FROM served_forecasts WHERE outcome IS NOT NULL AND made_at >= ? AND made_at <= ?
"""
_WAITING = """
SELECT counts_from, wait_s FROM served_forecasts
WHERE outcome IS NULL AND job_id IS NOT NULL AND made_at >= ? AND made_at <= ?
"""


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
    done = store.rows_apart(_DONE, span)
    started = [row for row in done if row[-1] == "started"]
    users = {row[1] for row in started if row[1] is not None}
    if len(users) < smallest_group:
        none = (None,) * len(LEVELS)
        return Reliability(days, 0, 0, LEVELS, none, None, None, None, ())
    # From which level on a bound is not known to be missed.
    passed = [int(row[5]) for row in done if row[-1] != "started"]
    passed += [
        bisect_left(json.loads(wait_s), now - counts_from)
        for counts_from, wait_s in store.rows_apart(_WAITING, span)
    ]
    held = _counts([int(row[5]) for row in started])
    missed_early = len(passed) - _counts(passed)
    within = held / (len(started) + missed_early)
    by_day: dict[int, list[tuple[Any, ...]]] = {}
    for row in started:
        by_day.setdefault(row[0] // DAY_S * DAY_S, []).append(row)
    return Reliability(
        days,
        len(started),
        len(users),
        LEVELS,
        tuple(within.tolist()),
        _brier(started),
        _median_error(started),
        float(np.mean([row[6] for row in started])),
        tuple(
            DayScores(
                day,
                len(rows),
                sum(row[5] <= _AT_95 for row in rows) / len(rows),
                _median_error(rows),
                _brier(rows),
            )
            for day, rows in sorted(by_day.items())
            if len({row[1] for row in rows if row[1] is not None}) >= smallest_group
        ),
    )


def _counts(held_from: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Count for each level those that are held from it on or earlier."""
    return np.cumsum(np.bincount(np.array(held_from, np.int64), minlength=len(LEVELS) + 1))[:-1]


def _brier(rows: Sequence[tuple[Any, ...]]) -> float:
    said = np.array([row[2] for row in rows])
    started_now = np.array([row[4] <= NOW_S for row in rows])
    return float(np.mean((said - started_now) ** 2))


def _median_error(rows: Sequence[tuple[Any, ...]]) -> int:
    return round(float(np.median([abs(row[3] - row[4]) for row in rows])))
