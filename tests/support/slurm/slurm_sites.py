"""Random sites under Slurm."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from foretime_sim.files.toml_keys import CLOCK, NUMBER, YES_OR_NO, Key
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.slurm import site_tables
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.scheduler_words import FLAGS, NUMBERS
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.switches import Switch
from hypothesis import strategies as st

from tests.support.workloads.node_workloads import machines

COUNTS = st.integers(0, 2**40)
TIMES = st.integers(0, 10**9)
MINUTES = st.integers(0, 10**7).map(lambda minutes: minutes * 60)
KINDS = st.sampled_from(["cpu", "mem", "node", "billing", "gres/gpu", "gres/gpu:A100", "license/X"])
TRES = st.dictionaries(KINDS, COUNTS, max_size=4)
AMOUNTS = st.floats(0, 1e12, allow_nan=False)
WEIGHTS = st.dictionaries(KINDS, AMOUNTS, max_size=4)
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=6)
MODES = st.sampled_from(["OFF", "REQUEUE", "CANCEL", "SUSPEND,GANG"])
PREEMPT_PARAMETERS = st.sampled_from(sorted(site_tables.PREEMPT_PARAMETERS)).flatmap(
    lambda word: (
        st.integers(0, 2**32 - 1).map(lambda number: f"{word}={number}")
        if site_tables.PREEMPT_PARAMETERS[word]
        else st.just(word)
    )
)

_VALUES: dict[object, st.SearchStrategy[Any]] = {
    site_tables.COUNT: COUNTS,
    site_tables.WEIGHT: st.integers(0, 2**32 - 1),
    site_tables.TRES: TRES,
    CLOCK: TIMES,
    site_tables.PERIOD: TIMES.filter(bool),
    site_tables.WEIGHTS: WEIGHTS,
    site_tables.AMOUNTS: WEIGHTS,
    site_tables.MINUTES: MINUTES,
    NUMBER: AMOUNTS,
    YES_OR_NO: st.booleans(),
}


def _some(draw: st.DrawFn, keys: dict[str, Key]) -> dict[str, Any]:
    """Draw values of some of the keys whose kind does for it."""
    return {
        key.attribute: draw(_VALUES[key.kind])
        for key in keys.values()
        if key.kind in _VALUES and draw(st.booleans())
    }


@st.composite
def sites(draw: st.DrawFn) -> SlurmSite:
    """A site with something of everything, which does not contradict itself."""
    machine = draw(machines())
    qos_names = draw(st.lists(NAMES, max_size=3, unique=True))
    some_qos = st.lists(st.sampled_from(qos_names), unique=True) if qos_names else st.just([])
    qos = {
        name: Qos(
            name,
            preempt=tuple(draw(some_qos)),
            flags=draw(st.frozensets(st.sampled_from(site_tables.QOS_FLAGS), max_size=2)),
            preempt_mode=draw(st.none() | MODES),
            limits=Limits(**_some(draw, site_tables.QOS_LIMITS)),
            **_some(draw, site_tables.QOS_KEYS),
        )
        for name in qos_names
    }

    def held() -> dict[str, Any]:
        mine = tuple(draw(some_qos))
        return {
            "qos": mine,
            "default_qos": draw(st.sampled_from([None, *mine])),
            "shares": draw(st.none() | COUNTS),
            **_some(draw, site_tables.ACCOUNT_KEYS),
            "limits": Limits(**_some(draw, site_tables.ASSOCIATION_LIMITS)),
        }

    associations: list[Association] = []
    others = draw(st.lists(NAMES.filter(lambda name: name != "root"), max_size=3, unique=True))
    accounts = ["root", *others] if draw(st.booleans()) else []
    for place, account in enumerate(accounts):
        above = draw(st.sampled_from(accounts[:place])) if place else None
        associations.append(Association(account, parent=above, **held()))
    users = st.tuples(st.sampled_from(accounts or ["-"]), NAMES)
    for account, user in draw(st.lists(users, max_size=4, unique=True)) if accounts else []:
        part = draw(st.sampled_from([None, *(each.name for each in machine.slurm_partitions)]))
        default = all(each.user != user for each in associations) and draw(st.booleans())
        associations.append(Association(account, user, part, default=default, **held()))
    names = st.none() | st.frozensets(st.sampled_from(accounts or ["any"]), max_size=2)
    rules = {}
    for slurm_partition in machine.slurm_partitions:
        each = PartitionRules(
            qos=draw(st.sampled_from([None, *qos_names])),
            allow_accounts=draw(names),
            deny_accounts=draw(names),
            allow_qos=draw(st.none() | some_qos.map(frozenset)),
            max_cpus_per_node=draw(st.none() | st.integers(1, 100)),
            preempt_mode=draw(st.none() | MODES),
            state=draw(st.sampled_from(site_tables.STATES)),
            priority_job_factor=draw(st.integers(0, 65_533)),
            **_some(draw, site_tables.RULES_KEYS),
        )
        longest_s = slurm_partition.max_time_s
        if longest_s is not None and (each.default_time_s or 0) > longest_s:
            each = replace(each, default_time_s=None)
        if slurm_partition.default_memory_per_cpu_mib:
            each = replace(each, default_memory_per_node_mib=0)
        if each != PartitionRules():
            rules[slurm_partition.name] = each
    groups = [group.name for group in machine.node_groups]
    reservations = tuple(
        NodeReservation(
            name,
            draw(st.integers(-(10**9), 10**12)),
            draw(st.integers(1, 10**9)),
            tuple(draw(st.lists(st.sampled_from(groups), min_size=1, unique=True))),
        )
        for name in draw(st.lists(NAMES, max_size=2, unique=True))
    )
    return SlurmSite(
        machine,
        version=draw(st.sampled_from([(22, 5), (23, 11), (26, 5)])),
        parameters=draw(parameters()),
        priority=draw(priorities()),
        rules=rules,
        qos=qos,
        associations=tuple(associations),
        enforced=site_tables.ENFORCED_WORDS.read(
            draw(st.lists(st.sampled_from(site_tables.ENFORCED), unique=True))
        ),
        reservations=reservations,
        switches=draw(switches(groups)),
        licenses=draw(st.dictionaries(NAMES, COUNTS, max_size=2)),
        enforce_part_limits=draw(st.sampled_from(["NO", "ALL", "ANY"])),
        preempt_type=draw(st.sampled_from(site_tables.PREEMPT_TYPES)),
        preempt_mode=draw(MODES),
        preempt_exempt_time_s=draw(TIMES),
        preempt_parameters=tuple(draw(st.lists(PREEMPT_PARAMETERS, max_size=3))),
        usage_at=draw(st.none() | st.integers(0, 10**12)),
        not_modelled=tuple(draw(st.lists(NAMES, max_size=2))),
    )


@st.composite
def switches(draw: st.DrawFn, groups: list[str]) -> tuple[Switch, ...]:
    """Switches over groups of nodes: none, a tree, several, or some that share what is below."""
    names = draw(st.lists(NAMES, max_size=6, unique=True))
    found: list[Switch] = []
    for place, name in enumerate(names):
        below = draw(st.lists(st.sampled_from(names[:place]), unique=True)) if place else []
        mine = [] if below else draw(st.lists(st.sampled_from(groups), unique=True))
        found.append(Switch(name, tuple(mine), tuple(below)))
    return tuple(draw(st.permutations(found)))


@st.composite
def parameters(draw: st.DrawFn) -> SlurmParameters:
    """Parameters that Slurm takes."""
    values: dict[str, Any] = {
        word.attribute: draw(st.integers(word.least, word.most)) * word.seconds
        for word in NUMBERS.values()
        if draw(st.booleans())
    }
    values |= {name: draw(st.booleans()) for name in FLAGS}
    values |= {"backfill": draw(st.booleans()), "epilog": draw(st.booleans())}
    values |= {"over_time_limit_s": draw(MINUTES)}
    values |= {"kill_wait_s": draw(COUNTS), "complete_wait_s": draw(COUNTS)}
    return SlurmParameters(**values)


@st.composite
def priorities(draw: st.DrawFn) -> SlurmPriority:
    """Priorities of any kind."""
    made = SlurmPriority(
        multifactor=draw(st.booleans()),
        flags=draw(st.frozensets(st.sampled_from(site_tables.PRIORITY_FLAGS))),
        usage_reset_period=draw(st.sampled_from(site_tables.RESET_PERIODS)),
        dampening_factor=draw(st.integers(1, 100)),
        site_factor=draw(st.none() | NAMES),
    )
    changed = _some(draw, site_tables.PRIORITY_KEYS)
    return replace(made, **changed)


def attributes(cls: type) -> set[str]:
    """Names of a dataclass's fields."""
    return {each.name for each in fields(cls)}
