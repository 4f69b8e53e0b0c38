"""What dynP's decisions are in the log of them (`foretime_sidecar.store.order_switches`)."""

from __future__ import annotations

import math

from foretime_sim.engine.order_tuning import Tuning
from foretime_sim.policies.order import Order

from foretime_sidecar.store.order_switches import OrderSwitch


def qualities_of(tuning: Tuning) -> dict[str, float | None]:
    """Give the qualities that a decision was made by, by order."""
    return {
        order.value: value if math.isfinite(value) else None
        for order, value in zip(tuning.orders, tuning.values, strict=True)
    }


def beginning(now: int, order: Order, quality: str) -> OrderSwitch:
    """Give the line that dynP begins with: an order, and none before it."""
    return OrderSwitch(now, order.value, None, None, 0, {}, quality)


def switch_of(now: int, tuning: Tuning, quality: str) -> OrderSwitch:
    """Give the line of a decision that changes the order."""
    return OrderSwitch(
        now,
        tuning.chosen.value,
        tuning.current.value,
        tuning.case,
        tuning.waiting,
        qualities_of(tuning),
        quality,
    )
