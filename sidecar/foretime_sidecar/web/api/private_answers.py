"""Answers about waits for whom jobs are hidden: too coarse to tell when whose job ends."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_sidecar.forecast_answer.coarsening import Telling, coarse_wait, coarsened
from foretime_sidecar.forecast_answer.forecast import AnyForecast

HIDE_ACCOUNTS = frozenset({"accounts", "usage"})
"""Words of PrivateData with which nothing of an account is told to others."""


def coarse_forecast(answer: AnyForecast, why: str) -> AnyForecast:
    """Coarsen a forecast as its fields say; ``why`` is told with it."""
    return coarsened(answer, Telling(answer.made_at, why))


def coarse_grid(rows: Sequence[Sequence[int | None]], made_at: int) -> list[list[int | None]]:
    """Coarsen the waits of a map."""
    return [[None if wait is None else coarse_wait(wait, made_at) for wait in row] for row in rows]
