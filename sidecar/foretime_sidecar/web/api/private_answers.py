"""Answers about waits for whom jobs are hidden: too coarse to tell when whose job ends.

Starts are moved to the next mark of a clock, the coarser the longer the wait is; each clock's marks
are marks of the finer ones, so that bounds stay in order. They hold no less often than before, and
whoever asks again and again learns no more than when a mark is passed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Up to which wait which step, seconds.
STEPS = ((3600, 900), (6 * 3600, 3600), (86_400, 3 * 3600), (7 * 86_400, 43_200))
_LONGEST_STEP_S = 86_400
HIDE_ACCOUNTS = frozenset({"accounts", "usage"})
"""Words of PrivateData with which nothing of an account is told to others."""
_COUNTS = ("running_jobs", "pending_jobs")


def coarse_wait(wait_s: int, made_at: int) -> int:
    """Give the seconds from a moment until the mark after a wait; 0 stays 0."""
    if wait_s <= 0:
        return 0
    step = next((step for up_to, step in STEPS if wait_s <= up_to), _LONGEST_STEP_S)
    return -(-(made_at + wait_s) // step) * step - made_at


def coarse_count(count: int) -> int:
    """Round a number of jobs up: to tens, from a hundred on to hundreds, and so on."""
    step = 10
    while count > 10 * step:
        step *= 10
    return -(-count // step) * step


def coarse_bound(bound: Mapping[str, Any], made_at: int) -> dict[str, Any]:
    """Coarsen ``start_no_later_than``: its time moves on to a mark, and no plan is told."""
    # From the moment on that it was noted, so that it stays the same however often it is told.
    noted_at: int = bound["noted_at"]
    time = noted_at + coarse_wait(bound["time"] - noted_at, noted_at)
    return {**bound, "time": time, "wait_s": max(time - made_at, 0), "planned_start": None}


def coarse_forecast(answer: Mapping[str, Any], why: str) -> dict[str, Any]:
    """Coarsen an answer of `foretime_sidecar.web.api.forecast_answers`; ``why`` is told with it."""
    coarse, made_at = dict(answer), answer["made_at"]
    if answer["likely_wait_s"] is not None:
        coarse["starts_now"] = round(answer["starts_now"] * 4) / 4
        coarse["likely_wait_s"] = coarse_wait(answer["likely_wait_s"], made_at)
        waits = {level: coarse_wait(wait, made_at) for level, wait in answer["wait_s"].items()}
        coarse["wait_s"] = waits
        coarse["start_time"] = {level: made_at + wait for level, wait in waits.items()}
        if "quantiles" in answer:
            # The whole grid would tell the probability of a start now to a hundredth.
            coarse["quantiles"] = [[float(level), wait] for level, wait in waits.items()]
    if (bound := answer["start_no_later_than"]) is not None:
        coarse["start_no_later_than"] = coarse_bound(bound, made_at)
    for name in _COUNTS:
        if name in answer:
            coarse[name] = coarse_count(answer[name])
    if "left_out" in answer:
        coarse["left_out"] = {why: coarse_count(jobs) for why, jobs in answer["left_out"].items()}
    if answer["reason"]["code"] in ("Priority", "Resources"):
        # Else the text says how many jobs go first.
        text = answer["reason"]["text"].partition(";")[0]
        coarse["reason"] = {"code": answer["reason"]["code"], "text": text}
    if "assumptions" in answer:
        said = f"{why}, so starts and numbers of jobs are rounded up"
        coarse["assumptions"] = [*answer["assumptions"], said]
    return coarse


def coarse_grid(rows: Sequence[Sequence[int | None]], made_at: int) -> list[list[int | None]]:
    """Coarsen the waits of a map."""
    return [[None if wait is None else coarse_wait(wait, made_at) for wait in row] for row in rows]
