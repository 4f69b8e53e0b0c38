"""Random priorities, limits, accounts and QOS of a Slurm site, and jobs that come under them."""

from __future__ import annotations

from dataclasses import fields, replace
from random import Random
from typing import Any

import numpy as np
from foretime_sim.machines.machine import Machine
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st

from tests.support.slurm.slurm_priority_sites import random_settings

KINDS = ("cpu", "mem", "node", "billing", "gres/gpu", "license/matlab")
QOS = ("normal", "short", "part")
QOS_FLAGS = (
    "DenyOnLimit", "OverPartQOS", "UsageFactorSafe", "NoDecay", "PartitionMaxNodes",
    "PartitionMinNodes", "PartitionTimeLimit",
)  # fmt: skip
BILLINGS: tuple[dict[str, float], ...] = (
    {},
    {"cpu": 1.5, "mem": 0.01},
    {"cpu": 0.7, "gres/gpu": 2.0, "license/matlab": 1.1},
)
USERS = ("ann", "bob", "carl")
ACCOUNTS = ("physics", "biology", "lab")
_PARENTS = {"root": None, "physics": "root", "biology": "root", "lab": "physics"}
_COUNTS = st.integers(0, 6)
_MINUTES = st.integers(0, 6).map(lambda number: 30 * number)


@st.composite
def limits_of_groups(draw: st.DrawFn, most: int = 4) -> Limits:
    """Few limits of a group, most of them low enough to matter."""
    chosen = draw(st.lists(st.sampled_from(fields(Limits)), max_size=most, unique=True))
    values: dict[str, Any] = {}
    for found in chosen:
        if "tres" in found.name:
            counts = _MINUTES if "mins" in found.name else _COUNTS
            values[found.name] = draw(st.dictionaries(st.sampled_from(KINDS), counts))
        else:
            scale = 300 if found.name.endswith("_s") else 1
            values[found.name] = draw(_COUNTS) * scale
    return Limits(**values)


def few_limits(*, limited: bool) -> st.SearchStrategy[Limits]:
    """Mostly none, so that most jobs can run."""
    none = st.just(Limits())
    return none | none | none | limits_of_groups(2) if limited else none


def some(names: tuple[str, ...]) -> st.SearchStrategy[frozenset[str] | None]:
    """None, or a few of the names."""
    return st.none() | st.frozensets(st.sampled_from(names), min_size=1)


@st.composite
def priorities(draw: st.DrawFn, *, limited: bool) -> SlurmPriority:
    """Weights and flags; ticks and decay as quick as the runs of tests are short.

    Whom a limit holds, usage that is reset after a day would let go when nobody waits any more.
    """
    resets = ["NONE", "NOW"] if limited else ["NONE", "NONE", "NONE", "NOW", "DAILY"]
    made = random_settings(Random(draw(st.integers(0, 2**32 - 1))))
    return replace(
        made,
        usage_reset_period=draw(st.sampled_from(resets)),
        decay_half_life_s=draw(st.sampled_from([0, 60, 600])),
        calc_period_s=draw(st.sampled_from([30, 60, 300])),
        max_age_s=draw(st.sampled_from([60, 600, 604_800])),
    )


@st.composite
def associations(draw: st.DrawFn, *, limited: bool) -> tuple[Association, ...]:
    """A tree of four accounts with users, some with usage, and, if they may, limits."""
    allowed = st.lists(st.sampled_from(QOS), unique=True).map(tuple)
    limits = few_limits(limited=limited)
    shares = st.sampled_from([None, 0, 1, 1, 3, 40])
    usage = st.sampled_from([0.0, 0.0, 600.0, 6000.0])

    def one(account: str, user: str | None) -> Association:
        mine = draw(allowed)
        return Association(
            account,
            user=user,
            parent=None if user else _PARENTS[account],
            shares=draw(shares),
            raw_usage=draw(usage),
            priority=draw(st.integers(0, 5)),
            qos=mine,
            default_qos=draw(st.sampled_from([None, *mine])),
            limits=draw(limits),
            used_tres_s=draw(st.sampled_from([{}, {}, {"cpu": 3600.0}])) if limited else {},
        )

    accounts = [one(account, None) for account in _PARENTS]
    return (*accounts, *(one(account, user) for user in USERS for account in ACCOUNTS))


