"""Which running jobs a job may preempt, in the order in which Slurm takes them.

Source: slurm_find_preemptable_jobs (src/interfaces/preempt.c; src/common in 22.05), plugins
preempt/qos and preempt/partition_prio, acct_policy_get_preemptable_time (acct_policy.c), 22.05.8
and 25.11.7. How many of them a job really preempts hangs on nodes: the select plugin first looks
for room without any, and then takes them one after the other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from foretime_sim.sites.slurm_limits import Qos
from foretime_sim.sites.slurm_site import SlurmSite

_MOST = 0xFFFF
_CLOSED = frozenset({"GANG", "PRIORITY", "WITHIN"})


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A running job, or the one that would preempt it.

    Attributes
    ----------
    index
        Place in the order of submission.
    qos
        Its QOS; ``None``: it has none.
    slurm_partition
        Where it runs, or would.
    priority
        As the queue has it.
    start
        When it started; of the one that would preempt, 0.
    nodes
        Which it has; of the one that would preempt, those of its slurm_partition.
    licenses
        How many of each.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.loops.preemption import RunningJob
    >>> RunningJob(0, "normal", "all", 100, start=50, nodes={1, 2}).nodes
    {1, 2}
    """

    index: int
    qos: str | None
    slurm_partition: str
    priority: int
    start: int = 0
    nodes: Collection[int] = ()
    licenses: Mapping[str, int] = field(default_factory=dict)


class Preemption:
    """Who may preempt whom on a site.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.loops.preemption import Preemption, RunningJob
    >>> from foretime_sim.sites.slurm_limits import Qos
    >>> from foretime_sim.sites.slurm_site import SlurmSite
    >>> site = SlurmSite(
    ...     Machine.flat(8),
    ...     qos={"low": Qos("low"), "high": Qos("high", preempt=("low",))},
    ...     preempt_type="preempt/qos",
    ...     preempt_mode="REQUEUE",
    ... )
    >>> running = [RunningJob(n, "low", "all", 1, nodes=range(n + 1)) for n in (2, 0)]
    >>> job = RunningJob(9, "high", "all", 1, nodes=range(8))
    >>> [each.index for each in Preemption(site).candidates(job, running, now=0)]
    [0, 2]
    """

    def __init__(self, site: SlurmSite) -> None:
        self._site = site
        self._by_qos = site.preempt_type.lower() == "preempt/qos"
        self._on = site.preempt_type.lower() != "preempt/none" and _modes(site.preempt_mode) != {
            "OFF"
        }
        self._tiers = {part.name: part.priority_tier for part in site.machine.slurm_partitions}
        words = {word.partition("=")[0]: word.partition("=")[2] for word in site.preempt_parameters}
        self._youngest_first = "youngest_first" in words
        self._for_licenses = "reclaim_licenses" in words
        exempt = words.get("min_exempt_priority")
        self._least_exempt_priority = int(exempt) if exempt else None

    def candidates(
        self, job: RunningJob, running: Iterable[RunningJob], now: int
    ) -> list[RunningJob]:
        """Give the running jobs that a job may preempt, the first to go first.

        The least important go first, and of these the smallest; under ``youngest_first`` those that
        have run for the shortest time. Equal ones in the order of submission.
        """
        if not self._on:
            return []
        found = [
            each
            for each in sorted(running, key=lambda each: each.index)
            if self.may_preempt(job, each)
            and not self._exempt(each, now)
            and self._helps(job, each)
            and self.mode(each) != "OFF"
        ]
        if self._youngest_first:
            return sorted(found, key=lambda each: -each.start)
        return sorted(found, key=self._importance)

    def may_preempt(self, job: RunningJob, other: RunningJob) -> bool:
        """Say whether a job stands above another (``preempt_p_preemptable``)."""
        cluster = _modes(self._site.preempt_mode)
        if self._by_qos:
            mine, theirs = self._qos(job), self._qos(other)
            if mine is None or theirs is None:
                return False
            modes = cluster | _modes(mine.preempt_mode)
            if mine.name == theirs.name:
                return "WITHIN" in modes and job.priority > other.priority
            if theirs.name not in mine.preempt:
                return False
            return "PRIORITY" not in modes or job.priority > other.priority
        modes = cluster | _modes(self._site.rules_of(job.slurm_partition).preempt_mode)
        if "PRIORITY" in modes and job.priority < other.priority:
            return False
        if self._tiers[other.slurm_partition] >= self._tiers[job.slurm_partition]:
            return False
        return _modes(self._site.rules_of(other.slurm_partition).preempt_mode) != {"OFF"}

    def mode(self, job: RunningJob) -> str:
        """Say what becomes of a preempted job: ``REQUEUE``, ``CANCEL``, ``SUSPEND`` or ``OFF``.

        By its own QOS or partition, otherwise by the cluster's PreemptMode
        (``preempt_p_get_mode``).
        """
        own = None
        if self._by_qos:
            qos = self._qos(job)
            own = qos.preempt_mode if qos else None
        else:
            own = self._site.rules_of(job.slurm_partition).preempt_mode
        left = _modes(own or self._site.preempt_mode) - _CLOSED
        return next(iter(sorted(left)), "OFF")

    def _exempt(self, job: RunningJob, now: int) -> bool:
        """Say whether a job is not to be preempted yet, or at all."""
        least = self._least_exempt_priority
        if least is not None and job.priority > least:
            return True
        own = self._qos(job)
        name = self._site.rules_of(job.slurm_partition).qos
        of_partition = self._site.qos.get(name) if name is not None else None
        both = [of_partition, own]
        if own is not None and "OverPartQOS" in own.flags:
            both.reverse()
        times = [
            *(qos.preempt_exempt_time_s for qos in both if qos is not None),
            self._site.preempt_exempt_time_s,
        ]
        return now < job.start + next((time for time in times if time is not None), 0)

    def _importance(self, job: RunningJob) -> int:
        """Give QOS priority or tier, and below it the nodes (``preempt_p_get_prio``)."""
        if self._by_qos:
            qos = self._qos(job)
            rank = min(qos.priority, _MOST) if qos else 0
        else:
            rank = self._tiers[job.slurm_partition]
        return (rank << 16) + min(len(job.nodes), _MOST)

    def _helps(self, job: RunningJob, other: RunningJob) -> bool:
        """Say whether a job that ends could help another (``job_overlap_and_running``)."""
        if not set(job.nodes).isdisjoint(other.nodes):
            return True
        return self._for_licenses and not set(job.licenses).isdisjoint(other.licenses)

    def _qos(self, job: RunningJob) -> Qos | None:
        return self._site.qos.get(job.qos) if job.qos is not None else None


def _modes(words: str | None) -> set[str]:
    return {word.strip().upper() for word in (words or "").split(",")} - {""}
