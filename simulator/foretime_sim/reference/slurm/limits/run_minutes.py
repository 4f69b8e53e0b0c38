"""What jobs have used, as the decay thread charges it to QOS and associations.

Source: _apply_decay, _apply_new_usage, priority_p_job_end (plugins/priority/multifactor,
priority_multifactor.c) and priority_p_job_end (plugins/priority/basic), 22.05.8 and 25.11.7.

Limits of TRES-minutes go by this alone: between two looks of the thread (PriorityCalcPeriod) a
running job neither uses up its group's minutes nor gives back those that it may still use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretime_sim.reference.slurm.limits.limit_counts import (
    AssociationGroup,
    Counts,
    Group,
    QosGroup,
)
from foretime_sim.sites.slurm.priority import SlurmPriority


@dataclass(frozen=True)
class ChargedJob:
    """A running job, and who is charged for it.

    Attributes
    ----------
    tres
        What it has.
    start, limit_end
        When it began, and when its time limit ends.
    own_qos, partition_qos
        ``None``: it has none; of the partition none but its own again.
    line
        Its association and those above it.
    user
        Whose it is.
    """

    tres: Mapping[str, int]
    start: int
    limit_end: int
    own_qos: QosGroup | None
    partition_qos: QosGroup | None
    line: tuple[AssociationGroup, ...]
    user: str | None

    @property
    def usage_factor(self) -> float:
        """UsageFactor of its own QOS."""
        return self.own_qos.qos.usage_factor if self.own_qos else 1.0

    def qos(self) -> Iterable[QosGroup]:
        """Give the QOS that are charged."""
        return (qos for qos in (self.own_qos, self.partition_qos) if qos is not None)

    def counts(self, *, of_partition_qos: bool = True) -> Iterable[Counts]:
        """Give all counts of what it may still use."""
        account = self.line[0].account
        for qos in self.qos() if of_partition_qos else filter(None, [self.own_qos]):
            yield from (qos.counts, qos.of_user(self.user), qos.of_account(account))
        for group in self.line:
            yield group.counts


class RunMinutes:
    """Charges jobs as the decay thread does.

    Parameters
    ----------
    priority
        PriorityType, PriorityDecayHalfLife.
    now
        When the thread looked last.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.limits.run_minutes import RunMinutes
    >>> from foretime_sim.sites.slurm.priority import SlurmPriority
    >>> RunMinutes(SlurmPriority(), now=0).last_look
    0
    """

    def __init__(self, priority: SlurmPriority, now: int) -> None:
        half_life = priority.decay_half_life_s
        self._multifactor = priority.multifactor
        self._decay = 1 - (0.693 / half_life) if half_life > 0 else 1.0
        self.last_look = now

    def tick(self, groups: Iterable[Group], running: Iterable[ChargedJob], now: int) -> None:
        """Let what has been used decay, and charge what runs; jobs in the order of submission."""
        if not self._multifactor or now <= self.last_look:
            return
        decay = self._decay ** float(now - self.last_look)
        if decay != 1.0:
            for group in groups:
                if group.decays:
                    group.used_wall_s *= decay
                    for kind in group.used_tres_s:
                        group.used_tres_s[kind] *= decay
        for job in running:
            self._charge(job, now, ended=False)
        self.last_look = now

    def ended(self, job: ChargedJob, now: int) -> None:
        """Charge a job that has ended, and give back what it had left."""
        if self._multifactor:
            self._charge(job, now, ended=True)
            return
        # priority/basic forgets UsageFactor and the partition's QOS here.
        left = {kind: count * (job.limit_end - job.start) for kind, count in job.tres.items()}
        for counts in job.counts(of_partition_qos=False):
            counts.take_left(left)

    def _charge(self, job: ChargedJob, now: int, *, ended: bool) -> None:
        since = max(job.start, self.last_look)
        ran = max(float(now - since), 0.0)
        if since >= job.limit_end:
            left = 0
        elif ended:
            left = job.limit_end - since
        else:
            left = min(now, job.limit_end) - since
        plain = ran
        decayed = ran * self._decay**ran
        if job.own_qos is not None:
            factor = job.usage_factor
            plain, decayed, left = plain * factor, decayed * factor, int(left * factor)
        left_s = {kind: left * count for kind, count in job.tres.items() if count}
        for qos in job.qos():
            _use(qos, decayed if qos.decays else plain, job.tres)
        for group in job.line:
            _use(group, decayed, job.tres)
        for counts in job.counts():
            counts.take_left(left_s)


def _use(group: Group, seconds: float, tres: Mapping[str, int]) -> None:
    group.used_wall_s += seconds
    for kind, count in tres.items():
        if count:
            group.used_tres_s[kind] = group.used_tres_s.get(kind, 0.0) + seconds * count
