"""Start no later than, as the daemon answers it."""

from __future__ import annotations

from foretime_sidecar.forecast_answer.forecast import StartBound
from foretime_sidecar.forecasts.latest_starts import KeptBounds
from foretime_sidecar.store.start_bounds import NotedBound


def bound_answer(
    bound: NotedBound | None, kept: KeptBounds | None, made_at: int
) -> StartBound | None:
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
    known = kept if share is not None else None
    return StartBound(
        time=bound.latest_start,
        wait_s=max(bound.latest_start - made_at, 0),
        planned_start=bound.planned_start,
        noted_at=bound.noted_at,
        kept_share=None if share is None else round(share, 4),
        judged=None if known is None else known.judged,
        days=None if known is None else known.days,
    )
