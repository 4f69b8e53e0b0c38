"""The factors of a job's priority, weighed (``set_priority_factors`` of priority_multifactor.c)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from foretime_sim.reference.slurm.jobs.billing import billing, kinds_in_order
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.site import SlurmSite

_UINT32 = 0xFFFFFFFF


class PricedJob(Protocol):
    """What priorities need to know of a job; times in epoch seconds.

    ``eligible_time`` is ``None`` while the job is held, waits for its begin time or for others.
    ``tres`` is what it asks for (cpu, mem in MiB, node, gres/gpu, license/NAME).
    """

    @property
    def index(self) -> int: ...  # noqa: D102
    @property
    def user(self) -> str | None: ...  # noqa: D102
    @property
    def account(self) -> str | None: ...  # noqa: D102
    @property
    def qos(self) -> str | None: ...  # noqa: D102
    @property
    def slurm_partitions(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def submit_time(self) -> int: ...  # noqa: D102
    @property
    def eligible_time(self) -> int | None: ...  # noqa: D102
    @property
    def time_limit_s(self) -> int: ...  # noqa: D102
    @property
    def nice(self) -> int: ...  # noqa: D102
    @property
    def site_factor(self) -> int: ...  # noqa: D102
    @property
    def tres(self) -> Mapping[str, int]: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Factors:
    """Weighed factors as ``sprio -l`` shows them, but for rounding.

    Attributes
    ----------
    age, association, fair_share, job_size, slurm_partition, qos
        Each from 0 to 1 times its weight, unless a flag leaves it as it is.
    tres
        By kind; without those of no weight.
    site_factor, nice
        Added, and taken away.
    """

    age: float = 0.0
    association: float = 0.0
    fair_share: float = 0.0
    job_size: float = 0.0
    slurm_partition: float = 0.0
    qos: float = 0.0
    tres: Mapping[str, float] = field(default_factory=dict)
    site_factor: int = 0
    nice: int = 0

    @property
    def priority(self) -> int:
        """Their sum, as ``_get_priority_internal`` rounds it: down, at least 1, 32 bits."""
        total = self.age + self.association + self.fair_share + self.job_size
        total = total + self.slurm_partition + self.qos + self._tres()
        return rounded(total + float(self.site_factor) - float(self.nice))

    @property
    def priority_among_several(self) -> int:
        """The same of a job in several slurm_partitions, added up in another order."""
        total = self.age + self.association + self.fair_share + self.job_size + self.qos
        total = total + self._tres() + float(self.site_factor) - float(self.nice)
        return rounded(self.slurm_partition + total)

    def aged(self, age: float, fair_share: float) -> Factors:
        """Give them with the two that change with time."""
        return replace(self, age=age, fair_share=fair_share)

    def _tres(self) -> float:
        total = 0.0
        for value in self.tres.values():
            total += value
        return total


def rounded(priority: float) -> int:
    """Make a priority of a sum: whole, at least 1 (0 is for held jobs), at most 2^32 - 1."""
    return min(int(max(priority, 1.0)), _UINT32)


class FactorsOfJobs:
    """Works out factors on a site; what is the same for all jobs is worked out once."""

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._settings = site.priority
        self._accounts = Accounts(site)
        self._flags = site.priority.flags
        self._cpus, self._nodes = site.machine.cpus, site.machine.nodes
        names = [part.name for part in site.machine.slurm_partitions]
        factors = {name: site.rules_of(name).priority_job_factor for name in names}
        self._highest_partition = max([1, *factors.values()])
        self._partition_factors = factors
        self._highest_qos = max((qos.priority for qos in site.qos.values()), default=0)
        self._highest_association = max((one.priority for one in site.associations), default=0)
        self._tres_of_partition = {
            name: partition_tres(site, place) for place, name in enumerate(names)
        }

    def fixed(self, job: PricedJob, tres: Mapping[str, int], slurm_partition: str) -> Factors:
        """Give all factors but age and fair share; ``tres``: what it asks for, or was given."""
        settings = self._settings
        association = self._accounts.association_of(job.user, job.account, job.slurm_partitions)
        qos = self._accounts.qos_of(association, job.qos)
        size = self._of_job_size(job, tres.get("cpu", 0)) if settings.weight_job_size else 0.0
        return Factors(
            association=self._of_association(association) * float(settings.weight_assoc),
            job_size=size * float(settings.weight_job_size),
            slurm_partition=self._of_partition(slurm_partition) * float(settings.weight_partition),
            qos=self._of_qos(qos) * float(settings.weight_qos),
            tres=self._of_tres(tres, slurm_partition),
            site_factor=job.site_factor,
            nice=job.nice,
        )

    def age(self, job: PricedJob, now: int) -> float:
        """Give the age factor, weighed: time since it was eligible over PriorityMaxAge."""
        if not self._settings.weight_age or not self._site.associations:
            return 0.0  # "PriorityWeightAge can only be used with SlurmDBD, ignoring"
        since = job.submit_time if "ACCRUE_ALWAYS" in self._flags else job.eligible_time
        if since is None:
            return 0.0
        waited, most = max(now - since, 0), self._settings.max_age_s
        share = float(waited) / float(most) if waited < most else 1.0
        return share * float(self._settings.weight_age)

    def _of_association(self, association: int | None) -> float:
        if association is None or not self._settings.weight_assoc:
            return 0.0
        priority = self._site.associations[association].priority
        if "NO_NORMAL_ASSOC" in self._flags or "NO_NORMAL_ALL" in self._flags:
            return float(priority)
        highest = self._highest_association
        return float(priority) / float(highest) if highest else 0.0

    def _of_qos(self, qos: str | None) -> float:
        priority = self._site.qos[qos].priority if qos is not None else 0
        if not priority:
            return 0.0
        if "NO_NORMAL_QOS" in self._flags or "NO_NORMAL_ALL" in self._flags:
            return float(priority)
        return float(priority) / float(self._highest_qos)

    def _of_partition(self, slurm_partition: str) -> float:
        factor = self._partition_factors[slurm_partition]
        if "NO_NORMAL_PART" in self._flags or "NO_NORMAL_ALL" in self._flags:
            return float(factor)
        return float(factor) / float(self._highest_partition)

    def _of_job_size(self, job: PricedJob, cpus: int) -> float:
        """Nodes asked for and CPUs, each as a part of the machine's; both count for half."""
        nodes = job.tres.get("node", 1)
        favor_small = self._settings.favor_small
        if "SMALL_RELATIVE_TO_TIME" in self._flags:
            size = float(nodes) * float(self._cpus) / float(self._nodes)
            size = max(size, float(cpus))
            size = size / float(max(-(-job.time_limit_s // 60), 1))
            size = size / float(self._cpus)
            if favor_small:
                size = 1.0 - size
        elif favor_small:
            size = float(self._nodes - nodes) / float(self._nodes)
            if cpus:
                size = (size + float(self._cpus - cpus) / float(self._cpus)) / 2
        else:
            size = float(nodes) / float(self._nodes)
            if cpus:
                size = (size + float(cpus) / float(self._cpus)) / 2
        return min(max(size, 0.0), 1.0)

    def _of_tres(self, tres: Mapping[str, int], slurm_partition: str) -> dict[str, float]:
        weights = self._settings.weight_tres
        if not weights:
            return {}
        there = self._tres_of_partition[slurm_partition]
        as_they_are = "NO_NORMAL_TRES" in self._flags or "NO_NORMAL_ALL" in self._flags
        rules = self._site.rules_of(slurm_partition)
        asked = dict(tres) | {"billing": int(billing(tres, rules.billing_weights, self._flags))}
        weighed = {}
        for kind in tres_order(set(asked)):
            value = float(asked[kind])
            if not as_they_are:
                value = value / float(there[kind]) if there.get(kind) else 0.0
            if weights.get(kind):
                weighed[kind] = value * weights[kind]
        return weighed


def tres_order(kinds: set[str]) -> list[str]:
    """Put kinds in Slurm's order, with ``billing`` after ``node``."""
    before = [kind for kind in kinds_in_order(kinds) if kind in ("cpu", "mem", "node")]
    after = [kind for kind in kinds_in_order(kinds) if kind not in ("cpu", "mem", "node")]
    return [*before, *(["billing"] if "billing" in kinds else []), *after]


def partition_tres(site: SlurmSite, place: int) -> dict[str, int]:
    """Give what a slurm_partition has in all (``_calc_part_tres`` of partition_mgr.c)."""
    machine = site.machine
    groups = [machine.node_groups[group] for group in machine.groups_of(place)]
    there = {
        "cpu": sum(group.nodes * group.cpus for group in groups),
        "mem": sum(group.nodes * group.memory_mib for group in groups),
        "node": sum(group.nodes for group in groups),
        "gres/gpu": sum(group.nodes * group.gpus for group in groups),
    }
    there |= {f"license/{name}": count for name, count in site.licenses.items()}
    rules = site.rules_of(machine.slurm_partitions[place].name)
    there["billing"] = int(billing(there, rules.billing_weights, site.priority.flags))
    return there
