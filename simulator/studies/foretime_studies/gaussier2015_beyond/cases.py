"""What the study beyond Gaussier 2015 runs: each case is one way to schedule."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from foretime_estimators.estimators.prediction_loss import E_LOSS
from foretime_estimators.time_units import HOUR_S

_PREDICTED: dict[str, Any] = {"estimator": "expected", "backfill": "easy-wspt"}
_BY_PLAN: dict[str, Any] = {"guard_s": 6 * HOUR_S}


def _by_easy(hours: int, share: float = 0.0, how: str = "") -> dict[str, Any]:
    return {"guard_s": hours * HOUR_S, "guard_by": f"plain-easy{how}", "guard_share": share}


_GUARDS: dict[str, dict[str, Any]] = {
    "plan": _BY_PLAN,
    "EASY, gradual 96 h": _by_easy(96, how="-gradual"),
    "EASY, gradual 72 h": _by_easy(72, how="-gradual"),
    "EASY, gradual 72 h - 50%": _by_easy(72, 0.5, "-gradual"),
    "EASY, longest up to 72 h": _by_easy(72, how="-longest"),
    "EASY, longest up to 72 h - 50%": _by_easy(72, 0.5, "-longest"),
    "EASY, longest up to 72 h - 100%": _by_easy(72, 1.0, "-longest"),
    "EASY 48 h": _by_easy(48),
    "EASY 48 h - 50%": _by_easy(48, 0.5),
    "EASY 24 h": _by_easy(24),
    "EASY 12 h": _by_easy(12),
    "EASY 6 h": _by_easy(6),
}
"""As tables call them; of each kind the loosest first."""
_AGED: Sequence[tuple[int | None, Sequence[str]]] = (
    (None, ("plan", "EASY 24 h")),
    (10, tuple(_GUARDS)),
    (1, ("plan", "EASY, longest up to 72 h", "EASY, longest up to 72 h - 50%", "EASY 24 h")),
)
"""Hours in which candidates age, and the guards beside that."""


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
    """One way to schedule.

    Attributes
    ----------
    name
        As tables call it.
    kind
        What it is run for.
    axes
        Where it differs from EASY on requested times, as a campaign has it.
    copies
        Runs on so many of the copies at most, for its cost, and is not chosen among others;
        ``None``: on all.
    """

    name: str
    kind: Kind
    axes: Mapping[str, Any]
    copies: int | None = None


def _oracle(roles: str) -> Mapping[str, Any]:
    return {"estimator": "actual", "backfill": "easy-sjbf", "roles": roles}


_ALL_ELSE_ALIKE: dict[str, Any] = {"ageing_s": 10 * HOUR_S, **_GUARDS["EASY 48 h"]}
EXPECTED = Case(
    "expected, WSPT, ageing 10 h, guard by EASY 48 h", Kind.PRACTICAL, _PREDICTED | _ALL_ELSE_ALIKE
)
"""What other estimators stand beside: each has its place in this very policy."""


def _estimated(estimator: str, told: str, copies: int | None = None) -> Case:
    """Put an estimator with one time for all roles in the place of `EXPECTED`'s."""
    axes = {"estimator": estimator, "backfill": "easy-sjbf", "roles": "110", **_ALL_ELSE_ALIKE}
    name = f"{told}, ends at requests, SJBF, ageing 10 h, guard by EASY 48 h"
    return Case(name, Kind.PREDICTOR, axes, copies)