@st.composite
def ruled_sites(
    draw: st.DrawFn,
    machine: Machine,
    version: tuple[int, int],
    parameters: SlurmParameters,
    *,
    limited: bool,
) -> SlurmSite:
    """A site with priorities of its own, and, if it may, limits of all kinds."""
    limits = few_limits(limited=limited)
    qos = {
        name: Qos(
            name,
            priority=draw(st.integers(0, 5)),
            limits=draw(limits),
            flags=draw(st.frozensets(st.sampled_from(QOS_FLAGS), max_size=2)),
            usage_factor=draw(st.sampled_from([1.0, 1.0, 0.5, 0.0, 2.0])),
            limit_factor=draw(st.sampled_from([None, None, 0.5, 2.0])),
        )
        for name in QOS
    }

    def rules() -> PartitionRules:
        weighed = PartitionRules(
            priority_job_factor=draw(st.integers(0, 5)),
            billing_weights=draw(st.sampled_from(BILLINGS)),
            max_cpus_per_node=draw(st.sampled_from([None, None, None, 1, 3])),
        )
        if not limited or draw(st.sampled_from([True, True, False])):
            return weighed
        return replace(
            weighed,
            qos=draw(st.sampled_from([None, None, "part", "normal"])),
            deny_accounts=draw(some(("biology", "lab"))),
            deny_qos=draw(some(("short",))),
            min_nodes=draw(st.sampled_from([0, 0, 0, 2])),
        )

    words = st.frozensets(st.sampled_from(["associations", "limits", "qos", "safe"]))
    return SlurmSite(
        machine,
        version,
        replace(parameters, assoc_limit_stop=limited and draw(st.booleans())),
        priority=draw(priorities(limited=limited)),
        rules={part.name: rules() for part in machine.slurm_partitions},
        qos=qos,
        associations=draw(
            associations(limited=limited) if limited else st.just(()) | associations(limited=False)
        ),
        enforced=draw(st.just(frozenset({"limits"})) | words) if limited else frozenset(),
        licenses={"matlab": 3},
        enforce_part_limits=draw(st.sampled_from(["NO", "NO", "ALL", "ANY"])),
    )


@st.composite
def ruled_workloads(draw: st.DrawFn, workload: Workload) -> Workload:
    """The same jobs of users and accounts, some unknown to the site, with QOS and the like."""
    jobs = len(workload)

    def names(*known: str, least: int = -1) -> Labels:
        """Draw names, the more often the more often they are said; -1: some have none."""
        distinct = tuple(dict.fromkeys(known))
        codes = [distinct.index(name) for name in known]
        drawn = draw(
            st.lists(st.sampled_from([*range(least, 0), *codes]), min_size=jobs, max_size=jobs)
        )
        return Labels(np.array(drawn, dtype=np.int32), distinct)

    def column(*values: int) -> np.ma.MaskedArray:
        said = draw(st.lists(st.sampled_from(values), min_size=jobs, max_size=jobs))
        return np.ma.array(said, mask=[one == 0 for one in said], dtype=np.int64)

    arrays = names("a", "b") if draw(st.booleans()) else None
    most_running = None
    if arrays is not None and draw(st.booleans()):
        most = {name: draw(st.integers(0, 2)) for name in arrays.names}
        throttles = [0 if name is None else most[name] for name in arrays.by_job()]
        most_running = np.ma.masked_equal(np.array(throttles, dtype=np.int64), 0)
    said = SiteJobs(
        qos=names(*QOS) if draw(st.booleans()) else None,
        nice=column(0, 0, 100, -100_000),
        site_factor=column(0, 0, 50_000),
        begin_time=column(0, 0, 0, 100, 400),
        licenses=names("matlab", "matlab:2") if draw(st.booleans()) else None,
        array_most_running=most_running,
    )
    return replace(
        workload,
        array_ids=arrays,
        users=names(*USERS, *USERS, "nobody") if draw(st.booleans()) else names(*USERS, least=0),
        projects=names(*ACCOUNTS) if draw(st.booleans()) else None,
        site_jobs=said,
    )
