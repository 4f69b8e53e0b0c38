"""Forward runs by a plausible policy, at moments of a log that tells nothing of its scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.forward import start_times_of
from foretime_sim.engine.node_snapshot import HeldNodes, NodeRequests
from foretime_sim.engine.queue_places import places
from foretime_sim.engine.snapshot import PendingJobs, Snapshot
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.workload import Workload

from foretime_studies.logged_policies.priorities import (
    LoggedPriorities,
    joined_in_order,
    with_people,
)
from foretime_studies.waits.runs import LOGGED_NOW_S

COMPARED = (Order.FCFS, Order.SJF, Order.WFP)
"""Orders beside the policy's own."""
HELD_AFTER_S = 600
"""Who could have started by the policy for so long, and did not, is held by something else."""


@dataclass(frozen=True, slots=True)
class QueueOrders:
    """A queue at one moment, and each job's place in it by several orders."""

    now: int  # seconds
    jobs: tuple[str, ...]  # ids of the pending jobs
    slurm_partition: Int64Array  # of each, as a number; 0 where there are none
    held: BoolArray  # of each, whether it is known by then to be held
    places: dict[str, Int64Array]  # by order, `OWN` among them; shape (jobs,)


OWN = "plausible"
"""The order of the plausible policy."""


class HeldJobs:
    """Jobs that wait for something that a log does not tell: another job, a date, a limit.

    They are found by what they did not do: at look after look the policy would have started them at
    once, for `HELD_AFTER_S` or longer. Who is held is so until it starts.
    """

    def __init__(self) -> None:
        self._jobs: set[str] = set()
        self._could_since: dict[str, int] = {}

    def among(self, jobs: Sequence[JobRequest]) -> BoolArray:
        """Say which jobs are held, shape (jobs,)."""
        return np.array([job.job_id in self._jobs for job in jobs], dtype=np.bool_)

    def look(self, jobs: Sequence[JobRequest], could: BoolArray, now: int) -> None:
        """Take note of which pending jobs the policy would start now."""
        for job, can in zip(jobs, could.tolist(), strict=True):
            if not can:
                self._could_since.pop(job.job_id, None)
            elif now - self._could_since.setdefault(job.job_id, now) >= HELD_AFTER_S:
                self._jobs.add(job.job_id)

    def started(self, job: JobRequest) -> None:
        """Forget a job."""
        self._could_since.pop(job.job_id, None)
        self._jobs.discard(job.job_id)


