"""Intervals between scheduling passes that a random policy may have."""

from __future__ import annotations

from foretime_sim.policies.policy import EventOrder
from hypothesis import strategies as st


def intervals(
    event_order: EventOrder, *, as_planned: bool = False
) -> st.SearchStrategy[int | None]:
    """Seconds, or none; `as_planned`: whether jobs start at the very second planned."""
    if event_order is EventOrder.PER_EVENT or as_planned:
        return st.none()
    return st.sampled_from([None, None, 1, 10, 45])
