"""Forecasts of waits in words: durations as people say them, and sentences made of them."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, TypeGuard

from foretime_estimators.time_units import HOUR_S, MINUTE_S

from foretime_sidecar.wording.clocks import local_time, spoken_clock
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.durations import whole_minutes

if TYPE_CHECKING:  # commands import this before they have asked anything
    from foretime_sidecar.forecast_answer.forecast import BriefForecast, StartBound

# Up to which wait it is said in which steps: nobody plans by the minute a day ahead.
_STEPS_S = ((1800, MINUTE_S), (3 * HOUR_S, 300), (12 * HOUR_S, 900))
_LONGEST_STEP_S = HOUR_S
_OF_THE_CLOCK_S = 900
_SURE = 0.95
_FAR = 6


def spoken_wait(seconds: float, *, up: bool = False) -> str:
    """Say a duration: ``5 min``, ``2 h 15 min``, ``3 d 6 h``; coarser where it is long.

    Parameters
    ----------
    seconds
        From 0 on.
    up
        Round up, as for a bound, which must still hold in the words.
    """
    if seconds < MINUTE_S:
        return "under a minute"
    hours, minutes = divmod(_rounded(seconds, up=up) // MINUTE_S, 60)
    days, hours = divmod(hours, 24) if hours >= 48 else (0, hours)
    parts = ((days, "d"), (hours, "h"), (minutes, "min"))
    return " ".join(f"{count} {unit}" for count, unit in parts if count)


def _rounded(seconds: float, *, up: bool) -> int:
    """Give a duration as it is said; what is under a minute as it is."""
    if seconds < MINUTE_S:
        return int(seconds)
    step = _step(seconds)
    return step * (math.ceil(seconds / step) if up else round(seconds / step))


def needs(processors: int) -> str:
    """Say what a job waits for that only needs its turn and room."""
    return f"waits for {counted(processors, 'processor')}"


def _step(seconds: float) -> int:
    """Give in which steps so long a duration is said."""
    return next((step for most, step in _STEPS_S if seconds <= most), _LONGEST_STEP_S)


def percent(probability: float) -> str:
    """Write a probability; never 0% or 100%, which no forecast is."""
    if probability < 0.01:
        return "under 1%"
    if probability > 0.99:
        return "over 99%"
    return f"{100 * probability:.0f}%"


def compact_wait(seconds: float) -> str:
    """Say a likely wait in as little room as can be: ``40 min``, ``1.5 h``, ``19 h``, ``3.2 d``."""
    if seconds < HOUR_S - MINUTE_S / 2:
        return f"{seconds / MINUTE_S:.0f} min"
    unit, length = ("h", HOUR_S) if seconds < 48 * HOUR_S else ("d", 24 * HOUR_S)
    count = seconds / length
    return f"{count:.1f} {unit}".replace(".0 ", " ") if count < 9.95 else f"{count:.0f} {unit}"


def bounds(forecast: BriefForecast, now: int) -> list[tuple[str, str, str, str]]:
    """Give how sure it is, within how long a job starts, by when, and by when it is done.

    For each bound of a forecast, from when the daemon answered, and rounded alike; those above the
    likely wait are rounded up, so that they still hold. The last is "" where it is not known. None
    without a forecast.
    """
    answered_at = forecast.made_at
    if forecast.state == "pending":  # a job of the queue is forecast as of the last look at it
        answered_at += forecast.snapshot_age_s
    rows, done_by = [], 0
    for level, start in (forecast.start_time or {}).items():
        sure, up = percent(float(level)), float(level) > 0.5
        wait_s = max(start - answered_at, 0)
        by, done = _by(start, answered_at, up=up), ""
        if (end := (forecast.end_time or {}).get(level)) is not None:
            done_by = max(done_by, _done_by(end, start, by, answered_at, up=up))
            done = spoken_clock(done_by, now)
        rows.append((sure, spoken_wait(wait_s, up=up), spoken_clock(by, now), done))
    return rows


def _done_by(end: int, start: int, by: int, since: int, *, up: bool) -> int:
    """Give an end as it is said: not with the start where both are rounded to the same moment."""
    said = _by(end, since, up=up)
    if said <= by and end > start:
        return by + max(_rounded(end - start, up=up), MINUTE_S)
    return said


def done_text(forecast: BriefForecast, now: int) -> str | None:
    """Say when a job will have ended; ``None``: that is not known."""
    if forecast.end_time is None:
        return None
    likely, sure = (
        spoken_clock(_by(forecast.end_time[level], now, up=up), now)
        for level, up in (("0.5", False), ("0.95", True))
    )
    return f"likely by {likely}, 95% sure by {sure}"


def _by(moment: int, since: int, *, up: bool) -> int:
    """Give a moment to come as it is said, rounded as the time until then.

    Three hours ahead and later that is a quarter of an hour of the clock, from half a day on a full
    hour: nobody takes it for more exact than it is, and it stays as time goes by.
    """
    step = _step(max(moment - since, 0))
    if step >= _OF_THE_CLOCK_S:
        offset_s = round((local_time(moment).utcoffset() or timedelta()).total_seconds())
        steps = (moment + offset_s) / step
        return (math.ceil(steps) if up else round(steps)) * step - offset_s
    by = (since + _rounded(max(moment - since, 0), up=up)) // MINUTE_S * MINUTE_S
    return max(by, whole_minutes(moment) * MINUTE_S) if up else by


def headline(forecast: BriefForecast, now: int) -> str:
    """Say in one sentence when a job starts.

    Parameters
    ----------
    forecast
        The daemon's answer.
    now
        Epoch seconds.
    """
    if forecast.state == "running":
        started = forecast.started_at
        if started is None:
            return "It has started."
        ago = spoken_wait(max(now - started, 0))
        done = done_text(forecast, now)
        ends = "" if done is None else f"; done {done}"
        return f"It started at {spoken_clock(started, now)}, {ago} ago{ends}."
    if (times := forecast.times) is None:
        return f"No forecast: {forecast.reason.text}."
    said = {sure: (within, by) for sure, within, by, _ in bounds(forecast, now)}
    (likely, at), (bound, by) = said["50%"], said["95%"]
    at_once = times.starts_now
    if at_once >= _SURE:
        return f"Starts now, {percent(at_once)} sure."
    within = f"95% sure within {bound} (by {by})"
    if at_once >= 0.5:
        return f"Likely starts now ({percent(at_once)}), {within}."
    return f"Likely starts in {likely} ({at}), {within}. Chance to start now: {percent(at_once)}."


# An old look at the queue is worth a word.
OLD_S = 600


def is_of_use(bound: StartBound | None, forecast: BriefForecast) -> TypeGuard[StartBound]:
    """Whether a bound that stands is worth a word: not far beyond the 95% bound as of now."""
    if bound is None:
        return False
    return forecast.wait_s is None or bound.wait_s <= _FAR * max(forecast.wait_s["0.95"], HOUR_S)


def bound_in_short(bound: StartBound, now: int) -> str:
    """Say by when a job should start; "" until it is known how many such bounds hold."""
    if bound.kept_share is None or bound.judged is None:
        return ""
    verb = "should have started" if bound.time < now else "should start"
    return f"{verb} by {spoken_clock(bound.time, now)}"


def bound_text(bound: StartBound, now: int) -> str:
    """Say the same with what it stands on, which promises nothing."""
    if bound.kept_share is None or bound.judged is None:
        return ""
    return (
        f"{bound_in_short(bound, now)}: a bound set when the job was first seen "
        f"({spoken_clock(bound.noted_at, now)}), and no guarantee. In the last {bound.days} days "
        f"{100 * bound.kept_share:.0f}% of {bound.judged:,} such bounds held"
    )


SCHEDULERS = {"slurm": ("Slurm", "squeue --start"), "pbs": ("PBS", "qstat -T")}
"""The name of each scheduler, and the command by which it tells its plan."""


def own_plan_text(forecast: BriefForecast, now: int) -> str:
    """Say when the scheduler itself plans to start a job, and how that compares; "": not told."""
    planned = forecast.scheduler_start_time
    if planned is None:
        return ""
    name, command = SCHEDULERS[forecast.scheduler]
    start = "now" if planned <= now else spoken_clock(planned, now)
    return (
        f"{name}'s own plan: {start} ({command}). It expects every job to use all of its time "
        "limit. So the job often starts sooner than that, or later if jobs with higher priority "
        "come"
    )
