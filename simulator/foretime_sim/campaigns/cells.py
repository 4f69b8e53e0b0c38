"""A campaign's cells: every combination that is simulated, each known by what decides its result.

A cell is one log at one load, varied by one seed, under one policy. Where a part of the policy
can't change the schedule (the correction, say, when t_sched is t_req) it is left out of the cell,
so that combinations that would run the same collapse to one.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.accuracy_estimator import AccuracyEstimator
from foretime_estimators.estimators.estimator import Memoryless, RuntimeEstimator
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError

from foretime_sim.campaigns.campaign import (
    CONDITION_AXES,
    NONE,
    Campaign,
    LogSource,
    Rule,
    Scoring,
)
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import FAMILIES, Backfill, Easy, has_setting
from foretime_sim.policies.guard import GuardBy
from foretime_sim.policies.policy import IN_STEPS, Correction
from foretime_sim.policies.policy_switching import is_switched
from foretime_sim.policies.policy_values import OFF
from foretime_sim.policies.site_machine import assumptions
from foretime_sim.policies.unknown_users import UnknownUsersChoice
from foretime_sim.sites.site_file import Site, format_site

FORMAT = 1
"""Version of a cell's identity and record; grows when either changes its meaning."""


@cache
def foretime_version() -> str:
    """Give the version of Foretime that runs here."""
    return version("foretime")


@dataclass(frozen=True)
class Cell:
    """One simulation, with all that it takes; picklable, and independent of this machine's clock.

    Attributes
    ----------
    id
        16 hexadecimal digits: a hash of everything that decides the result, the log's content and
        Foretime's version among it.
    axes
        Value of each axis, ``None`` where it has no effect here; in the order of `Campaign.axes`.
    source
        The log; its path is absolute.
    scoring
        Which jobs are scored, and how.
    accuracy
        Rule of the accuracy estimators, ``None`` for other estimators.
    reservations
        Advance reservations, on the log's clock.
    site
        Whose scheduler it is, on whose machine; ``None``: of no site.
    sites
        All that the campaign has: jobs run that could run on each of them.
    unknown_users
        What becomes of the users whom a site does not name.
    folder
        Where modules of the user's own are.
    foretime
        Version that the cell is planned with; another refuses to run it.
    """

    id: str
    axes: Mapping[str, Any]
    source: LogSource
    scoring: Scoring
    accuracy: AccuracySettings | None
    reservations: tuple[AdvanceReservation, ...]
    site: Site | None
    sites: tuple[Site, ...]
    unknown_users: UnknownUsersChoice
    folder: str
    foretime: str

    @property
    def policy(self) -> dict[str, Any]:
        """Values of the policy's axes."""
        return {axis: v for axis, v in self.axes.items() if axis not in CONDITION_AXES}

    @property
    def title(self) -> str:
        """All axes that have an effect, for messages."""
        return ", ".join(f"{axis} {v}" for axis, v in self.axes.items() if v is not None)


@dataclass(frozen=True)
class Plan:
    """What a campaign comes to.

    Attributes
    ----------
    cells
        Each of them once, those of one log, load and seed together.
    notes
        What was left out or collapsed, and why.
    """

    campaign: Campaign
    cells: tuple[Cell, ...]
    notes: tuple[str, ...]

    @property
    def varying(self) -> tuple[str, ...]:
        """Axes of the policy that have an effect with more than one value among the cells."""
        axes = [axis for axis in self.campaign.axes if axis not in CONDITION_AXES]
        # Where an axis has no effect, it is for the value of another that says so already.
        values = {axis: {cell.axes[axis] for cell in self.cells} - {None} for axis in axes}
        return tuple(axis for axis in axes if len(values[axis]) > 1)

    def of_logs(self, names: Iterable[str]) -> Plan:
        """Give the cells of some logs; of all if none is named.

        Raises
        ------
        InputError
            If there is no such log.
        """
        names = tuple(names)
        for name in names:
            if name not in self.campaign.logs:
                raise InputError(
                    f"the campaign has no log {name!r}; it has {', '.join(self.campaign.logs)}"
                )
        cells = (cell for cell in self.cells if not names or cell.axes["log"] in names)
        return dataclasses.replace(self, cells=tuple(cells))

    @property
    def baseline(self) -> dict[str, Any]:
        """Policy that gains are counted against, without what has no effect."""
        axes = self.campaign.axes
        chosen = {axis: values[0] for axis, values in axes.items()}
        chosen |= self.campaign.report.baseline
        return {a: v for a, v in _effective(chosen)[0].items() if a not in CONDITION_AXES}


