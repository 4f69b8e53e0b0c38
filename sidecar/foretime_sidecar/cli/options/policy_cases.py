"""The policies of one simulation: what the options name, each crossed with all the rest."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.site_refusals import site_refusals
from foretime_sim.policies.families import FAMILIES, Backfill, Slack, has_setting
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import is_switched
from foretime_sim.policies.policy_table import SLACK_KEYS, PolicyTable, policy_of
from foretime_sim.policies.site_machine import site_of
from foretime_sim.policies.slack import SlackSettings
from foretime_sim.scores.policy_comparison import PolicyCase

Values: TypeAlias = Mapping[str, Any]
_EASY = tuple(name for name, family in FAMILIES.items() if has_setting(family, "depth"))
_SITES = "site"
"""The backfilling of a site: its scheduler's own."""
_AGEING = (str(Backfill.EASY_SJBF), str(Backfill.EASY_WSPT))


@dataclass(frozen=True, slots=True)
class PolicyChoices:
    """What is crossed.

    Attributes
    ----------
    named
        Policies by name, with the values of their keys; one without a name if none is asked for.
    shared
        Values that go before those of each.
    axes
        By key, the values that each takes.
    estimators
        Names of estimators.
    """

    named: Sequence[tuple[str, Values]]
    shared: Values
    axes: Mapping[str, Sequence[Any]]
    estimators: Sequence[str]

    def cases(self) -> list[PolicyCase]:
        """Cross everything; a case is named by that in which the cases differ.

        Only easy and its kin have a depth, only conservative backfilling compresses, only slack has
        a slack, and so on: others are run once. If none has, the policy says why it is not taken.
        Orders are only switched under planning; if that is not asked for, the policy says so.

        Raises
        ------
        InputError
            If a value is wrong, or nothing is left to run under a backfilling.
        """
        crossed = _where_they_apply(list(self._crossed()))
        backfills = [_backfill(values) for _, values in crossed]
        cases: dict[tuple[Policy, str], PolicyCase] = {}
        for name, values in crossed:
            if _is_unplanned(values) and str(Backfill.PLANNING) in backfills:
                continue
            of_file = values.keys() - self.shared.keys() - self.axes.keys()
            with naming_options(of_file):
                policy = runnable_policy(values)
            for estimator in self.estimators:
                named = self._name(name, values, policy, estimator)
                cases.setdefault((policy, estimator), PolicyCase(named, policy, estimator))
        run = {str(case.policy.backfill) for case in cases.values()}
        if idle := [name for name in dict.fromkeys(backfills) if name not in {*run, _SITES}]:
            raise InputError(
                f"--backfill {','.join(idle)}: nothing would run so, as dynp is for planning alone;"
                " leave it out, or name another order, too (--order fcfs,dynp)"
            )
        return list(cases.values())

    def _crossed(self) -> Iterator[tuple[str, Values]]:
        for name, values in self.named:
            for chosen in itertools.product(*self.axes.values()):
                crossed = dict(zip(self.axes, chosen, strict=True))
                yield name, {**values, **self.shared, **crossed}

    def _name(self, name: str, values: Values, policy: Policy, estimator: str) -> str:
        shown = policy.backfill.shown
        slack = policy.backfill.settings if isinstance(policy.backfill, Slack) else SlackSettings()
        parts = {
            "order": policy.order_name,
            "backfill": str(policy.backfill),
            "depth": f"depth {shown.get('depth')}",
            "compression": str(shown.get("compression")),
            "site": Path(str(values.get("site", ""))).stem,
            "slack_factor": f"SF {slack.slack_factor:g}",
            "insertion_order": str(slack.insertion_order),
        }
        varying = [key for key in parts if key in values and len(self.axes.get(key, ())) > 1]
        told = [
            *([name] if len(self.named) > 1 else []),
            *(parts[key] for key in varying),
            *([estimator] if len(self.estimators) > 1 else []),
        ]
        return " ".join(told) or f"{policy.order_name} {policy.backfill}"


def runnable_policy(values: Values) -> Policy:
    """Give the policy of some keys' values, whose site, if it has one, the engine can simulate.

    Raises
    ------
    InputError
        If a value is wrong, or for what the site has that is not simulated; it names the file.
    """
    policy = policy_of(values)
    site = site_of(policy)
    for refusal in () if site is None else site_refusals(site):
        raise InputError(f"{values['site']}: {refusal}")
    return policy


@contextmanager
def naming_options(of_file: Collection[str]) -> Iterator[None]:
    """Have what is wrong with a policy name options in place of its keys.

    Parameters
    ----------
    of_file
        Keys that a policy file gave, which are named as there.
    """
    try:
        yield
    except InputError as error:
        text = str(error)
        for key in PolicyTable.model_fields.keys() - set(of_file):
            # What is no word of its own is a key, others are one where they are said to be wrong.
            found = rf"\b{key}\b" if "_" in key else rf"^{key}(?= is )"
            text = re.sub(found, f"--{key.removesuffix('_s').replace('_', '-')}", text)
        raise InputError(text) from error


def _backfill(values: Values) -> str:
    if values.get("site"):
        return _SITES
    return str(values.get("backfill", Backfill.EASY))


def _has_one_head(values: Values) -> bool:
    """Say whether one job at most is protected by a kind of easy."""
    return _backfill(values) in _EASY and int(values.get("depth", 1)) == 1


def _may_guard(values: Values) -> bool:
    backfill = _backfill(values)
    return ":" in backfill or backfill == str(Backfill.NONE) or _has_one_head(values)


_ONLY_WHERE: tuple[tuple[tuple[str, ...], Callable[[Values], bool]], ...] = (
    (("depth",), lambda values: _backfill(values) in _EASY),
    (("compression",), lambda values: _backfill(values) == str(Backfill.CONSERVATIVE)),
    (SLACK_KEYS, lambda values: _backfill(values) == str(Backfill.SLACK)),
    (("guard_s",), _may_guard),
    (("guard_by", "guard_share"), _has_one_head),
    (("ageing_s",), lambda values: _has_one_head(values) and _backfill(values) in _AGEING),
)
"""Keys that mean something under some policies only, and where."""


def _where_they_apply(crossed: list[tuple[str, Values]]) -> list[tuple[str, Values]]:
    """Take keys away where they mean nothing, if they mean something anywhere."""
    for keys, applies in _ONLY_WHERE:
        if any(applies(values) for _, values in crossed):
            crossed = [
                (name, values if applies(values) else _without(keys, values))
                for name, values in crossed
            ]
    return crossed


def _without(keys: tuple[str, ...], values: Values) -> Values:
    return {key: value for key, value in values.items() if key not in keys}


def _is_unplanned(values: Values) -> bool:
    """Say whether orders are to be switched where nothing is planned."""
    switched = is_switched(values.get("order", "fcfs"))
    return switched and _backfill(values) != str(Backfill.PLANNING)
