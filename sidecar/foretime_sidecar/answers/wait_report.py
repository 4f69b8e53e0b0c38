"""A forecast as text for a terminal: when, how sure, why it waits, and what starts sooner."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.wording.clocks import short_zone, spoken_clock
from foretime_sidecar.wording.counts import counted
from foretime_sidecar.wording.submit_words import submit_words
from foretime_sidecar.wording.waits import (
    OLD_S,
    SCHEDULERS,
    bound_text,
    bounds,
    headline,
    is_of_use,
    own_plan_text,
    spoken_wait,
)

if TYPE_CHECKING:  # the command imports this before it has asked anything
    from foretime_sidecar.forecast_answer.advice import Advice, Alternative
    from foretime_sidecar.forecast_answer.forecast import Calibration, ForecastAnswer

_LABEL = 9


def wait_report(
    forecast: ForecastAnswer,
    now: int,
    *,
    sooner: Alternative | None = None,
    is_advised: bool = False,
    scales: bool = False,
    begin: int = 0,
    notes: Sequence[str] = (),
    width: int = 80,
) -> str:
    """Put a forecast in lines.

    Parameters
    ----------
    forecast
        The daemon's answer for a job (docs/api.md).
    now
        Epoch seconds.
    sooner
        The change by which it would be done sooner.
    is_advised
        Whether such a change was looked for.
    scales
        Whether other sizes were looked at, too.
    begin
        Before which it does not start, epoch seconds; 0: at any time.
    notes
        What was not looked at.
    width
        Of the terminal.
    """
    lines = textwrap.wrap(headline(forecast, now), width)
    if forecast.times is not None:
        lines += ["", *_bounds(forecast, now), ""]
    said = [("Job", _job(forecast, begin, now))]
    if forecast.state != "running" and forecast.times is not None:
        said.append(("Why", f"{forecast.reason.text}."))
    if (planned := forecast.planned_wait_s) is not None and forecast.state != "running":
        said.append(("Plan", _plan(planned)))
    if own_plan := own_plan_text(forecast, now):
        said.append((SCHEDULERS[forecast.scheduler][0], f"{own_plan}."))
    bound = forecast.start_no_later_than
    if is_of_use(bound, forecast) and (latest := bound_text(bound, now)):
        said.append(("Latest", f"It {latest}."))
    if sooner is not None:
        said.append(("Sooner", _sooner(sooner)))
    elif is_advised and scales:
        said.append(("Sooner", "No other size is surely sooner, nor any other way to run it."))
    elif is_advised and not forecast.starts_soon:
        said.append(("Sooner", "No other way to run it is known that is surely done sooner."))
    said.append(("Queue", _queue(forecast)))
    if (past := forecast.calibration) is not None and past.within_95 is not None:
        said.append(("So far", _calibration(past, past.within_95)))
    if forecast.assumptions:
        said.append(("Assumed", f"{'; '.join(forecast.assumptions)}."))
    said += [("Note", f"{note}.") for note in notes]
    for label, text in said:
        lines += textwrap.wrap(
            text,
            width,
            initial_indent=f"{label:<{_LABEL}}",
            subsequent_indent=" " * _LABEL,
            break_on_hyphens=False,
        )
        if label == "Sooner" and sooner is not None:
            lines.append(f"{'':<{_LABEL}}{sooner.command}")
    return "\n".join(lines)


def _bounds(forecast: ForecastAnswer, now: int) -> list[str]:
    """Give a table: how sure, within how long, by when, and by when it is done."""
    zone = f" ({short_zone(now)})"
    rows: list[tuple[str, ...]] = [("sure", "starts within", f"by{zone}", f"done by{zone}")]
    rows += bounds(forecast, now)
    if not rows[-1][-1]:
        rows = [row[:-1] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def _job(forecast: ForecastAnswer, begin: int, now: int) -> str:
    words = submit_words(forecast.scheduler)
    text = counted(forecast.processors, "processor")
    if forecast.nodes is not None:
        text += f" on {counted(forecast.nodes, 'node')}"
    text += f", {words.limit} {words.duration(forecast.requested_time_s)}"
    if forecast.partition is not None:
        text += f", {words.queue} {forecast.partition}"
    if begin > now:
        text += f", not before {spoken_clock(begin, now)}"
    if forecast.scheduled_time_s < forecast.requested_time_s:
        text += f". Such jobs mostly end within {spoken_wait(forecast.scheduled_time_s, up=True)}"
    return f"{text}."


def _plan(planned_s: int) -> str:
    wait = "now" if planned_s < MINUTE_S else f"in {spoken_wait(planned_s)}"
    return f"starts {wait} if every job uses all of its time limit and no new job comes."


def _sooner(change: Alternative) -> str:
    text = f"{change.text}: likely done {spoken_wait(change.done_sooner_s or 0)} sooner"
    if (sooner_s := change.sooner_s) is not None:
        text += f", started {spoken_wait(abs(sooner_s))} {'later' if sooner_s < 0 else 'sooner'}"
    cost = {"same": "for the same", "less": "for less", "more": "for more"}[change.cost]
    return f"{text}, {cost} processor-time."


def _queue(forecast: ForecastAnswer) -> str:
    age_s = forecast.snapshot_age_s
    text = (
        f"read {spoken_wait(age_s)} ago: {forecast.running_jobs:,} running, "
        f"{forecast.pending_jobs:,} waiting"
    )
    if forecast.left_out:
        left_out = ", ".join(f"{count:,} {why}" for why, count in forecast.left_out.items())
        text += f"; not counted: {left_out}"
    if age_s > OLD_S:
        text += ". That is long ago: the daemon does not reach the scheduler"
    return f"{text}."


def _calibration(past: Calibration, within_95: float) -> str:
    return (
        f"{100 * within_95:.1f}% of {past.forecasts_scored:,} jobs in the last {past.days} days "
        "started within their 95% bound."
    )


def cheapest(advised: Advice, forecast: ForecastAnswer) -> Alternative | None:
    """Give the cheapest change by which a job is done sooner; ``None`` if there is none.

    Parameters
    ----------
    advised
        The daemon's answer of ``/v1/advice`` for the same work.
    forecast
        Of the job itself: one in the queue has a place there that a new one would not have.
    """
    if advised.cheapest is None:
        return None
    found = advised.alternatives[advised.cheapest]
    here, there = forecast.likely_wait_s, found.forecast.likely_wait_s
    done_sooner_s = found.forecast.done_sooner_s(forecast)
    if here is None or there is None or done_sooner_s is None or done_sooner_s < MINUTE_S:
        return None
    if not found.forecast.is_surely_done_no_later(forecast):
        return None
    return found.model_copy(update={"sooner_s": here - there, "done_sooner_s": done_sooner_s})
