"""Options that choose queue order and backfilling: a built-in one, or the user's own in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.families import FAMILIES
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import parse_order
from foretime_sim.policies.policy_switching import DYNP, Decider, PolicySwitching, is_switched
from foretime_sim.policies.python_policy import PythonOrder

ORDERS = tuple(order.value for order in Order if order is not Order.PRIORITY)
"""The queue orders for logs, which have no priorities."""
BACKFILLS = tuple(FAMILIES)
ORDERS_HELP = f"One of {', '.join(ORDERS)}, or your own in Python, module:attribute"
SWITCHED_ORDERS_HELP = (
    f"One of {', '.join(ORDERS)}, {DYNP} for switching between orders under planning "
    f"({DYNP}-DECIDER-QUALITY/setting=value), or your own in Python, module:attribute"
)
BACKFILLS_HELP = f"One of {', '.join(BACKFILLS)}, or your own in Python, module:attribute"


def order_of_log(text: str) -> Order | PythonOrder:
    """Read the queue order of a run of a log.

    Raises
    ------
    InputError
        As `parse_order`; and for ``priority``, as a log has none.
    """
    order = parse_order(text)
    if order is Order.PRIORITY:
        raise InputError(
            f"--order priority: a log has no priorities; take {', '.join(ORDERS)}, or an order of"
            " your own in Python, module:attribute, that works them out"
        )
    return order


def switched_order_of_log(text: str) -> Order | PythonOrder | PolicySwitching:
    """Read the queue order of a run of a log, or the names of several that are switched.

    Raises
    ------
    InputError
        As `order_of_log`, and as `PolicySwitching.parse`.
    """
    if not is_switched(text):
        return order_of_log(text)
    switching = PolicySwitching.parse(text)
    for order in switching.orders:
        order_of_log(str(order))
    return switching


def _completing(names: tuple[str, ...], incomplete: str) -> list[str]:
    modules = (f"{path.stem}:" for path in sorted(Path().glob("*.py")))
    return [word for word in (*names, *modules) if word.startswith(incomplete)]


def complete_order(incomplete: str) -> list[str]:
    """Give what a word may become: built-in orders, and modules of this folder."""
    return _completing(ORDERS, incomplete)


def complete_switched_order(incomplete: str) -> list[str]:
    """Give what a word may become: built-in orders, deciders, and modules of this folder."""
    deciders = (f"{DYNP}-{decider}" for decider in Decider)
    return _completing((*ORDERS, DYNP, *deciders), incomplete)


def complete_backfill(incomplete: str) -> list[str]:
    """Give what a word may become: built-in backfilling, and modules of this folder."""
    return _completing(BACKFILLS, incomplete)


OrderOption = Annotated[
    str,
    typer.Option(
        autocompletion=complete_order,
        metavar="ORDER",
        help=f"Queue order. {ORDERS_HELP}.",
    ),
]
SwitchedOrderOption = Annotated[
    str,
    typer.Option(
        autocompletion=complete_switched_order,
        metavar="ORDER",
        help=f"Queue order. {SWITCHED_ORDERS_HELP}.",
    ),
]
BackfillOption = Annotated[
    str,
    typer.Option(
        autocompletion=complete_backfill,
        metavar="BACKFILL",
        help=f"Backfilling. {BACKFILLS_HELP}.",
    ),
]
