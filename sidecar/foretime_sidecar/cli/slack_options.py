"""Options of slack-based backfilling (docs/slack.md)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackSettings

from foretime_sidecar.wording.durations import parse_duration

_DEFAULTS = SlackSettings()
FACTOR_HELP = (
    "Of --backfill slack: how many average waits a job of priority 0 may be delayed for others"
)
ORDER_HELP = "Of slack: in which order jobs that made room are planned again"
INSERTION_ORDERS = ", ".join(order.value for order in InsertionOrder)

SlackFactorOption = Annotated[
    float | None, typer.Option(metavar="SF", help=f"{FACTOR_HELP}; {_DEFAULTS.slack_factor:g}.")
]
SlackFactorsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SF",
        help=f"{FACTOR_HELP}, or several, comma-separated; {_DEFAULTS.slack_factor:g}.",
    ),
]
InsertionOrderOption = Annotated[
    InsertionOrder | None, typer.Option(help=f"{ORDER_HELP}; {_DEFAULTS.insertion_order}.")
]
InsertionOrdersOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        help=f"{ORDER_HELP}, or several, comma-separated: {INSERTION_ORDERS}. Default: "
        f"{_DEFAULTS.insertion_order}.",
    ),
]
AverageWaitOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|learned",
        help="Of slack: the average wait; learned is the mean of the jobs started so far. learned.",
    ),
]
SlackWeightsOption = Annotated[
    str | None,
    typer.Option(
        metavar="U,T,P,F",
        help="Of slack: weights of utilization, time, priority and fairness, from 0 to 1; 1,1,1,1.",
    ),
]
OverrunsOption = Annotated[
    Overruns | None,
    typer.Option(
        help="Of slack: what becomes of a job whose requested time is up; with another than kill "
        "give --keep-overruns, too. kill."
    ),
]


def slack_settings(
    factors: Sequence[float] = (),
    insertion_orders: Sequence[InsertionOrder] = (),
    average_wait: str | None = None,
    weights: str | None = None,
    overruns: Overruns | None = None,
) -> list[SlackSettings | None]:
    """Give every slack factor with every insertion order; ``None`` alone if nothing is said.

    Raises
    ------
    InputError
        If a value is out of its range, or can't be read.
    """
    said = (*factors, *insertion_orders, average_wait, weights, overruns)
    if all(value is None for value in said):
        return [None]
    utilization, time, priority, fairness = _weights(weights)
    each = itertools.product(
        factors or [_DEFAULTS.slack_factor], insertion_orders or [_DEFAULTS.insertion_order]
    )
    return [
        SlackSettings(
            factor,
            _average_wait_s(average_wait),
            utilization,
            time,
            priority,
            fairness,
            insertion_order=order,
            overruns=overruns or Overruns.KILL,
        )
        for factor, order in each
    ]


def parse_slack_factor(text: str) -> float:
    """Read a slack factor.

    Raises
    ------
    InputError
        If it is no number.
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--slack-factor {text}: give a number of average waits") from None


def _average_wait_s(text: str | None) -> int | None:
    if text is None or text == "learned":
        return None
    return parse_duration(text, "--average-wait", zero=True)


def _weights(text: str | None) -> tuple[float, ...]:
    if text is None:
        return (1.0, 1.0, 1.0, 1.0)
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != 4:
        raise InputError(
            f"--slack-weights {text}: give four numbers from 0 to 1, of utilization, time, priority"
            " and fairness, such as 1,1,1,1"
        )
    return weights
