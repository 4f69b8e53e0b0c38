"""Queue orders and their names."""

from __future__ import annotations

from typing import get_args

from foretime_sim.policies.order import Order, OrderName


def test_every_order_but_that_from_outside_has_its_name_in_the_type() -> None:
    assert {*get_args(OrderName), str(Order.PRIORITY)} == {str(order) for order in Order}