class PlausibleRuns:
    """A `foretime_sim.waits.forecaster.WaitForecaster` of forward runs by a plausible policy.

    Under a site's Slurm each slurm_partition's nodes are a pool of their CPUs, as a log does not
    say which nodes a job had; the queue has the order of the site's priorities as of the moment.
    Of jobs that are held there is no answer, and nobody waits for them.

    Attributes
    ----------
    queues
        Every queue that was asked about.
    """

    oracle = False

    def __init__(
        self,
        forward: ForwardForecaster,  # runs the queue forward; its models have another teacher
        policy: Policy,  # an order and backfilling on the flat pool, or a site's Slurm
        workload: Workload,
    ) -> None:
        self.name = forward.name
        self.queues: list[QueueOrders] = []
        self._forward = forward
        self._policy = policy
        self._processors = workload.machine_processors
        self._held = HeldJobs()
        self._pools: SitePools | None = None
        self._priorities: LoggedPriorities | None = None
        if isinstance(policy.backfill, Slurm):
            site = policy.backfill.site
            self._pools = SitePools(site)
            self._priorities = LoggedPriorities(with_people(site, workload))

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        running, asked = len(moment.snapshot.running), moment.asked
        jobs = moment.requests[running:]
        ranked, partition = self._ranked(moment, jobs)
        queue = _kept(ranked, ~self._held.among(jobs))
        pending = queue.requests[running:]
        self._held.look(pending, self._could_start(self._by_policy(queue)), moment.now)
        held = self._held.among(jobs)
        self._note(ranked, partition, held)
        queue = _kept(ranked, ~held)
        said = self._forward.forecast(self._by_policy(queue))
        free = ~held[asked - running]
        answer = WaitForecasts.none(len(asked))
        answer.wait_s[free], answer.starts_now[free] = said.wait_s, said.starts_now
        return answer

    def _ranked(self, moment: Moment, jobs: Sequence[JobRequest]) -> tuple[Moment, Int64Array]:
        """Give the moment with the site's priorities, and the jobs' slurm_partitions."""
        if self._pools is None or self._priorities is None:
            # A log's most may be a slip of seconds; the machine was as large as its header says.
            in_use = int(moment.snapshot.running.processors.sum())
            pool = replace(moment.snapshot, machine_processors=max(self._processors, in_use))
            nowhere = np.zeros(len(jobs), dtype=np.int64)
            return replace(moment, snapshot=pool, policy=self._policy), nowhere
        partition = self._pools.slurm_partitions_of(jobs)
        named = [self._pools.names[number] for number in partition.tolist()]
        priority = self._priorities.of(jobs, named, moment.now)
        snapshot = moment.snapshot
        snapshot = replace(snapshot, pending=replace(snapshot.pending, priority=priority))
        return replace(moment, snapshot=snapshot, policy=Policy(Order.PRIORITY)), partition

    def _by_policy(self, ranked: Moment) -> Moment:
        return ranked if self._pools is None else self._pools.moment(ranked)

    def _could_start(self, moment: Moment) -> BoolArray:
        """Say which pending jobs the policy starts at once, as it knows no runtimes."""
        running, jobs = len(moment.snapshot.running), len(moment.snapshot)
        if running == jobs:
            return np.zeros(0, dtype=np.bool_)
        requested = np.array([[job.requested_time for job in moment.requests]], dtype=np.int64)
        columns = np.arange(running, jobs)
        starts = start_times_of(columns, moment.snapshot, moment.policy, requested, threads=1)
        return np.asarray(starts[0] - moment.now <= LOGGED_NOW_S)

    def _note(self, ranked: Moment, partition: Int64Array, held: BoolArray) -> None:
        snapshot = ranked.snapshot
        orders = {order.value: places(snapshot, Policy(order)) for order in COMPARED}
        orders[OWN] = places(snapshot, ranked.policy)
        ids = tuple(job.job_id for job in ranked.requests[len(snapshot.running) :])
        self.queues.append(QueueOrders(ranked.now, ids, partition, held, orders))

    def submitted(self, job: JobRequest) -> None:
        """Learn nothing: the models have a teacher."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Count whose job runs."""
        self._held.started(job)
        if self._priorities is not None:
            self._priorities.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Count what its owner has used."""
        if self._priorities is not None:
            self._priorities.finished(job)


def _kept(moment: Moment, kept: BoolArray) -> Moment:
    """Give a moment without some of the pending jobs, asked about or not."""
    if kept.all():
        return moment
    snapshot, pending = moment.snapshot, moment.snapshot.pending
    running = len(snapshot.running)
    rows = np.flatnonzero(kept)
    asked = moment.asked[kept[moment.asked - running]] - running
    return replace(
        moment,
        snapshot=replace(
            snapshot,
            pending=PendingJobs(
                pending.submit_time[rows],
                pending.processors[rows],
                pending.requested_time[rows],
                priority=None if pending.priority is None else pending.priority[rows],
            ),
        ),
        requests=[
            *moment.requests[:running],
            *(moment.requests[running + row] for row in rows.tolist()),
        ],
        asked=running + np.searchsorted(rows, asked),
    )


class SitePools:
    """A site with each group of nodes as one node of all their CPUs.

    Attributes
    ----------
    names
        Of the slurm_partitions.

    InputError if a slurm_partition has several groups of nodes: jobs could not be wider than one of
    them.
    """

    def __init__(
        self,
        site: SlurmSite,  # as its file has it; what jobs may have of time and nodes is not limited
    ) -> None:
        machine = site.machine
        for part in machine.slurm_partitions:
            if len(part.node_groups) > 1:
                raise InputError(
                    f"partitions.{part.name}: node_groups has {len(part.node_groups)} groups; a log"
                    " does not say on which a job ran: make one group of them"
                )
        self.names = [part.name for part in machine.slurm_partitions]
        groups = tuple(
            replace(group, nodes=1, cpus=group.nodes * group.cpus) for group in machine.node_groups
        )
        self._machine = replace(machine, node_groups=groups)
        # Priorities are of the moment; people and their limits are not known to forward runs.
        pools = replace(
            site,
            machine=self._machine,
            priority=SlurmPriority(multifactor=False),
            qos={},
            associations=(),
            enforced=frozenset(),
        )
        self._policy = Policy(backfill=Slurm(pools))
        self._place_of = {name: place for place, name in enumerate(self.names)}
        self._group_of = np.array(
            [machine.groups_of(place)[0] for place in range(len(self.names))], dtype=np.int64
        )
        self._cpus = np.array([group.cpus for group in groups], dtype=np.int64)

    def slurm_partitions_of(self, jobs: Sequence[JobRequest]) -> Int64Array:
        """Give the slurm_partition of each job; the default where it names none that is known."""
        default = self._machine.default_partition
        numbers = [self._place_of.get(job.queue or "", default) for job in jobs]
        return np.array(numbers, dtype=np.int64)

    def fits(self, jobs: Sequence[JobRequest]) -> BoolArray:
        """Say which jobs are not wider than their pool."""
        processors = np.array([job.processors for job in jobs], dtype=np.int64)
        return np.asarray(processors <= self._cpus[self._group_of[self.slurm_partitions_of(jobs)]])

    def moment(self, moment: Moment) -> Moment:
        """Give a moment on the pools, under the site's Slurm, in the order of its priorities."""
        snapshot = moment.snapshot
        running = len(snapshot.running)
        partition = self.slurm_partitions_of(moment.requests)
        group = self._group_of[partition]
        names = [
            JobResources(slurm_partitions=(self.names[at],)) for at in partition[running:].tolist()
        ]
        pending = snapshot.pending
        requests = NodeRequests.of(self._machine, names, pending.processors, pending.requested_time)
        held = _held(group[:running], snapshot.running.processors, self._cpus)
        site_snapshot = Snapshot(
            snapshot.now,
            self._machine.cpus,
            replace(snapshot.running, slurm_partition=partition[:running], held=held),
            replace(pending, requests=requests, submit_time=joined_in_order(pending, snapshot.now)),
            machine=self._machine,
        )
        since = moment.waits_from()
        return replace(moment, snapshot=site_snapshot, policy=self._policy, since=since)


def _held(group: Int64Array, processors: Int64Array, cpus: Int64Array) -> HeldNodes:
    """Give what running jobs have of the pools; what a log has beyond them is left out."""
    rows = []
    free = cpus.tolist()
    for job, (pool, wanted) in enumerate(zip(group.tolist(), processors.tolist(), strict=True)):
        given = min(wanted, free[pool])
        free[pool] -= given
        if given:
            rows.append((job, pool, 1, given, 0, 0))
    return HeldNodes.of_rows(rows)