BOOSTED = Case(
    "boosted trees, WSPT, ageing 10 h, guard by EASY 48 h",
    Kind.PREDICTOR,
    {**EXPECTED.axes, "estimator": "boosted"},
    copies=1,
)
"""Some milliseconds a job, so it is run only if asked for."""
_CORRECTED: Mapping[str, dict[str, Any]] = {
    "last two, SJBF, ageing 10 h, guard by EASY 48 h": {
        "estimator": "last-two",
        "backfill": "easy-sjbf",
        **_ALL_ELSE_ALIKE,
    },
    "E-loss, SJBF": {"estimator": f"regression:{E_LOSS.name}", "backfill": "easy-sjbf"},
}
_CORRECTIONS: Mapping[str, dict[str, Any]] = {
    "to the request": {"correction": "requested"},
    **{
        f"{told}{f', {steps} at most' if steps else ''}": {
            "correction": correction,
            **({"correction_steps": steps} if steps else {}),
        }
        for told, correction in (("increments", "incremental"), ("doublings", "doubling"))
        for steps in (1, 2, None)
    },
}
"""How a prediction that was too short is corrected; after so many steps it is the request."""
SC15 = Case(
    "SC'15: E-loss, incremental, SJBF",
    Kind.PRACTICAL,
    _CORRECTED["E-loss, SJBF"] | {"correction": "incremental"},
)

EASY = Case("EASY", Kind.MEASURE, {})
CLAIRVOYANT = Case(
    "clairvoyant EASY-SJBF", Kind.MEASURE, {"estimator": "actual", "backfill": "easy-sjbf"}
)
CASES = (
    EASY,
    CLAIRVOYANT,
    Case("requests, SJBF", Kind.PRACTICAL, {"backfill": "easy-sjbf"}),
    SC15,
    Case("last two, SJBF", Kind.PRACTICAL, {"estimator": "last-two", "backfill": "easy-sjbf"}),
    Case(
        "last two, SJBF, guard by plan",
        Kind.PRACTICAL,
        {"estimator": "last-two", "backfill": "easy-sjbf", **_BY_PLAN},
    ),
    Case(
        "expected, SJBF, guard by plan",
        Kind.PRACTICAL,
        {"estimator": "expected", "backfill": "easy-sjbf", **_BY_PLAN},
    ),
    *(
        Case(
            "expected, WSPT" + (f", ageing {hours} h" if hours else "") + f", guard by {guard}",
            Kind.PRACTICAL,
            _PREDICTED | _GUARDS[guard] | ({"ageing_s": hours * HOUR_S} if hours else {}),
        )
        for hours, guards in _AGED
        for guard in guards
    ),
    _estimated("last-two", "last two"),
    _estimated(f"regression:{E_LOSS.name}", "E-loss"),
    # In Python, a hundred times slower than the others.
    _estimated("recent-maximum", "CESNET's rule", copies=1),
    _estimated("typical:0.5", "median of similar jobs", copies=1),
    _estimated("outcomes:0.5", "outcomes", copies=1),
    _estimated("calibrated:0.249", "calibrated", copies=1),
    _estimated("mixture:0.5", "mixture", copies=1),
    *(
        Case(f"{base}, corrected: {told}", Kind.CORRECTION, axes | correction)
        for base, axes in _CORRECTED.items()
        for told, correction in _CORRECTIONS.items()
        if axes | correction != SC15.axes
    ),
    Case("clairvoyant EASY", Kind.ORACLE, {"estimator": "actual"}),
    Case("fits and order known, ends not", Kind.ORACLE, _oracle("010")),
    Case("ends known, fits and order not", Kind.ORACLE, _oracle("001")),
    Case(
        "runtimes below 10 min known",
        Kind.ORACLE,
        {"estimator": "actual-below:600", "backfill": "easy-sjbf"},
    ),
    Case(
        "runtimes below 1 min known",
        Kind.ORACLE,
        {"estimator": "actual-below:60", "backfill": "easy-sjbf"},
    ),
    Case("SJF, requests", Kind.ORDER, {"order": "sjf"}),
    Case("SJF, expected, guard by plan", Kind.ORDER, {"order": "sjf", **_PREDICTED, **_BY_PLAN}),
    Case("WFP, requests", Kind.ORDER, {"order": "wfp"}),
    Case("WFP, expected, guard by plan", Kind.ORDER, {"order": "wfp", **_PREDICTED, **_BY_PLAN}),
)
"""Each practical case adds one idea to an earlier one; the first two measure all others."""
BESIDE: Mapping[Kind, Case] = {Kind.PREDICTOR: EXPECTED, Kind.CORRECTION: SC15}
"""The practical case that stands in one table with those of a kind."""
