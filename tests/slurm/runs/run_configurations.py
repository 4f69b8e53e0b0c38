"""The configurations that live runs are made of: a site, and the jobs that it gets."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.sites.slurm.switches import Switch

from tests.slurm.harness.slurm_conf import USERS
from tests.slurm.runs.event_file import event_jobs
from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.run_job import RunJob


@dataclass(frozen=True, slots=True)
class RunConfiguration:
    """What a live run is of; the model gets the same.

    Attributes
    ----------
    name
        Of the folder of its results.
    about
        What it is for, in a sentence.
    site
        As the model has it; reservations begin so many seconds after the run does.
    jobs
        Gives them.
    soft_limit
        Needs ``time_min_as_soft_limit`` (23.11 and newer).
    shipped_jobs
        Whether its jobs may stand in our repository.
    """

    name: str
    about: str
    site: SlurmSite
    jobs: Callable[[], list[RunJob]]
    soft_limit: bool = False
    shipped_jobs: bool = True


TEN_BY_TEN = Machine(
    (NodeGroup("all", nodes=10, cpus=10, memory_mib=1000),),
    (SlurmPartition("main", ("all",), default=True),),
    Selection.CPU,
)
_BASIC = SlurmPriority(multifactor=False)


def _flat(
    name: str,
    about: str,
    seed: int,
    parameters: SlurmParameters,
    *,
    priority: SlurmPriority = _BASIC,
    recipe: JobRecipe | None = None,
    soft_limit: bool = False,
) -> RunConfiguration:
    return RunConfiguration(
        name,
        about,
        SlurmSite(TEN_BY_TEN, parameters=parameters, priority=priority),
        lambda: jobs_of(recipe or JobRecipe(), TEN_BY_TEN.cpus, seed),
        soft_limit=soft_limit,
    )


def _nice_or_array(job: RunJob, rng: random.Random) -> RunJob:
    if rng.random() < 0.1:
        return replace(job, nice=rng.choice((50, 200, 1000)))
    if rng.random() < 0.04:
        most = rng.choice((None, 2))
        return replace(job, tasks=min(job.tasks, 8), array_tasks=4, array_most_running=most)
    return job


def _time_min(job: RunJob, rng: random.Random) -> RunJob:
    """Add a forecast of the runtime, often too short or too long, or for some jobs none."""
    if rng.random() < 0.15:
        return job
    minutes = round(job.runtime_s / 60 * rng.lognormvariate(0.2, 0.5))
    return replace(job, time_min_min=min(job.time_limit_min, max(1, minutes)))


_AGE_AND_SIZE = SlurmPriority(
    weight_age=2000, weight_job_size=1000, max_age_s=1200, calc_period_s=60
)

# Accounts -----------------------------------------------------------------------------------------

_ACCOUNT_OF = {
    "alice": "physics",
    "bob": "physics",
    "carol": "optics",
    "dave": "biology",
    "erin": "biology",
}
_SHARES = {"alice": 10, "bob": 30, "carol": 10, "dave": 10, "erin": 20}


def accounts_of(user: str) -> str:
    """Give the account of a user."""
    return _ACCOUNT_OF[user]


def _tree(
    limits: Mapping[str, Limits] | None = None, qos: tuple[str, ...] = ()
) -> tuple[Association, ...]:
    """Give accounts of three levels: optics is a part of physics."""
    limit_of = limits or {}
    accounts = (
        Association("root", shares=1),
        Association("root", user="root", shares=1),
        Association("physics", parent="root", shares=50, limits=limit_of.get("physics", Limits())),
        Association("optics", parent="physics", shares=20, limits=limit_of.get("optics", Limits())),
        Association("biology", parent="root", shares=25, limits=limit_of.get("biology", Limits())),
    )
    return accounts + tuple(
        Association(
            _ACCOUNT_OF[user],
            user=user,
            shares=_SHARES[user],
            limits=limit_of.get(user, Limits()),
            qos=qos,
            default_qos=qos[0] if qos else None,
            default=True,
        )
        for user in USERS
    )


def _in_account(job: RunJob, rng: random.Random) -> RunJob:
    del rng
    return replace(job, account=_ACCOUNT_OF[job.user])


_FAIR_TREE = SlurmPriority(
    weight_age=500,
    weight_fair_share=10_000,
    weight_job_size=200,
    max_age_s=3600,
    decay_half_life_s=600,
    calc_period_s=60,
)


def _fair_share(name: str, about: str, seed: int, priority: SlurmPriority) -> RunConfiguration:
    site = SlurmSite(
        TEN_BY_TEN,
        parameters=SlurmParameters(bf_interval=15),
        priority=priority,
        associations=_tree(),
        enforced=frozenset({"associations"}),
    )
    recipe = JobRecipe(adorn=_in_account)
    return RunConfiguration(name, about, site, lambda: jobs_of(recipe, site.machine.cpus, seed))


def _age_and_size() -> RunConfiguration:
    site = SlurmSite(
        TEN_BY_TEN,
        parameters=SlurmParameters(bf_interval=15),
        priority=_AGE_AND_SIZE,
        associations=_tree(),
        enforced=frozenset({"associations"}),
    )

    def adorn(job: RunJob, rng: random.Random) -> RunJob:
        return _nice_or_array(_in_account(job, rng), rng)

    recipe = JobRecipe(jobs=180, adorn=adorn)
    return RunConfiguration(
        "age-and-size",
        "Multifactor priorities of age, size and nice, with job arrays.",
        site,
        lambda: jobs_of(recipe, site.machine.cpus, 6),
    )


# Partitions ---------------------------------------------------------------------------------------

_OVERLAPPING = Machine(
    (
        NodeGroup("west", nodes=5, cpus=10, memory_mib=1000),
        NodeGroup("middle", nodes=2, cpus=10, memory_mib=1000),
        NodeGroup("east", nodes=3, cpus=10, memory_mib=1000),
    ),
    (
        SlurmPartition("main", ("west", "middle"), default=True),
        SlurmPartition("short", ("middle", "east"), priority_tier=3, max_time_s=600),
        SlurmPartition("large", ("west", "middle", "east")),
        SlurmPartition("idle", ("middle", "east"), priority_tier=0),
    ),
    Selection.CPU,
)


def _in_partitions(job: RunJob, rng: random.Random) -> RunJob:
    if job.tasks > 30:
        return replace(job, slurm_partitions="large")
    if job.time_limit_min <= 10 and rng.random() < 0.4:
        return replace(job, slurm_partitions=rng.choice(("short", "main,short")))
    return replace(job, slurm_partitions=rng.choice((None, "main", "large", "idle")))


def _partitions() -> RunConfiguration:
    site = SlurmSite(
        _OVERLAPPING,
        parameters=SlurmParameters(bf_interval=20),
        priority=SlurmPriority(
            weight_age=1000, weight_partition=500, max_age_s=1800, calc_period_s=60
        ),
        rules={"large": PartitionRules(priority_job_factor=10), "main": PartitionRules(1)},
    )
    recipe = JobRecipe(adorn=_in_partitions, load=1.25)
    return RunConfiguration(
        "partitions",
        "Four partitions that overlap, in three tiers, and jobs in two of them.",
        site,
        lambda: jobs_of(recipe, site.machine.cpus, 9),
    )


# Unlike nodes -------------------------------------------------------------------------------------

_UNLIKE = Machine(
    (
        NodeGroup("thin", nodes=6, cpus=8, memory_mib=16_000, features=("thin", "ib")),
        NodeGroup("fat", nodes=2, cpus=16, memory_mib=64_000, features=("fat", "ib"), weight=10),
        NodeGroup("gpu", nodes=2, cpus=8, memory_mib=32_000, gpus=2, features=("a100",), weight=20),
    ),
    (
        SlurmPartition(
            "main", ("thin", "fat", "gpu"), default=True, default_memory_per_cpu_mib=1000
        ),
    ),
    Selection.CPU_MEMORY,
)


def _of_a_kind(job: RunJob, rng: random.Random) -> RunJob:
    kind = rng.choices(("any", "feature", "memory", "gpu", "nodes"), weights=(4, 2, 2, 2, 1))[0]
    if kind == "feature":
        feature = rng.choice(("thin", "fat", "ib", "thin&ib"))
        most = 32 if feature == "fat" else 48
        return replace(job, constraint=feature, tasks=min(job.tasks, most))
    if kind == "memory":
        memory = rng.choice((4_000, 14_000, 30_000, 60_000))
        return replace(job, memory_mib=memory, nodes=1, tasks=min(job.tasks, 8))
    if kind == "gpu":
        gpus = rng.choice((1, 2))
        return replace(job, gpus_per_node=gpus, nodes=1, tasks=min(job.tasks, 4))
    if kind == "nodes":
        nodes = rng.choice((2, 3, 4))
        whole = rng.random() < 0.3
        return replace(job, nodes=nodes, tasks=nodes * rng.choice((1, 4)), exclusive=whole)
    return job


def _unlike_nodes() -> RunConfiguration:
    site = SlurmSite(
        _UNLIKE,
        parameters=SlurmParameters(bf_interval=20, bf_continue=True),
        priority=SlurmPriority(weight_age=1000, max_age_s=3600, calc_period_s=60),
    )
    recipe = JobRecipe(adorn=_of_a_kind, load=1.05, most_cpus=40)
    return RunConfiguration(
        "unlike-nodes",
        "Features, memory, weights and GPUs on three kinds of nodes.",
        site,
        lambda: jobs_of(recipe, site.machine.cpus, 10),
    )


# Limits -------------------------------------------------------------------------------------------


def _with_qos(job: RunJob, rng: random.Random) -> RunJob:
    qos = rng.choices((None, "normal", "high", "scavenge"), weights=(4, 2, 1, 2))[0]
    job = replace(job, account=_ACCOUNT_OF[job.user], qos=qos)
    return replace(job, tasks=min(job.tasks, 16)) if qos == "high" else job


def _limits() -> RunConfiguration:
    names = ("normal", "high", "scavenge")
    site = SlurmSite(
        TEN_BY_TEN,
        parameters=SlurmParameters(bf_interval=15),
        priority=SlurmPriority(weight_age=1000, weight_qos=1000, max_age_s=3600, calc_period_s=60),
        qos={
            "normal": Qos("normal", limits=Limits(max_jobs=6)),
            "high": Qos("high", priority=100, limits=Limits(max_tres_per_user={"cpu": 16})),
            "scavenge": Qos("scavenge", limits=Limits(grp_jobs=4)),
        },
        associations=_tree(
            {
                "physics": Limits(grp_tres={"cpu": 80}),
                "biology": Limits(grp_jobs=5),
                "alice": Limits(max_jobs=5),
            },
            names,
        ),
        enforced=frozenset({"associations", "limits", "qos"}),
    )
    recipe = JobRecipe(adorn=_with_qos, load=0.9)
    return RunConfiguration(
        "limits",
        "Limits of QOS (MaxJobsPU, MaxTRESPU, GrpJobs) and of associations (GrpTRES, GrpJobs,"
        " MaxJobs).",
        site,
        lambda: jobs_of(recipe, site.machine.cpus, 11),
    )


# A reservation ------------------------------------------------------------------------------------

_TWO_HALVES = Machine(
    (
        NodeGroup("west", nodes=5, cpus=10, memory_mib=1000),
        NodeGroup("east", nodes=5, cpus=10, memory_mib=1000),
    ),
    (SlurmPartition("main", ("west", "east"), default=True),),
    Selection.CPU,
)


def _maintenance() -> RunConfiguration:
    site = SlurmSite(
        _TWO_HALVES,
        parameters=SlurmParameters(bf_interval=15),
        priority=_BASIC,
        reservations=(NodeReservation("maint", start=420, duration=180, node_groups=("east",)),),
    )
    return RunConfiguration(
        "maintenance",
        "Half of the nodes are maintained (MAINT) from 7 to 10 minutes after the beginning.",
        site,
        lambda: jobs_of(JobRecipe(load=1.1), site.machine.cpus, 12),
    )


# Buffalo's micro cluster --------------------------------------------------------------------------

_SITES = Path(os.environ.get("FORETIME_TRACES", "../shared/traces")).parent / "sites"
MICRO_FOLDER = _SITES / "ubccr-micro"
_MICRO_USERS = {f"user{number}": user for number, user in enumerate(USERS, 1)}


def _micro_jobs() -> list[RunJob]:
    text = (MICRO_FOLDER / "jobs500_shrinked.events").read_text(encoding="utf-8")
    return event_jobs(text, _MICRO_USERS)


def _micro() -> RunConfiguration:
    groups = (
        NodeGroup("n", nodes=4, cpus=12, memory_mib=48_000, features=("IB", "CPU-N")),
        NodeGroup("m", nodes=4, cpus=12, memory_mib=48_000, features=("IB", "CPU-M")),
        NodeGroup("g", nodes=1, cpus=12, memory_mib=48_000, gpus=2, features=("IB", "CPU-G")),
        NodeGroup("b", nodes=1, cpus=12, memory_mib=512_000, features=("IB", "CPU-G", "BigMem")),
    )
    normal = SlurmPartition(
        "normal", ("n", "m", "g", "b"), default=True, default_memory_per_cpu_mib=2800
    )
    shares = (
        Association("root"),
        Association("root", user="root"),
        *(Association(f"account{number}", parent="root", shares=100) for number in range(3)),
    )
    names = ("normal", "supporters")
    accounts = ("account1", "account1", "account1", "account2", "account2")
    site = SlurmSite(
        Machine(groups, (normal,), Selection.CPU_MEMORY),
        parameters=SlurmParameters(
            bf_max_job_user=200,
            bf_max_job_test=1200,
            default_queue_depth=1200,
            bf_continue=True,
        ),
        priority=SlurmPriority(
            weight_fair_share=50_000,
            weight_age=50_000,
            weight_partition=1_000_000,
            weight_job_size=200_000,
            weight_qos=20_000,
            max_age_s=5 * 3600,
            decay_half_life_s=4 * 3600,
            dampening_factor=5,
        ),
        qos={"normal": Qos("normal"), "supporters": Qos("supporters", priority=100)},
        associations=shares
        + tuple(
            Association(
                account,
                user=user,
                limits=Limits(max_submit_jobs=1000),
                qos=names,
                default_qos="normal",
                default=True,
            )
            for user, account in zip(USERS, accounts, strict=True)
        ),
        enforced=frozenset({"associations", "limits", "qos"}),
        enforce_part_limits="ALL",
        switches=(
            Switch("IBN", ("n",)),
            Switch("IBM", ("m",)),
            Switch("IBG", ("g", "b")),
            Switch("TOP", switches=("IBN", "IBM", "IBG")),
        ),
    )
    return RunConfiguration(
        "ubccr-micro",
        "The micro cluster of the University at Buffalo's simulator with its 500 jobs, compressed.",
        site,
        _micro_jobs,
        shipped_jobs=False,
    )


CONFIGURATIONS: Mapping[str, RunConfiguration] = {
    each.name: each
    for each in (
        _flat("default", "Slurm's defaults throughout, priority/basic.", 1, SlurmParameters()),
        _flat(
            "part-reserve",
            "One reservation a partition, which makes backfill EASY.",
            2,
            SlurmParameters(bf_job_part_count_reserve=1, bf_interval=10),
        ),
        _flat(
            "few-tested",
            "Backfill looks at ten jobs, and begins anew when it is disturbed.",
            3,
            SlurmParameters(bf_max_job_test=10, bf_interval=15),
        ),
        _flat(
            "short-window",
            "bf_window of five minutes, shorter than most requests.",
            4,
            SlurmParameters(bf_window=300, bf_interval=15),
        ),
        _flat(
            "coarse",
            "bf_resolution of five minutes.",
            5,
            SlurmParameters(bf_resolution=300, bf_interval=15),
        ),
        _flat(
            "size-and-nice",
            "Multifactor priorities without accounting, which have no age; job arrays.",
            6,
            SlurmParameters(bf_interval=15),
            priority=_AGE_AND_SIZE,
            recipe=JobRecipe(jobs=180, adorn=_nice_or_array),
        ),
        _age_and_size(),
        _fair_share("fair-tree", "Fair Tree over accounts of three levels.", 7, _FAIR_TREE),
        _fair_share(
            "classic-fair-share",
            "Classic fair share over the same accounts.",
            8,
            replace(_FAIR_TREE, flags=frozenset({"NO_FAIR_TREE"}), dampening_factor=2),
        ),
        _partitions(),
        _unlike_nodes(),
        _limits(),
        _maintenance(),
        _flat(
            "soft-limits",
            "Every job is planned by a TimeMin of its own (time_min_as_soft_limit).",
            13,
            SlurmParameters(bf_interval=15, time_min_as_soft_limit=True),
            recipe=JobRecipe(adorn=_time_min),
            soft_limit=True,
        ),
        _micro(),
        _flat(
            "short-selection",
            "Forty jobs in some three minutes, for make test-slurm.",
            14,
            SlurmParameters(bf_interval=10),
            recipe=JobRecipe(jobs=40, load=1.4, median_runtime_s=30, longest_runtime_s=90),
        ),
    )
}
"""By name."""
