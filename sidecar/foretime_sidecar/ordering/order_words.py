"""dynP's decisions in words."""

from __future__ import annotations

from collections.abc import Mapping

from foretime_sim.policies.policy_switching import Quality

from foretime_sidecar.wording.durations import format_duration

ORDERS = {
    "fcfs": "first come, first served",
    "sjf": "shortest jobs first",
    "ljf": "longest jobs first",
    "xf": "largest expansion factor first",
    "wfp": "WFP",
}
_MEANS = {
    Quality.MAKESPAN: "time until all have ended",
    Quality.ART: "mean response time",
    Quality.ARTWW: "mean response time, weighted by width,",
    Quality.WAIT: "mean wait",
    Quality.WAITWW: "mean wait, weighted by width,",
    Quality.SLOWDOWN: "mean slowdown",
    Quality.SLDWW: "mean slowdown, weighted by width,",
}
_IN_SECONDS = frozenset(_MEANS) - {Quality.SLOWDOWN, Quality.SLDWW}


def said_value(quality: str, value: float | None) -> str:
    """Write a quality's value: a duration, or a number for slowdowns and weighted sums."""
    if value is None:
        return "-"
    kind = Quality.parse_weighted(quality)
    if kind in _IN_SECONDS:
        return format_duration(round(value))
    return f"{value:,.2f}"


def why_chosen(
    order: str,
    instead_of: str | None,
    quality: str,
    qualities: Mapping[str, float | None],
    waiting_jobs: int,
    case: str | None,
) -> str:
    """Say why the queue stands in an order.

    Parameters
    ----------
    order, instead_of
        The order, and the one before; ``None`` if it is where dynP began.
    quality
        As in ``queue_order.quality``.
    qualities
        Of the schedule in each order, by name.
    waiting_jobs
        Jobs that it was decided by.
    case
        Of table 1 (Streit 2002), ``None`` where it does not apply.
    """
    if instead_of is None:
        return "dynP began with it"
    kind = Quality.parse_weighted(quality)
    what = _MEANS[kind] if isinstance(kind, Quality) else f"the sum of {quality}"
    others = ", ".join(
        f"{said_value(quality, value)} in {name.upper()}"
        for name, value in qualities.items()
        if name != order
    )
    found = "" if case is None else f" (case {case} of table 1)"
    return (
        f"{what} of the {waiting_jobs:,} jobs that wait was {said_value(quality, qualities[order])}"
        f" as planned in it, {others}{found}"
    )
