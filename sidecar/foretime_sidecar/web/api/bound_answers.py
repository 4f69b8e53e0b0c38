"""Start no later than, as the daemon answers it and in words."""

from __future__ import annotations

from typing import Any

from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.store.start_bounds import NotedBound


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