@cache
def _estimator(name: str) -> RuntimeEstimator:
    """Build an estimator to see of which kind it is."""
    return parse_estimator(name, actual_runtimes={})


@dataclass(frozen=True)
class _NoEffect:
    """When an axis does not change a schedule."""

    axes: tuple[str, ...]
    when: Callable[[Mapping[str, Any]], bool]
    because: str


_EASY = tuple(name for name, family in FAMILIES.items() if has_setting(family, "depth"))
_SORTED = tuple(n for n, f in FAMILIES.items() if isinstance(f, Easy) and f.sorts_candidates)
SLACK_AXES = ("slack_factor", "average_wait_s", "insertion_order")


def _has_no_head(values: Mapping[str, Any]) -> bool:
    """Say whether more jobs than the head are planned, or none."""
    if ":" in values["backfill"]:
        return False
    return values["backfill"] not in _EASY or int(values["depth"]) != 1


def _by_plan(values: Mapping[str, Any]) -> bool:
    return bool(values["guard_by"] == GuardBy.REQUESTED_PLAN.value)


def _needs_no_guard(values: Mapping[str, Any]) -> bool:
    """Say whether nothing is planned with what a guard could be needed for."""
    steps_in = values["backfill"] != "easy" and not _by_plan(values)
    return values["estimator"] == "requested" and not steps_in


def _unguarded(values: Mapping[str, Any]) -> bool:
    return values["guard_s"] == OFF or _has_no_head(values) or _needs_no_guard(values)


def _unstepped(values: Mapping[str, Any]) -> bool:
    in_steps = Correction.parse(values["correction"]) in IN_STEPS
    return not in_steps or values["estimator"] in ("requested", "actual")


def _of_site(values: Mapping[str, Any]) -> bool:
    return bool(values["site"] != NONE)


_NO_EFFECT = (
    _NoEffect(
        (
            "order",
            "backfill",
            "depth",
            "compression",
            *SLACK_AXES,
            "correction",
            "correction_steps",
            "roles",
            "guard_s",
            "guard_by",
            "guard_share",
            "ageing_s",
            "event_order",
        ),
        _of_site,
        "a site's scheduler goes by the site",
    ),
    _NoEffect(("depth",), lambda v: v["backfill"] not in _EASY, "backfilling is not EASY"),
    _NoEffect(
        ("compression",),
        lambda v: v["backfill"] != "conservative",
        "backfilling is not conservative",
    ),
    _NoEffect(SLACK_AXES, lambda v: v["backfill"] != "slack", "backfilling is not slack"),
    _NoEffect(
        ("guard_s",),
        _has_no_head,
        "more jobs than the head are planned, or none",
    ),
    _NoEffect(
        ("correction", "roles"),
        lambda v: v["estimator"] == "requested",
        "t_sched is t_req (estimator requested)",
    ),
    _NoEffect(
        ("guard_s",),
        _needs_no_guard,
        "t_sched is t_req (estimator requested)",
    ),
    _NoEffect(
        ("ageing_s",),
        lambda v: v["backfill"] not in _SORTED or v["depth"] != 1,
        "candidates have the queue's order, or more jobs than the head are planned",
    ),
    _NoEffect(("guard_by",), _unguarded, "there is no guard"),
    _NoEffect(
        ("guard_share",),
        lambda v: _unguarded(v) or _by_plan(v),
        "the guard does not go by a plain EASY",
    ),
    _NoEffect(
        ("correction",),
        lambda v: v["estimator"] == "actual",
        "no job outlives t_sched (estimator actual)",
    ),
    _NoEffect(
        ("correction_steps",),
        _unstepped,
        "no correction goes in steps",
    ),
    _NoEffect(
        ("learn",),
        lambda v: isinstance(_estimator(v["estimator"]), Memoryless),
        "the estimator learns nothing",
    ),
    _NoEffect(
        ("accuracy_rule",),
        lambda v: not isinstance(_estimator(v["estimator"]), AccuracyEstimator),
        "the estimator has no accuracy rule",
    ),
)


