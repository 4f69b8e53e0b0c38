"""Intervals between scheduling passes that a random policy may have."""

from __future__ import annotations

from foretime_sim.policies.policy import EventOrder
from hypothesis import strategies as st


def intervals(
    event_order: EventOrder, *, plans_more: bool = False
) -> st.SearchStrategy[int | None]:
    """Seconds, or none; `plans_more`: whether more than the head job is planned."""
    if event_order is EventOrder.PER_EVENT or plans_more:
        return st.none()
    return st.sampled_from([None, None, 1, 10, 45])
