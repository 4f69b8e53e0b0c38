"""How forecasts have done, as the page shows it: laid out from ``/v1/reliability``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from foretime_sidecar.forecasts.forecast_reliability import DayScores
from foretime_sidecar.wording.clocks import spoken_day
from foretime_sidecar.wording.waits import spoken_wait


def reliability(answer: Mapping[str, Any]) -> list[tuple[float, float]]:
    """Give how often bounds held beside how often they should have, in percent; none if unknown."""
    if not answer["scored"]:
        return []
    return [
        (round(100 * level, 1), round(100 * share, 1))
        for level, share in zip(answer["levels"], answer["share_within"], strict=True)
        if share is not None
    ]


def record_numbers(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Give single figures and what each means."""
    held = dict(reliability(answer)).get(95.0)
    found = [
        ("95% bounds that held", None if held is None else f"{held:.1f}%"),
        ("typical error of a likely wait (median)", _wait(answer["median_error_s"])),
        (
            "error of the chance to start now (0 is best, a coin's is 0.25)",
            _number(answer["brier_now"]),
        ),
    ]
    bounds = answer["start_no_later_than"]
    if bounds is not None and bounds["kept_share"] is not None:
        share = f"{100 * bounds['kept_share']:.1f}% of {bounds['judged']:,}"
        found.append(("jobs that started by the bound set at first", share))
    return [(name, value) for name, value in found if value is not None]


def record_days(days: Sequence[DayScores], now: int) -> list[tuple[str, str, str, str]]:
    """Give day, forecasts, share of 95% bounds that held, median error; the latest day first."""
    return [
        (
            spoken_day(day.day, now),
            f"{day.scored:,}",
            f"{100 * day.within_95:.0f}%",
            spoken_wait(day.median_error_s),
        )
        for day in reversed(days)
    ]


def _wait(seconds: float | None) -> str | None:
    return None if seconds is None else spoken_wait(seconds)


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"
