"""What keeps a job from being accepted, considered or started besides room.

Source: acct_policy.c, job_mgr.c, licenses.c and partition_mgr.c of slurmctld, 22.05.8 and 25.11.7;
what each rule follows is said in `limit_checks`, `limit_submission`, `slurm_partition_limits` and
`run_minutes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from foretime_sim.reference.slurm.jobs.billing import billing
from foretime_sim.reference.slurm.limits import limit_checks, limit_kills, limit_submission
from foretime_sim.reference.slurm.limits.limit_counts import AssociationGroup, Group, QosGroup
from foretime_sim.reference.slurm.limits.limited_job import LimitedJob
from foretime_sim.reference.slurm.limits.run_minutes import ChargedJob, RunMinutes
from foretime_sim.reference.slurm.limits.slurm_partition_limits import PartitionLimits
from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.inherited_limits import AccountsOfJobs, inherited_associations
from foretime_sim.sites.slurm.limit_tables import check_partition_qos
from foretime_sim.sites.slurm.site import SlurmSite


@dataclass(frozen=True)
class _Running:
    job: LimitedJob
    slurm_partition: str
    licenses: Mapping[str, int]
    tres: Mapping[str, int]
    nodes: list[int]
    charged: ChargedJob | None


class Limits:
    """Limits of partitions, QOS and associations, licenses and throttles of arrays.

    Tell it of every job that is submitted, starts and ends; then it answers what keeps another one.
    Seconds are those of the caller's clock.

    Parameters
    ----------
    site
        The site.
    now
        When the decay thread looked last (`tick`).

    Raises
    ------
    InputError
        If associations or partitions name what is not there.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.limits.limits import Limits
    >>> from foretime_sim.sites.slurm.limits import Association, Qos
    >>> from foretime_sim.sites.slurm.limits import Limits as Those
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site = SlurmSite(
    ...     Machine.flat(8),
    ...     qos={"normal": Qos("normal", limits=Those(max_jobs=1))},
    ...     associations=(Association("physics"), Association("physics", user="ann", default=True)),
    ...     enforced=frozenset({"limits"}),
    ... )
    >>> limits = Limits(site)
    >>> job = SimpleNamespace(
    ...     index=0, user="ann", account=None, qos=None, slurm_partitions=("all",),
    ...     slurm_partition=None, time_limit_s=60, tres={"cpu": 1, "node": 1}, licenses={},
    ...     array=None, array_most_running=0,
    ... )
    >>> limits.why_refused(job), limits.why_not_considered(job, now=0)
    (None, None)
    >>> limits.submitted(job)
    >>> limits.started(job, job.tres, now=0)
    >>> limits.why_not_considered(job, now=1)
    'QOSMaxJobsPerUserLimit'
    """

    def __init__(self, site: SlurmSite, now: int = 0) -> None:
        self._site = site
        enforced = {word.lower() for word in site.enforced}
        self._associations_count = bool(enforced)
        self._limits_count = not enforced.isdisjoint({"limits", "safe", "all"})
        self._qos_counts = not enforced.isdisjoint({"qos", "all"})
        self._safe = not enforced.isdisjoint({"safe", "all"})
        self._accounts = AccountsOfJobs(inherited_associations(site.associations))
        self._groups = [
            AssociationGroup(
                found.limits,
                association=found,
                used_tres_s=dict(found.association.used_tres_s),
                used_wall_s=found.association.used_wall_s,
            )
            for found in self._accounts.all
        ]
        for group in self._groups:
            group.line = [
                self._groups[above.place] for above in self._accounts.line(group.association)
            ]
        self._qos = {
            name: QosGroup(
                qos.limits,
                used_tres_s=dict(qos.used_tres_s),
                used_wall_s=qos.used_wall_s,
                decays="NoDecay" not in qos.flags,
                qos=qos,
            )
            for name, qos in site.qos.items()
        }
        check_partition_qos(site)
        self._partitions = PartitionLimits(site)
        self._minutes = RunMinutes(site.priority, now)
        self._in_use: dict[str, int] = {}
        self._tasks_running: dict[str, int] = {}
        self._running: dict[int, _Running] = {}
        groups: list[Group] = [*self._qos.values(), *self._groups]
        may_end = any(limit_kills.ends_jobs(group.limits) for group in groups)
        self._ends_jobs = may_end and not self._safe

    # Questions ------------------------------------------------------------------------------------

    def why_refused(self, job: LimitedJob, jobs: int = 1) -> str | None:
        """Say why a job is refused as it is submitted: sbatch's words, or the limit's.

        ``jobs`` is how many tasks of an array come at once. Slurm's words are those of the last
        line but one of sbatch for limits of accounting, of its last line otherwise.
        """
        line = self._line(job)
        if not line and self._associations_count:
            return reasons.BAD_ACCOUNT
        qos = self._own_qos(job, line)
        if qos is None and self._qos and (self._qos_counts or job.qos is not None):
            return reasons.BAD_QOS
        if (
            qos
            and self._qos_counts
            and line
            and qos.qos.name not in line[0].association.allowed_qos
        ):
            return reasons.BAD_QOS
        reason = self._partitions.why_refused(
            job.slurm_partitions,
            _minutes(job.time_limit_s),
            job.tres,
            qos.qos if qos else None,
            _accounts(line),
        )
        if reason:
            return reason
        for license_name, count in job.licenses.items():
            if count > self._site.licenses.get(license_name, 0):
                return reasons.BAD_LICENSE
        if not self._limits_count:
            return None
        for slurm_partition in job.slurm_partitions:
            case = self._case(job, slurm_partition)
            reason = (
                limit_submission.why_refused(
                    case, self._counted(job, job.tres, slurm_partition), jobs
                )
                if case
                else None
            )
            if reason:
                return reason
        return None

    def why_not_considered(
        self,
        job: LimitedJob,
        now: int,
    ) -> str | None:
        """Say what keeps a pending job from being looked at; none of it hangs on free nodes.

        The loops ask `array_is_full` themselves: backfill does so only once it has asked this
        (``_attempt_backfill``). ``now`` is not needed today: what has been used is as of the last
        `tick`.
        """
        del now
        name = _where(job)
        line = self._line(job)
        own = self._own_qos(job, line)
        qos, accounts = own.qos if own else None, _accounts(line)
        reason = self._partitions.why_not_considered(
            name, _minutes(job.time_limit_s), job.tres, qos, accounts
        )
        if reason:
            return reason
        case = self._case(job, name) if self._limits_count else None
        reason = limit_checks.why_not_considered(case) if case else None
        if reason:
            return reason
        reason = self._partitions.why_not_allowed(name, qos, accounts)
        if reason:
            return reason
        nodes = job.tres.get("node", 0)
        reason = limit_checks.why_too_many_nodes(case, nodes) if case else None
        return reason or self._partitions.why_too_many_nodes(name, nodes, qos)

    def why_not_started(
        self,
        job: LimitedJob,
        tres: Mapping[str, int],
        now: int,
        nodes: Iterable[int] = (),
    ) -> str | None:
        """Say what keeps a job from starting with what was found for it.

        Parameters
        ----------
        tres
            What it would get, by kind.
        nodes
            Which nodes; empty: each counts as one that its group does not have yet. A node that
            the group has already is not counted again in limits of nodes.
        now
            As in `why_not_considered`.
        """
        del now
        if not self._limits_count:
            return None
        case = self._case(job, _where(job))
        return (
            limit_checks.why_not_started(case, self._counted(job, tres, _where(job)), list(nodes))
            if case
            else None
        )

    def why_no_licenses(self, job: LimitedJob) -> str | None:
        """Give ``Licenses`` for a job whose licenses are not free now (``license_job_test``)."""
        for name, count in job.licenses.items():
            if count > self._site.licenses.get(name, 0) - self._in_use.get(name, 0):
                return reasons.LICENSES
        return None

    def array_is_full(self, job: LimitedJob) -> bool:
        """Say whether so many tasks of its array run as may (``job_array_start_test``)."""
        if job.array is None or not job.array_most_running:
            return False
        return self._tasks_running.get(job.array, 0) >= job.array_most_running

    def blocks_lower_jobs(self, reason: str) -> bool:
        """Say whether a job with this reason blocks its partition in the main loop.

        Limits of QOS and associations do so under ``assoc_limit_stop`` alone, and those of
        partitions, arrays and licenses never (``schedule`` in job_scheduler.c). Slurm's main loop
        passes over a job that had such a reason before, without blocking, where
        `why_not_considered` still gives one.
        """
        return self._site.parameters.assoc_limit_stop and reason in _POLICY_WORDS

    @property
    def may_kill(self) -> bool:
        """Whether a running job may be ended by `is_killed`."""
        return self._ends_jobs and any(run.charged for run in self._running.values())

    def is_killed(self, job: LimitedJob, now: int) -> bool:
        """Say whether a running job is ended for a limit, with the state TIMEOUT.

        Slurm looks every 30 s (``job_time_limit``); under ``safe`` no job ends so.
        """
        running = self._running.get(job.index)
        if running is None or running.charged is None or self._safe:
            return False
        case = self._case(job, running.slurm_partition)
        ran = (now - running.charged.start) // 60
        return case is not None and limit_kills.is_killed(case, running.tres, ran)

    # Events ---------------------------------------------------------------------------------------

    def submitted(self, job: LimitedJob, now: int = 0) -> None:
        """Count a job that has been accepted."""
        del now
        for group in self._submit_groups(job, job.slurm_partitions):
            self._count_submitted(job, group, 1)

    def started(
        self,
        job: LimitedJob,
        tres: Mapping[str, int],
        now: int,
        nodes: Iterable[int] = (),
    ) -> None:
        """Count a job that starts with resources; arguments as in `why_not_started`.

        The job's time limit must be its own again: what backfill started by a least time counts
        with all of its limit (``acct_policy_alter_job``).
        """
        name = _where(job)
        where = list(nodes)
        for license_name, count in job.licenses.items():
            self._in_use[license_name] = self._in_use.get(license_name, 0) + count
        if job.array is not None:
            self._tasks_running[job.array] = self._tasks_running.get(job.array, 0) + 1
        counted = self._counted(job, tres, name)
        charged = self._charged(job, name, counted, now)
        self._running[job.index] = _Running(job, name, dict(job.licenses), counted, where, charged)
        if charged is None:
            return
        kept = self._submit_groups(job, (name,))
        for group in self._submit_groups(job, job.slurm_partitions):
            if not any(group is other for other in kept):
                self._count_submitted(job, group, -1)
        seconds = charged.limit_end - charged.start
        if charged.own_qos is not None:
            seconds = int(seconds * charged.usage_factor)
        left_s = {kind: count * seconds for kind, count in counted.items()}
        for counts in charged.counts():
            counts.start(counted, left_s, where)

    def ended(self, job: LimitedJob, now: int) -> None:
        """Take away a job that has ended, or was cancelled while it was pending."""
        running = self._running.pop(job.index, None)
        names = job.slurm_partitions if running is None else (running.slurm_partition,)
        for group in self._submit_groups(job, names):
            self._count_submitted(job, group, -1)
        if running is None:
            return
        for license_name, count in running.licenses.items():
            self._in_use[license_name] -= count
        if job.array is not None:
            self._tasks_running[job.array] -= 1
        if running.charged is None:
            return
        self._minutes.ended(running.charged, now)
        for counts in running.charged.counts():
            counts.end(running.tres, running.nodes)

    def tick(self, now: int) -> None:
        """Look as the decay thread does, every PriorityCalcPeriod, with `Priorities.tick`."""
        groups: list[Group] = [*self._qos.values(), *self._groups]
        running = (self._running[index].charged for index in sorted(self._running))
        self._minutes.tick(groups, [job for job in running if job], now)

    # Whose limits ---------------------------------------------------------------------------------

    def _line(self, job: LimitedJob) -> tuple[AssociationGroup, ...]:
        """Give a job's association and those above it; empty: it has none."""
        found = self._accounts.association(job.user, job.account, job.slurm_partitions[0])
        return tuple(self._groups[found.place].line) if found else ()

    def _own_qos(self, job: LimitedJob, line: Sequence[AssociationGroup]) -> QosGroup | None:
        """Give a job's QOS; ``None``: there is none of that name."""
        return self._qos.get(self._accounts.qos(job.qos, line[0].association if line else None))

    def _case(self, job: LimitedJob, slurm_partition: str) -> limit_checks.PolicyCase | None:
        line = self._line(job)
        if not line:
            return None
        own = self._own_qos(job, line)
        of_partition = self._partition_qos(slurm_partition)
        both = [of_partition, own]
        if own is not None and "OverPartQOS" in own.qos.flags:
            both.reverse()
        if own is of_partition:
            both.pop()
        return limit_checks.PolicyCase(
            user=job.user,
            minutes=_minutes(job.time_limit_s),
            qos=tuple(qos for qos in both if qos is not None),
            own_qos=own,
            line=line,
            safe=self._safe,
            version=self._site.version,
        )

    def _counted(
        self, job: LimitedJob, tres: Mapping[str, int], slurm_partition: str
    ) -> dict[str, int]:
        """Give all that limits count of what a job asks for or has."""
        counted = {**tres, **{f"license/{name}": count for name, count in job.licenses.items()}}
        if "billing" not in counted:
            weights = self._site.rules_of(slurm_partition).billing_weights
            counted["billing"] = int(billing(counted, weights, self._site.priority.flags))
        return counted

    def _partition_qos(self, slurm_partition: str) -> QosGroup | None:
        name = self._site.rules_of(slurm_partition).qos
        return self._qos[name] if name is not None else None

    def _charged(
        self,
        job: LimitedJob,
        slurm_partition: str,
        tres: Mapping[str, int],
        now: int,
    ) -> ChargedJob | None:
        line = self._line(job)
        if not line or not self._limits_count:
            return None
        own, of_partition = self._own_qos(job, line), self._partition_qos(slurm_partition)
        minutes = _minutes(job.time_limit_s)
        return ChargedJob(
            tres=tres,
            start=now,
            limit_end=now + minutes * 60,
            own_qos=own,
            partition_qos=None if of_partition is own else of_partition,
            line=line,
            user=job.user,
        )

    def _submit_groups(self, job: LimitedJob, slurm_partitions: Sequence[str]) -> list[Group]:
        """Give the groups in which a pending job counts, each once."""
        line = self._line(job)
        if not line or not self._limits_count:
            return []
        groups: list[Group] = [*line]
        qos = [self._own_qos(job, line), *map(self._partition_qos, slurm_partitions)]
        for group in qos:
            if group is not None and not any(group is other for other in groups):
                groups.append(group)
        return groups

    def _count_submitted(self, job: LimitedJob, group: Group, jobs: int) -> None:
        group.counts.submitted += jobs
        if isinstance(group, QosGroup):
            group.of_user(job.user).submitted += jobs
            group.of_account(self._line(job)[0].account).submitted += jobs


def _where(job: LimitedJob) -> str:
    return job.slurm_partition or job.slurm_partitions[0]


def _minutes(seconds: int) -> int:
    return -(-seconds // 60)


def _accounts(line: Sequence[AssociationGroup]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(group.account for group in line))


_KINDS = (
    "cpu", "mem", "energy", "node", "billing", "vmem", "gres/gpu", "license/any", "bb/any",
)  # fmt: skip
_POLICY_WORDS = frozenset(
    {reasons.word(limit, kind) for limit in reasons.TresLimit for kind in _KINDS}
    | {
        reasons.ASSOC_GROUP_JOBS, reasons.ASSOC_GROUP_WALL, reasons.ASSOC_JOBS,
        reasons.ASSOC_WALL, reasons.QOS_ACCOUNT_JOBS, reasons.QOS_GROUP_JOBS,
        reasons.QOS_GROUP_WALL, reasons.QOS_USER_JOBS, reasons.QOS_WALL,
    }
)  # fmt: skip
