"""Start no later than, as the daemon answers it and in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_sidecar.forecasts.latest_starts import KeptBounds, NotedBound
from foretime_sidecar.wording.waits import spoken_clock


def bound_answer(
    bound: NotedBound | None, kept: KeptBounds | None, made_at: int
) -> dict[str, Any] | None:
    """Answer when a waiting job would start no later than.

    Parameters
    ----------
    bound
        What was noted when it was first seen; ``None``: nothing.
    kept
        How such bounds have done.
    made_at
        When the queue was looked at, epoch seconds.
    """
    if bound is None:
        return None
    share = None if kept is None else kept.kept_share
    known: dict[str, float | None] = {"kept_share": None, "judged": None, "days": None}
    if kept is not None and share is not None:
        known = {"kept_share": round(share, 4), "judged": kept.judged, "days": kept.days}
    return {
        "time": bound.latest_start,
        "wait_s": max(bound.latest_start - made_at, 0),
        "planned_start": bound.planned_start,
        "noted_at": bound.noted_at,
        **known,
    }


def bound_text(bound: Mapping[str, Any], now: int) -> str:
    """Put such an answer in words, which promise nothing."""
    by, noted = spoken_clock(bound["time"], now), spoken_clock(bound["noted_at"], now)
    verb = "should have started" if bound["time"] < now else "should start"
    said = f"{verb} by {by}, as things stood when it was first seen ({noted}); no guarantee"
    if bound["kept_share"] is None:
        return f"{said}, and how often that holds here is not known yet"
    return (
        f"{said}: that held for {100 * bound['kept_share']:.0f}% of {bound['judged']:,} jobs in "
        f"{bound['days']} days"
    )
