"""Figures as people read them in a terminal: durations, shares, counts and gains."""

from __future__ import annotations

import math

from foretime_sim.scores.metrics import Metric
from rich.text import Text

from foretime_sidecar.wording.durations import format_duration

NOTHING = "–"
"""What stands where a figure is not defined."""


def format_value(value: float | None, metric: Metric) -> str:
    """Write a figure as its unit asks for: D-HH:MM:SS, percent, a count, or a ratio."""
    if value is None or math.isnan(value):
        return NOTHING
    match metric.unit:
        case "s":
            return format_duration(round(value))
        case "share":
            return f"{value:.1%}"
        case "jobs":
            return format_count(value)
        case _:
            return f"{value:,.2f}"


def format_count(value: float) -> str:
    """Write a mean count of jobs: a decimal only where it tells something."""
    return f"{value:,.0f}" if value == round(value) or value >= 100 else f"{value:,.1f}"


def format_gain(gain: float | None) -> str:
    """Write a gain as a signed percentage; positive is better."""
    if gain is None or math.isnan(gain):
        return NOTHING
    return f"{gain:+.1%}" if abs(gain) < 10 else f"{gain:+,.0%}"


def gain_text(gain: float | None, low: float | None = None, high: float | None = None) -> Text:
    """Colour a gain when it is sure (its interval leaves out 0), or where no interval is."""
    style = ""
    if gain is not None and (low is None or high is None or low > 0 or high < 0):
        style = "green" if gain > 0 else "red" if gain < 0 else ""
    return Text(format_gain(gain), style)
