"""What the study beyond Gaussier 2015 runs: each case is one way to schedule."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any, NamedTuple

from foretime_estimators.time_units import HOUR_S

from foretime_studies.frame.published import published


class Kind(enum.Enum):
    """What a case is run for."""

    MEASURE = "measure"
    """What others are measured by."""
    PRACTICAL = "practical"
    """What a scheduler can do."""
    PREDICTOR = "predictor"
    """Likewise, with another estimator: all else alike."""
    CORRECTION = "correction"
    """Likewise, with another correction of what was predicted too short."""
    ORACLE = "oracle"
    """What perfect knowledge of one thing or another would bring."""
    ORDER = "other queue order"
    """Not first come, first served: told, and never chosen."""


CHOSEN_AMONG = (Kind.PRACTICAL, Kind.PREDICTOR, Kind.CORRECTION)
"""What a scheduler can do, whatever it is run for."""


class Case(NamedTuple):
    """One way to schedule."""

    name: str
    kind: Kind
    axes: Mapping[str, Any]  # where it differs from EASY on requested times, as a campaign has it
    # Runs on so many of the copies at most, for its cost, and is not chosen among others; ``None``:
    # on all.
    copies: int | None = None


def _case(name: str, row: Mapping[str, Any]) -> Case:
    """Make a case of a row of cases.csv."""
    axes = {axis: value for axis, value in row.items() if value is not None}
    kind, copies = axes.pop("kind"), axes.pop("copies", None)
    for axis in [axis for axis in axes if axis.endswith("_h")]:
        axes[f"{axis.removesuffix('_h')}_s"] = axes.pop(axis) * HOUR_S
    if "roles" in axes:
        axes["roles"] = axes["roles"].removeprefix("S")
    return Case(name, Kind[kind.upper()], axes, copies)


_LISTED = {name: _case(name, row) for name, row in published(__package__, "cases").items()}
EASY, CLAIRVOYANT = _LISTED["EASY"], _LISTED["clairvoyant EASY-SJBF"]
BOOSTED = _LISTED["boosted trees, WSPT, ageing 10 h, guard by EASY 48 h"]
"""Some milliseconds a job, so it is run only if asked for."""
CASES = tuple(case for case in _LISTED.values() if case is not BOOSTED)
BESIDE: Mapping[Kind, Case] = {
    Kind.PREDICTOR: _LISTED["expected, WSPT, ageing 10 h, guard by EASY 48 h"],
    Kind.CORRECTION: _LISTED["SC'15: E-loss, incremental, SJBF"],
}
"""The practical case that stands in one table with those of a kind, which differ in one thing."""