def plan(campaign: Campaign) -> Plan:
    """Work out a campaign's cells.

    Parameters
    ----------
    campaign
        As read; its logs are opened to take their checksums.

    Raises
    ------
    InputError
        If a rule matches nothing, or the baseline is not among the cells.

    Examples
    --------
    >>> from pathlib import Path
    >>> from foretime_sim.campaigns.cells import plan
    >>> from foretime_sim.campaigns.file import parse_campaign
    >>> text = '''
    ... logs = [{generate = "pc2", jobs = 200}]
    ... grid = {order = ["fcfs", "sjf"], seeds = 3}
    ... '''
    >>> len(plan(parse_campaign(text, Path("orders.toml"))).cells)
    6
    """
    notes: list[str] = []
    combinations = list(_crossed(campaign.axes))
    for rule in campaign.exclude:
        kept = [values for values in combinations if not _fits(values, rule)]
        if len(kept) == len(combinations):
            raise _refused(campaign, "exclude", rule, "no combination fits it")
        notes.append(f"{_count(len(combinations) - len(kept))} left out by {_told(rule)}")
        combinations = kept
    for rule in campaign.include:
        combinations.extend(_crossed({**campaign.axes, **rule.values}))
    kept = [values for values in combinations if not _switches_unplanned(values)]
    if without := {values["order"] for values in combinations} - {v["order"] for v in kept}:
        raise InputError(
            f"{campaign.path}: order {', '.join(sorted(without))}: only switched under the "
            'backfilling planning: add backfill = "planning"'
        )
    if len(kept) < len(combinations):
        notes.append(
            f"{_count(len(combinations) - len(kept))} left out: orders are only switched under "
            "planning"
        )
    combinations = kept
    if any(_of_site(values) and values["reservations"] != NONE for values in combinations):
        raise InputError(
            f"{campaign.path}: reservations of processors go with no site: put reservations of"
            " nodes into the site's file, or leave the combinations out with [[exclude]]"
        )
    for name, site in campaign.sites.items():
        notes.append(f"{name}: {' '.join(assumptions(site))}")
    declared = dict(campaign.axes)
    for rule in campaign.include:
        for axis, some in rule.values.items():
            declared[axis] = tuple(dict.fromkeys((*declared[axis], *some)))
    distinct: dict[tuple[Any, ...], dict[str, Any]] = {}
    collapsed: Counter[str] = Counter()
    for values in combinations:
        effective, why = _effective(values)
        key = tuple(effective.values())
        if key in distinct:
            collapsed.update(_reasons(why, declared))
        distinct.setdefault(key, effective)
    notes.extend(f"{_count(n)} collapsed: {reason}" for reason, n in collapsed.items())
    identity = _Identity(campaign)
    ordered = sorted(distinct.values(), key=_place(campaign))
    planned = Plan(campaign, tuple(identity.cell(values) for values in ordered), tuple(notes))
    if not planned.cells:
        raise InputError(f"{campaign.path}: the rules leave no combination to simulate")
    if all(cell.policy != planned.baseline for cell in planned.cells):
        told = ", ".join(f"{a} {v}" for a, v in planned.baseline.items() if v is not None)
        raise InputError(
            f"{campaign.path}: the baseline ({told}) is not among the combinations: name another "
            "with baseline = {...} in [report]"
        )
    return planned


def _switches_unplanned(values: Mapping[str, Any]) -> bool:
    planned = values["backfill"] == str(Backfill.PLANNING) or _of_site(values)
    return is_switched(values["order"]) and not planned


