"""What single values of a policy may be in a TOML file, as pydantic checks them.

All is validated with a folder as context (``{"folder": path}``), from which a user's own policies
are loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

from foretime_estimators.jobs.errors import InputError
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo

from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.families import Compression, parse_backfill
from foretime_sim.policies.guard import GuardBy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Roles, parse_order
from foretime_sim.policies.policy_switching import PolicySwitching, is_switched
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.policies.slack import InsertionOrder, Overruns

OFF = "off"
"""What stands for no guard, no ageing, no interval, and no end of corrections in steps."""
LEARNED = "learned"
"""What stands for the mean of the waits so far."""


def order_named(text: str, folder: Path | None) -> Order | PythonOrder | PolicySwitching:
    """Read a queue order, or what switches between several (``dynp``).

    The user's own, ``module:attribute``, is from this folder; from the current one if ``None``.
    """
    order: Order | PythonOrder | PolicySwitching
    if is_switched(text):
        order = PolicySwitching.parse(text)
    else:
        order = PythonOrder.load(text, folder) if ":" in text else parse_order(text)
    if Order.PRIORITY in (order.orders if isinstance(order, PolicySwitching) else (order,)):
        raise InputError("a log has no priorities; take another order, or one of your own")
    return order


def backfill_named(text: str, folder: Path | None) -> Backfilling:
    """Read a backfilling policy; the user's own, ``module:attribute``, from its folder."""
    return PythonBackfill.load(text, folder) if ":" in text else parse_backfill(text)


def _order(value: str, info: ValidationInfo) -> str:
    return str(asked(lambda: order_named(value, _folder(info))))


def _backfill(value: str, info: ValidationInfo) -> str:
    return str(asked(lambda: backfill_named(value, _folder(info))))


def slack_weights(text: str) -> tuple[float, ...]:
    """Read the weights of utilization, time, priority and fairness.

    Raises
    ------
    InputError
        If these are not four numbers.
    """
    try:
        weights = tuple(float(part) for part in text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != 4:
        raise InputError(
            "give four numbers from 0 to 1, of utilization, time, priority and fairness, such as"
            " 1,1,1,1"
        )
    return weights


def _weights(value: str) -> str:
    asked(lambda: slack_weights(value))
    return value


def _folder(info: ValidationInfo) -> Path | None:
    """Give the folder with which everything is validated."""
    folder: Path | None = (info.context or {})["folder"]
    return folder


def asked(parse: Callable[[], object]) -> object:
    """Call a parser of ours; what it refuses is told by pydantic, with its place."""
    try:
        return parse()
    except InputError as error:
        raise ValueError(str(error)) from error


def number(value: object) -> object:
    """Take whole numbers as numbers: in TOML 1 is one, too."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _whole(word: str, what: str, least: int) -> BeforeValidator:
    """Take a whole number of something, of so many or more, or the word."""

    def check(value: object) -> object:
        if value == word or (type(value) is int and value >= least):
            return value
        raise ValueError(f'give whole {what} of {least} or more, or "{word}"')

    return BeforeValidator(check)


def _seconds(word: str, least: int = 0) -> BeforeValidator:
    """Take whole seconds, so many or more, or the word."""
    return _whole(word, "seconds", least)


def _choice(kind: type[NamedChoice | Roles]) -> AfterValidator:
    """Take the name of a choice."""
    return AfterValidator(lambda value: str(asked(lambda: kind.parse(value))))


Number: TypeAlias = Annotated[float, BeforeValidator(number)]
NotNegative: TypeAlias = Annotated[Number, Field(ge=0)]
AnyOrderName: TypeAlias = Annotated[str, AfterValidator(_order)]
BackfillName: TypeAlias = Annotated[str, AfterValidator(_backfill)]
Depth: TypeAlias = Annotated[int, Field(ge=1)]
CompressionName: TypeAlias = Annotated[str, _choice(Compression)]
AverageWait: TypeAlias = Annotated[int | str, _seconds(LEARNED)]
InsertionOrderName: TypeAlias = Annotated[str, _choice(InsertionOrder)]
OverrunsName: TypeAlias = Annotated[str, _choice(Overruns)]
CorrectionName: TypeAlias = Annotated[str, _choice(Correction)]
CorrectionSteps: TypeAlias = Annotated[int | str, _whole(OFF, "corrections", least=1)]
RolesName: TypeAlias = Annotated[str, _choice(Roles)]
SecondsOrOff: TypeAlias = Annotated[int | str, _seconds(OFF)]
GuardByName: TypeAlias = Annotated[str, _choice(GuardBy)]
PositiveSecondsOrOff: TypeAlias = Annotated[int | str, _seconds(OFF, least=1)]
EventOrderName: TypeAlias = Annotated[str, _choice(EventOrder)]
SlackWeights: TypeAlias = Annotated[str, AfterValidator(_weights)]
