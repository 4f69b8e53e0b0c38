"""What single values of a campaign's file may be, as pydantic checks them.

All is validated with the campaign's folder as context (``{"folder": path}``), from which a user's
own policies are loaded.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from foretime_estimators.estimators.registry import estimator_name
from foretime_estimators.jobs.errors import InputError
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.families import parse_backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Roles, parse_order
from foretime_sim.policies.policy_switching import PolicySwitching, is_switched
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.scores.metrics import METRICS

_T = TypeVar("_T")


def order_named(text: str, folder: Path) -> Order | PythonOrder | PolicySwitching:
    """Read a queue order, or what switches between several (``dynp``).

    The user's own, ``module:attribute``, is from the campaign's folder.
    """
    order: Order | PythonOrder | PolicySwitching
    if is_switched(text):
        order = PolicySwitching.parse(text)
    else:
        order = PythonOrder.load(text, folder) if ":" in text else parse_order(text)
    if Order.PRIORITY in (order.orders if isinstance(order, PolicySwitching) else (order,)):
        raise InputError("a log has no priorities; take another order, or one of your own")
    return order


def backfill_named(text: str, folder: Path) -> Backfilling:
    """Read a backfilling policy; the user's own, ``module:attribute``, from its folder."""
    return PythonBackfill.load(text, folder) if ":" in text else parse_backfill(text)


def _order(value: str, info: ValidationInfo) -> str:
    return str(_asked(lambda: order_named(value, _folder(info))))


def _backfill(value: str, info: ValidationInfo) -> str:
    return str(_asked(lambda: backfill_named(value, _folder(info))))


def _estimator(value: str) -> str:
    return str(_asked(lambda: estimator_name(value)))


def _metric(value: str) -> str:
    if value not in METRICS:
        near = difflib.get_close_matches(value, METRICS, n=3, cutoff=0.0)
        raise ValueError(
            f"there is no such metric; nearest are {', '.join(near)}; docs/outputs.md lists all"
        )
    return value


def _folder(info: ValidationInfo) -> Path:
    """Give the campaign's folder, with which everything is validated."""
    folder: Path = (info.context or {})["folder"]
    return folder


def _asked(parse: Callable[[], object]) -> object:
    """Call a parser of ours; what it refuses is told by pydantic, with its place."""
    try:
        return parse()
    except InputError as error:
        raise ValueError(str(error)) from error


def _listed(value: object) -> object:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _distinct(values: tuple[_T, ...]) -> tuple[_T, ...]:
    if not values:
        raise ValueError("the list is empty; give at least one value, or leave the key out")
    for place, value in enumerate(values):
        if value in values[:place]:
            raise ValueError(f"{value!r} stands in the list twice")
    return values


def _seeds(value: object) -> object:
    """Take a number of seeds, or a list of seeds, as the tuple of seeds."""
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= 100_000:
            raise ValueError("give a number of seeds from 0 (the log as it is) to 100,000")
        return tuple(range(1, value + 1)) if value else (0,)
    raise ValueError("give a number of seeds, or a list of seeds")


def _number(value: object) -> object:
    """Take whole numbers as numbers: in TOML 1 is one, too."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _missing_request(value: object) -> object:
    if isinstance(value, bool) or not (
        value in ("drop", "runtime") or (isinstance(value, int) and value >= 1)
    ):
        raise ValueError('give "drop", "runtime", or a limit in seconds')
    return value


def whole(word: str, what: str, least: int) -> BeforeValidator:
    """Take a whole number of something, of so many or more, or the word."""

    def check(value: object) -> object:
        if value == word or (type(value) is int and value >= least):
            return value
        raise ValueError(f'give whole {what} of {least} or more, or "{word}"')

    return BeforeValidator(check)


def seconds(word: str, least: int = 0) -> BeforeValidator:
    """Take whole seconds, so many or more, or the word."""
    return whole(word, "seconds", least)


def choice(kind: type[NamedChoice | Roles]) -> AfterValidator:
    """Take the name of a choice."""
    return AfterValidator(lambda value: str(_asked(lambda: kind.parse(value))))


Axis: TypeAlias = Annotated[tuple[_T, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
"""Values to be crossed with others', each once; a single one need be in no list."""
Number: TypeAlias = Annotated[float, BeforeValidator(_number)]
Share: TypeAlias = Annotated[float, BeforeValidator(_number), Field(ge=0, lt=1)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Lines: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_listed)]
OrderName: TypeAlias = Annotated[str, AfterValidator(_order)]
BackfillName: TypeAlias = Annotated[str, AfterValidator(_backfill)]
EstimatorName: TypeAlias = Annotated[str, AfterValidator(_estimator)]
MetricName: TypeAlias = Annotated[str, AfterValidator(_metric)]
MissingRequestValue: TypeAlias = Annotated[int | str, BeforeValidator(_missing_request)]
Seeds: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_seeds), AfterValidator(_distinct)
]
