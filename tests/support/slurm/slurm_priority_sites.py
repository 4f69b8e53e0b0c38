"""Sites and jobs drawn at random, for tests of Slurm's priorities.

They are drawn with a `random.Random`: hypothesis, which gives its seed, draws zeros and small
numbers so often that whole columns of factors would be the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.priorities.usage import RESET_PERIODS
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.priority_tables import (
    NO_ASSOCIATION,
    PricedJobTables,
    PriorityTables,
)
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

FLAGS = (
    "ACCRUE_ALWAYS",
    "CALCULATE_RUNNING",
    "INCR_ONLY",
    "MAX_TRES",
    "MAX_TRES_GRES",
    "NO_NORMAL_ASSOC",
    "NO_NORMAL_PART",
    "NO_NORMAL_QOS",
    "NO_NORMAL_TRES",
    "SMALL_RELATIVE_TO_TIME",
)
FAIR_SHARES: tuple[frozenset[str], ...] = (
    frozenset(),
    frozenset({"NO_FAIR_TREE"}),
    frozenset({"DEPTH_OBLIVIOUS"}),
)
MACHINE = Machine(
    (NodeGroup("cpu", nodes=6, cpus=8, memory_mib=16_000), NodeGroup("gpu", 2, 16, 64_000, 4)),
    (
        SlurmPartition("main", ("cpu", "gpu"), default=True),
        SlurmPartition("gpu", ("gpu",)),
        SlurmPartition("debug", ("cpu",)),
    ),
)


@dataclass
class Job:
    """A job; see `foretime_sim.reference.slurm.priorities.factors.PricedJob`."""

    index: int
    user: str | None = None
    account: str | None = None
    qos: str | None = None
    slurm_partitions: tuple[str, ...] = ("main",)
    submit_time: int = 0
    eligible_time: int | None = 0
    time_limit_s: int = 3600
    nice: int = 0
    site_factor: int = 0
    tres: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "mem": 1000, "node": 1})


WEIGHTS = (0, 1, 1000, 12_345, 1_000_000)
SHARES = (None, 0, 1, 1, 2, 3, 7, 40, 100)


def random_tree(rng: Random) -> tuple[Association, ...]:
    """Draw accounts up to six deep with users, shares of 0 and of the parent among them.

    Equal usages are drawn often, so that Fair Tree has ties.
    """

    def usage() -> float:
        return rng.choice([0.0, 0.0, 60.0, 60.0, 120.0, 1e9 * rng.random()])

    tree = [Association("root", raw_usage=1e9 * rng.random())]
    names = ["root"]
    for number in range(rng.randint(0, 5)):
        above, name = rng.choice(names), f"a{number}"
        names.append(name)
        tree.append(
            Association(
                name,
                parent=above,
                shares=rng.choice(SHARES),
                raw_usage=usage(),
                priority=rng.randint(0, 50),
            )
        )
    tree += [
        Association(
            rng.choice(names),
            user=f"u{rng.choice([number, number // 2])}",
            slurm_partition=rng.choice([None, None, None, "gpu"]),
            shares=rng.choice(SHARES),
            raw_usage=usage(),
            priority=rng.randint(0, 50),
            default_qos=rng.choice([None, "normal", "high"]),
        )
        for number in range(rng.randint(1, 8))
    ]
    seen = {(one.account, one.user, one.slurm_partition): one for one in tree}
    return tuple(seen.values())


def random_settings(rng: Random) -> SlurmPriority:
    """Draw weights and flags."""
    kinds = ["cpu", "mem", "node", "billing", "gres/gpu", "license/x"]
    return SlurmPriority(
        multifactor=rng.random() < 0.9,
        weight_age=rng.choice(WEIGHTS),
        weight_assoc=rng.choice(WEIGHTS),
        weight_fair_share=rng.choice(WEIGHTS[1:]),
        weight_job_size=rng.choice(WEIGHTS),
        weight_partition=rng.choice(WEIGHTS),
        weight_qos=rng.choice(WEIGHTS),
        weight_tres={kind: 1e5 * rng.random() for kind in kinds if rng.random() < 0.4},
        max_age_s=rng.choice([60, 3600, 604_800]),
        decay_half_life_s=rng.choice([0, 60, 3600, 604_800]),
        usage_reset_period=rng.choice(["NONE"] * 4 + [*RESET_PERIODS]),
        calc_period_s=rng.choice([60, 300]),
        dampening_factor=rng.randint(1, 5),
        favor_small=rng.random() < 0.5,
        flags=rng.choice(FAIR_SHARES) | {flag for flag in FLAGS if rng.random() < 0.25},
    )


def random_site(rng: Random) -> SlurmSite:
    """Draw a site: a small machine, accounts, QOS, and settings of priorities."""
    billed = ["cpu", "mem", "node", "gres/gpu", "license/x"]
    rules = {
        part.name: PartitionRules(
            priority_job_factor=rng.randint(0, 100),
            billing_weights={kind: 10 * rng.random() for kind in billed if rng.random() < 0.5},
        )
        for part in MACHINE.slurm_partitions
    }
    qos = {
        name: Qos(name, priority=rng.randint(0, 30), usage_factor=rng.choice([0.0, 1.0, 1.7]))
        for name in ("normal", "high")
    }
    return SlurmSite(
        MACHINE,
        priority=random_settings(rng),
        rules=rules,
        qos=qos,
        associations=random_tree(rng) if rng.random() < 0.95 else (),
        enforced=frozenset({"limits"}) if rng.random() < 0.5 else frozenset(),
        licenses={"x": 10},
    )


def random_jobs(rng: Random, site: SlurmSite) -> list[Job]:
    """Draw jobs of a site's users, and now and then of one whom it does not know."""
    users = [one for one in site.associations if one.user is not None]
    names = [part.name for part in site.machine.slurm_partitions]
    jobs = []
    for index in range(rng.randint(1, 12)):
        whose = rng.choice(users) if users and rng.random() < 0.9 else None
        jobs.append(
            Job(
                index,
                user="nobody" if whose is None else whose.user,
                account=None if whose is None else whose.account,
                qos=rng.choice([None, "normal", "high"]),
                slurm_partitions=tuple(rng.sample(names, rng.choice([1, 1, 2, 3]))),
                time_limit_s=rng.randint(1, 100_000),
                nice=rng.choice([0, 0, rng.randint(-1000, 1000)]),
                site_factor=rng.choice([0, 0, rng.randint(-1000, 1000)]),
                tres={
                    "cpu": rng.randint(1, 64),
                    "mem": rng.randint(1, 64_000),
                    "node": rng.randint(1, 8),
                    "gres/gpu": rng.randint(0, 8),
                    "license/x": rng.randint(0, 3),
                },
            )
        )
    return jobs


def job_tables(site: SlurmSite, tables: PriorityTables, jobs: Sequence[Job]) -> PricedJobTables:
    """Give jobs as the native core takes them."""
    accounts = Accounts(site)
    found = [accounts.association_of(job.user, job.account, job.slurm_partitions) for job in jobs]
    qos = [accounts.qos_of(one, job.qos) for one, job in zip(found, jobs, strict=True)]
    return PricedJobTables(
        associations=[NO_ASSOCIATION if one is None else one for one in found],
        slurm_partitions=[
            [site.machine.partition_index(name) for name in job.slurm_partitions] for job in jobs
        ],
        submit_times=[job.submit_time for job in jobs],
        time_limits_s=[job.time_limit_s for job in jobs],
        nices=[job.nice for job in jobs],
        site_factors=[job.site_factor for job in jobs],
        qos_factors=[0.0 if name is None else tables.qos_factors[name] for name in qos],
        usage_factors=[None if name is None else site.qos[name].usage_factor for name in qos],
        tres=[tables.counts(job.tres) for job in jobs],
    )