def _crossed(axes: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def _fits(values: Mapping[str, Any], rule: Rule) -> bool:
    return all(values[axis] in accepted for axis, accepted in rule.values.items())


def _effective(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[_NoEffect]]:
    """Put ``None`` for what has no effect, and say why."""
    why = [rule for rule in _NO_EFFECT if rule.when(values)]
    effective = dict(values)
    for rule in why:
        effective |= dict.fromkeys(rule.axes)
    return effective, why


def _reasons(why: Iterable[_NoEffect], declared: Mapping[str, tuple[Any, ...]]) -> list[str]:
    """Say why combinations collapse, as far as axes with several values are concerned."""
    found = []
    for rule in why:
        axes = [axis for axis in rule.axes if len(declared[axis]) > 1]
        if axes:
            have = "has" if len(axes) == 1 else "have"
            found.append(f"{' and '.join(axes)} {have} no effect where {rule.because}")
    return found or ["they were declared twice"]


def _place(campaign: Campaign) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Give a sort key: by log, load and seed, so that a worker varies a log once."""
    logs = {name: place for place, name in enumerate(campaign.logs)}

    def key(values: Mapping[str, Any]) -> tuple[Any, ...]:
        return (logs[values["log"]], -values["interarrival_factor"], values["seed"])

    return key


def _count(combinations: int) -> str:
    return f"{combinations:,} combination{'' if combinations == 1 else 's'}"


def _told(rule: Rule) -> str:
    return ", ".join(
        f"{axis} {' or '.join(map(str, values))}" for axis, values in rule.values.items()
    )


def _refused(campaign: Campaign, table: str, rule: Rule, message: str) -> InputError:
    return InputError(
        f"{campaign.path}:{rule.line}: [[{table}]] number {rule.number} ({_told(rule)}): {message}"
    )


_NAMES = ("log", "accuracy_rule", "reservations", "site")


_AS_BEFORE: Mapping[str, tuple[object, ...]] = {
    "guard_by": (None, str(GuardBy.REQUESTED_PLAN)),
    "guard_share": (None,),
    "ageing_s": (None, OFF),
    "correction_steps": (None, OFF),
    **dict.fromkeys(SLACK_AXES, (None,)),
}
"""Values with which cells are what they were before there was the axis: what is kept holds."""


class _Identity:
    """Names cells by a hash of all that decides their results."""

    def __init__(self, campaign: Campaign) -> None:
        self._campaign = campaign
        self._version = foretime_version()
        self._logs: dict[str, object] = {}
        self._sites = {
            name: hashlib.sha256(format_site(site).encode()).hexdigest()
            for name, site in campaign.sites.items()
        }

    def cell(self, values: Mapping[str, Any]) -> Cell:
        campaign, log = self._campaign, values["log"]
        source = campaign.logs[log]
        rule = values["accuracy_rule"]
        accuracy = None if rule is None else campaign.accuracy[rule]
        reservations = campaign.reservations[values["reservations"]]
        decides: dict[str, Any] = {
            "format": FORMAT,
            "foretime": self._version,
            "log": self._log(log),
            # Not what logs and rules are called, but what they hold.
            "axes": {
                a: v
                for a, v in values.items()
                if a not in _NAMES and v not in _AS_BEFORE.get(a, ())
            },
            "reservations": [dataclasses.astuple(claim) for claim in reservations],
            "accuracy": None if accuracy is None else dataclasses.asdict(accuracy),
            "scoring": campaign.scoring.model_dump(exclude={"check"}),
            "code": [
                _source_sha256(values[axis], axis)
                for axis in ("order", "backfill")
                if ":" in (values[axis] or "")
            ],
        }
        if self._sites:  # without any, cells are what they were before there was the axis
            decides["site"] = self._sites.get(values["site"])
            decides["sites"] = sorted(self._sites.values())
            if campaign.unknown_users.text != "error":
                decides["unknown_users"] = campaign.unknown_users.text
        text = json.dumps(decides, sort_keys=True)
        identity = hashlib.sha256(text.encode()).hexdigest()[:16]
        return Cell(
            identity,
            values,
            source,
            campaign.scoring,
            accuracy,
            reservations,
            campaign.sites.get(values["site"]),
            tuple(campaign.sites.values()),
            campaign.unknown_users,
            str(campaign.folder),
            self._version,
        )

    def _log(self, name: str) -> object:
        """Give a log's content and how it is read, without where it lies and what it is called."""
        if name not in self._logs:
            source = self._campaign.logs[name]
            left_out = {"name", "path"}
            if source.path is not None:
                left_out |= {"jobs", "load"} if source.estimates else {"jobs", "load", "seed"}
            if source.estimates is None:
                left_out |= {"estimates", "longest_estimate_s"}
            facts = source.model_dump(mode="json", exclude=left_out)
            if source.path is not None:
                facts["sha256"] = _file_sha256(Path(source.path))
            self._logs[name] = facts
        return self._logs[name]


def _file_sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: can't read the log: {error.strerror}") from error


def _source_sha256(name: str, axis: str) -> str:
    """Hash of the module that holds a policy of the user's own; it was loaded with the campaign."""
    file = sys.modules[name.partition(":")[0]].__file__
    if file is None:
        raise InputError(f"{axis} {name}: its module has no file; put it into one")
    return _file_sha256(Path(file))
