"""Accuracy rules that a campaign declares: [accuracy.NAME]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.errors import InputError

ACCURACY_KEYS = tuple(field.name for field in fields(AccuracySettings))
BUILT_IN_ACCURACY = {
    "production": AccuracySettings.production(),
    "tang2010": AccuracySettings.tang2010(),
}


def accuracy_settings(values: Mapping[str, Any]) -> AccuracySettings:
    """Make an accuracy rule of a table: ``based_on`` another, with its keys changed.

    Raises
    ------
    InputError
        For a value that the rule refuses.
    """
    changes = dict(values)
    based_on = changes.pop("based_on", "production")
    if based_on not in BUILT_IN_ACCURACY:
        raise InputError(f"based_on = {based_on!r}: give {' or '.join(BUILT_IN_ACCURACY)}")
    rule = BUILT_IN_ACCURACY[based_on]
    for key, value in changes.items():
        old = getattr(rule, key)
        wanted: tuple[type, ...] = (type(old),) if old is not None else (int,)
        if wanted == (float,):
            wanted = (float, int)
        if wanted == (tuple,):
            wanted = (list,)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise InputError(f"{key} = {value!r}: give a value like {old!r}")
    if "class_bounds_s" in changes:
        bounds = changes["class_bounds_s"]
        if not all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds):
            raise InputError(f"class_bounds_s = {bounds!r}: give whole seconds")
        changes["class_bounds_s"] = tuple(bounds)
    if "window_s" in changes or "half_life_s" in changes:
        # 0 stands for none, as in the daemon's settings; and naming one drops the other.
        changes.setdefault("window_s", 0)
        changes["window_s"] = changes["window_s"] or None
        changes["half_life_s"] = changes.get("half_life_s") or None
    return replace(rule, **changes)
