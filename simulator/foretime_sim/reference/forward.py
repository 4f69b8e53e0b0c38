"""A forward run in plain Python: the specification of what keeps jobs from the queue, and of nodes.

Written to be read, not to be fast. A run begins with what happens at the second of the snapshot,
then goes on as `foretime_sim.reference.flat` does. Under the event order ``per-timestep`` only,
with a pass due, and without what a scheduler keeps in mind (guard notes, promises).

**Dependencies.** A job joins the queue when what it waits for has happened, and counts as submitted
then.

**Limits.** A job whose group is at a limit is kept from the queue, with the place that it has there
by its arrival. At every second at which anything happens, after ends and arrivals, the jobs kept
are gone through, larger priorities first, then by arrival; each is let in if none of its groups
would have more than its limit, counting those that run and those let in that wait.
"""

from __future__ import annotations

import bisect

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim.engine.admission import After
from foretime_sim.engine.schedule import StartedBy
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.policies.role_times import by_role
from foretime_sim.reference.flat import Simulation
from foretime_sim.reference.nodes import NodePlanner
from foretime_sim.reference.placement import NodeSimulation, Share
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.node_request import Request
from foretime_sim.workloads.resource_requests import FittedRequests


class BegunRun(Simulation):
    """A run that begins from a snapshot; jobs are the running ones, then those submitted."""

    snapshot: Snapshot
    column: list[int]  # of the snapshot, by index of job
    jobs: list[ReferenceJob]
    kept: list[ReferenceJob]
    happened: dict[tuple[int, int], int]  # when, by column and event

    def begin(self, snapshot: Snapshot, jobs: list[ReferenceJob], column: list[int]) -> None:
        """Take over what runs and what waits, and do what happens now."""
        self.snapshot, self.jobs, self.column = snapshot, jobs, column
        self.kept, self.happened, self.to_submit = [], {}, []
        for job in jobs[: len(snapshot.running)]:
            self.take_over(job)
        self.now = snapshot.now
        for job in jobs[len(snapshot.running) :]:
            if not self.waits_for(job):
                self.submit(job)
        self.timestep()

    def take_over(self, job: ReferenceJob) -> None:
        """Begin with a running job; a passed estimate was corrected when it passed."""
        now = self.snapshot.now
        job.expected_end = job.start + job.drain_time
        job.end = max(now, job.start + min(job.actual_runtime, job.time_limit))
        self.running.append(job)
        self.free -= job.processors
        while job.expected_end <= now and not job.expects_no_end:
            self.now = job.expected_end
            self.correct(job)
        self.happened[self.column[job.index], After.START] = job.start

    def waits_for(self, job: ReferenceJob) -> list[tuple[int, int, int]]:
        """Give what a job waits for: columns, events and delays; nothing if enough has happened."""
        waits = self.snapshot.pending.dependencies
        if waits is None:
            return []
        rows = np.flatnonzero(waits.job == self.column[job.index] - len(self.snapshot.running))
        events = [(int(waits.on[r]), int(waits.event[r]), int(waits.delay_s[r])) for r in rows]
        first = [event for event in events if event[:2] in self.happened]
        if len(rows) and waits.any_suffices[rows[0]]:
            return [] if first else events
        return [event for event in events if event not in first]

    def submit(self, job: ReferenceJob) -> None:
        """Submit a job that waits for nothing more."""
        waits = self.snapshot.pending.dependencies
        if waits is not None:
            row = self.column[job.index] - len(self.snapshot.running)
            rows = np.flatnonzero(waits.job == row)
            times = [
                self.happened[int(waits.on[r]), int(waits.event[r])] + int(waits.delay_s[r])
                for r in rows
                if (int(waits.on[r]), int(waits.event[r])) in self.happened
            ]
            if times:
                released = min(times) if waits.any_suffices[rows[0]] else max(times)
                job.submit = max(job.submit, released)
        bisect.insort(self.to_submit, job, key=lambda each: (each.submit, each.index))

    def note(self, job: ReferenceJob, event: After) -> None:
        """Note that a job has started or ended, and submit who waited for it."""
        before = [other for other in self.jobs if self.waits_for(other)]
        self.happened[self.column[job.index], event] = self.now
        for other in before:
            if not self.waits_for(other):
                self.submit(other)

    def start(self, job: ReferenceJob, started_by: StartedBy) -> None:
        """Start a waiting job."""
        super().start(job, started_by)
        self.note(job, After.START)

    def complete(self, job: ReferenceJob) -> None:
        """End a running job."""
        super().complete(job)
        self.note(job, After.END)

    def has_room(self, job: ReferenceJob) -> bool:
        """Whether the limits of a job's groups leave room for it."""
        inside = {self.column[j.index]: j for j in [*self.running, *self.pending]}
        for limit in self.snapshot.limits:
            columns = limit.jobs.tolist()
            if self.column[job.index] not in columns:
                continue
            members = [*(inside[at] for at in columns if at in inside), job]
            if limit.most_jobs is not None and len(members) > limit.most_jobs:
                return False
            processors = sum(member.processors for member in members)
            if limit.most_processors is not None and processors > limit.most_processors:
                return False
        return True

    def enter_queue(self, job: ReferenceJob) -> None:
        """Keep a job until it is seen whether there is room."""
        self.kept.append(job)

    def let_in(self) -> None:
        """Put jobs into the queue that there is room for."""
        for job in sorted(self.kept, key=lambda job: (-job.priority, job.rank)):
            if self.has_room(job):
                self.kept.remove(job)
                super().enter_queue(job)


