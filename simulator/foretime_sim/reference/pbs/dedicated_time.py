"""Dedicated time: spans in which only jobs of dedicated queues run (dedtime.cpp, check.cpp)."""

from __future__ import annotations

from collections.abc import Sequence

Span = tuple[int, int]


def is_dedicated(spans: Sequence[Span], time: int) -> bool:
    """Whether it is dedicated time."""
    found = _next(spans, time)
    return found is not None and found[0] <= time < found[1]


def why_not_started(
    spans: Sequence[Span], queue_is_dedicated: bool, now: int, end: int
) -> str | None:
    """Say why a job that would run until ``end`` can't start now; ``None``: it may."""
    dedicated = is_dedicated(spans, now)
    if dedicated != queue_is_dedicated:
        return "dedicated time" if dedicated else "queue of dedicated time"
    found = _next(spans, now)
    if found is None:
        return None
    begins, ends = found
    over_all = now <= begins and end >= ends
    crosses = end > ends if dedicated else begins < end < ends or over_all
    return "would cross the border of dedicated time" if crosses else None


def _next(spans: Sequence[Span], time: int) -> Span | None:
    return next((span for span in spans if span[1] >= time), None)
