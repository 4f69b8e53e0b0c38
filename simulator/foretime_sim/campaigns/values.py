"""What single values of a campaign's file may be, as pydantic checks them.

Those of a policy are in `foretime_sim.policies.policy_values`.
"""

from __future__ import annotations

import difflib
from typing import Annotated, TypeAlias, TypeVar

from foretime_estimators.estimators.registry import estimator_name
from pydantic import AfterValidator, BeforeValidator, Field

from foretime_sim.policies.policy_values import Number, asked
from foretime_sim.scores.metrics import METRICS

_T = TypeVar("_T")


def _estimator(value: str) -> str:
    return str(asked(lambda: estimator_name(value)))


def _metric(value: str) -> str:
    if value not in METRICS:
        near = difflib.get_close_matches(value, METRICS, n=3, cutoff=0.0)
        raise ValueError(
            f"there is no such metric; nearest are {', '.join(near)}; docs/outputs.md lists all"
        )
    return value


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


def _missing_request(value: object) -> object:
    if isinstance(value, bool) or not (
        value in ("drop", "runtime") or (isinstance(value, int) and value >= 1)
    ):
        raise ValueError('give "drop", "runtime", or a limit in seconds')
    return value


Axis: TypeAlias = Annotated[tuple[_T, ...], BeforeValidator(_listed), AfterValidator(_distinct)]
"""Values to be crossed with others', each once; a single one need be in no list."""
Share: TypeAlias = Annotated[Number, Field(ge=0, lt=1)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=100)]
Lines: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_listed)]
EstimatorName: TypeAlias = Annotated[str, AfterValidator(_estimator)]
MetricName: TypeAlias = Annotated[str, AfterValidator(_metric)]
MissingRequestValue: TypeAlias = Annotated[int | str, BeforeValidator(_missing_request)]
Seeds: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...], BeforeValidator(_seeds), AfterValidator(_distinct)
]