class FlatRun(BegunRun):
    """On a flat pool."""


class NodeRun(BegunRun, NodeSimulation):
    """On nodes."""

    def give_nodes(self, snapshot: Snapshot, requests: list[Request]) -> None:
        """Say what jobs ask for, and what the running ones have."""
        held, partition = snapshot.running.held, snapshot.running.slurm_partition
        assert held is not None  # noqa: S101 - a snapshot on nodes has it
        assert partition is not None  # noqa: S101
        self.request = requests
        for job in range(len(snapshot.running)):
            self.shares[job], self.nodes_of[job] = [], []
            self.partition[job] = int(partition[job])
        for job, first, nodes, cpus, memory, gpus in held.rows().tolist():
            for node in range(first, first + nodes):
                number, unit = next(
                    (number, unit)
                    for number, unit in enumerate(self.units)
                    if unit.first_node <= node < unit.first_node + unit.nodes
                )
                if unit.whole:
                    cpus, memory, gpus = unit.cpus, unit.memory, unit.gpus
                self.shares[job].append(Share(number, 1, cpus, memory, gpus))


def forward_run(snapshot: Snapshot, policy: Policy, actual_runtime: Int64Array) -> Int64Array:
    """Say when every job of a snapshot starts, in one sample.

    Parameters
    ----------
    snapshot, policy
        As for `foretime_sim.engine.forward.forward_runs`.
    actual_runtime
        Shape (jobs,), seconds.

    Returns
    -------
    Int64Array
        Start times, shape (jobs,), seconds.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.stepwise import Engine
    >>> from foretime_sim.reference.forward import forward_run
    >>> engine = Engine(8, Policy())
    >>> for _ in range(2):
    ...     job = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> _ = engine.advance(60)
    >>> forward_run(Snapshot.of(engine), Policy(), np.array([600, 600])).tolist()
    [0, 600]
    """
    running, pending = snapshot.running, snapshot.pending
    drain = by_role(running.requested_time, running.scheduled_time, policy.roles)[2]
    roles = by_role(pending.requested_time, pending.scheduled_time, policy.roles)
    joins = pending.joins_at()
    rows = np.argsort(joins, kind="stable").tolist()
    column = [*range(len(running)), *(len(running) + row for row in rows)]
    jobs = []
    for row in range(len(running)):
        start, requested = int(running.start_time[row]), int(running.requested_time[row])
        job = ReferenceJob(
            row, start, int(running.processors[row]), int(actual_runtime[row]), requested,
            requested, requested, int(drain[row]), int(running.time_limits()[row]), 0, start=start,
        )  # fmt: skip
        jobs.append(job)
    priorities = pending.priorities()
    for row in rows:
        queue, backfill, drains = (int(role[row]) for role in roles)
        job = ReferenceJob(
            len(jobs), int(joins[row]), int(pending.processors[row]),
            int(actual_runtime[len(running) + row]), int(pending.requested_time[row]), queue,
            backfill, drains, int(pending.time_limits()[row]), int(priorities[row]),
        )  # fmt: skip
        jobs.append(job)
    run: FlatRun | NodeRun
    if snapshot.machine is not None:
        nothing = FittedRequests((), np.empty(0, dtype=np.int32), {}, {})
        run = NodeRun([], snapshot.machine, policy, nothing, NodePlanner)
        requests = pending.requests
        assert requests is not None  # noqa: S101 - a snapshot on nodes has them
        nobody = Request(0, 1, 0, 0, 0, (), 0)
        asked = [requests.distinct[int(requests.number[row])] for row in rows]
        run.give_nodes(snapshot, [*([nobody] * len(running)), *asked])
    else:
        calls = PolicyCalls(policy, snapshot.machine_processors)
        run = FlatRun([], snapshot.machine_processors, policy, (), PlainProfile, calls)
    run.begin(snapshot, jobs, column)
    run.go_on()
    starts = np.empty(len(snapshot), dtype=np.int64)
    starts[column] = [job.start for job in jobs]
    return starts
