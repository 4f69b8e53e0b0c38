"""What the engine does, in plain Python: the specification that the native core must agree with.

Written to be read, not to be fast: everything is looked at anew in every pass. One loop, one
function for each decision. `foretime_sim.policy` explains the names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foretime_sim.policy import Backfill, Correction, EventOrder, Order, Policy
from foretime_sim.policy_calls import PolicyCalls
from foretime_sim.python_policy import PythonBackfill, PythonOrder
from foretime_sim.reference_policies import ReferenceJobs
from foretime_sim.role_times import ScheduledTimes, job_times
from foretime_sim.schedule import Counters, Schedule, StartedBy
from foretime_sim.workload import Int64Array, Workload

INCREMENTS_S = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


@dataclass(slots=True)
class _Job:
    index: int
    submit: int
    processors: int
    actual_runtime: int
    requested: int
    queue_time: int
    backfill_time: int
    drain_time: int
    time_limit: int
    priority: int
    start: int = 0
    end: int = 0
    expected_end: int = 0
    expects_no_end: bool = False  # past its requested time: no estimate is left
    corrections: int = 0
    started_by: StartedBy | None = None
    planned_start: int | None = None
    guarded: bool = False

    @property
    def hard_end(self) -> int:
        return self.start + self.requested


class _Simulation:
    def __init__(
        self,
        jobs: list[_Job],
        machine_processors: int,
        policy: Policy,
        calls: PolicyCalls | None = None,
    ) -> None:
        self.policy = policy
        self.calls = calls or PolicyCalls(policy, machine_processors, jobs=len(jobs))
        self.jobs = tuple(jobs)
        self.news: tuple[list[int], list[int]] = [], []  # jobs started, finished since last asked
        self.free = machine_processors
        self.to_submit = jobs
        self.pending: list[_Job] = []
        self.running: list[_Job] = []
        self.now = 0
        self.passes = self.completions = self.expiries = self.submissions = 0
        self.guard_activations = self.deepest_queue = 0

    # Events

    def run(self) -> None:
        while self.to_submit or self.running:
            self.now = min(
                [job.submit for job in self.to_submit[:1]]
                + [job.end for job in self.running]
                + [job.expected_end for job in self.running if not job.expects_no_end]
            )
            if self.policy.event_order is EventOrder.PER_TIMESTEP:
                while completing := self.first_completing():
                    self.complete(completing)
                for job in self.expiring():
                    self.correct(job)
                while self.to_submit and self.to_submit[0].submit == self.now:
                    self.arrive(self.to_submit.pop(0))
            else:
                expected = [job for job in self.running if job.end == job.expected_end == self.now]
                for job in expected:
                    self.complete(job)
                for job in self.expiring():
                    self.correct(job)
                if self.to_submit and self.to_submit[0].submit == self.now:
                    self.arrive(self.to_submit.pop(0))
                elif completing := self.first_completing():
                    self.complete(completing)
                elif not expected:
                    self.reestimate()
                    continue
            self.schedule()

    def first_completing(self) -> _Job | None:
        """Give the job that started first of those that end now."""
        return next((job for job in self.running if job.end == self.now), None)

    def expiring(self) -> list[_Job]:
        expired = [j for j in self.running if j.expected_end == self.now and not j.expects_no_end]
        return sorted(expired, key=lambda job: job.index)

    def complete(self, job: _Job) -> None:
        self.running.remove(job)
        self.free += job.processors
        self.completions += 1
        self.news[1].append(job.index)

    def arrive(self, job: _Job) -> None:
        self.pending.append(job)
        self.submissions += 1
        self.deepest_queue = max(self.deepest_queue, len(self.pending))

    def start(self, job: _Job, started_by: StartedBy) -> None:
        self.pending.remove(job)
        self.running.append(job)
        self.free -= job.processors
        job.start = self.now
        job.end = self.now + min(job.actual_runtime, job.time_limit)
        job.expected_end = self.now + job.drain_time
        job.started_by = started_by
        self.news[0].append(job.index)

    # Estimates

    def correct(self, job: _Job) -> None:
        """Give a running job whose estimate expires now another one."""
        self.expiries += 1
        if job.expected_end == job.hard_end:
            job.expects_no_end = True
            return
        estimate = self.now - job.start
        match self.policy.correction:
            case Correction.REQUESTED:
                corrected = job.requested
            case Correction.INCREMENTAL:
                if job.corrections < len(INCREMENTS_S):
                    corrected = job.drain_time + INCREMENTS_S[job.corrections]
                else:
                    corrected = job.requested
            case Correction.DOUBLING:
                corrected = 2 * estimate
            case Correction.SLURM:
                corrected = self.slurm_expected_end(job) - job.start
            case Correction.PBS:
                corrected = job.drain_time * (1 + estimate // job.drain_time)
        job.corrections += 1
        job.expected_end = job.start + min(corrected, job.requested)

    def reestimate(self) -> None:
        """Under Slurm's rule, work the estimates of jobs that outlived theirs out anew."""
        if self.policy.correction is Correction.SLURM:
            for job in self.running:
                if job.corrections > 0 and job.hard_end > self.now:
                    job.expected_end = self.slurm_expected_end(job)

    def slurm_expected_end(self, job: _Job) -> int:
        return self.now + max(1, (job.hard_end - self.now) // 2)

    # A scheduling pass

    def schedule(self) -> None:
        self.passes += 1
        self.reestimate()
        if isinstance(self.policy.order, PythonOrder):
            if not self.any_fits(self.pending) and self.policy.guard_s is None:
                return
            queue = self.by_python_order()
        else:
            queue = sorted(self.pending, key=self.place_in_queue)
        while queue and queue[0].processors <= self.free:
            self.start(queue.pop(0), StartedBy.HEAD)
        if queue and self.policy.backfill is not Backfill.NONE:
            self.backfill(queue[0], queue[1:])

    def any_fits(self, jobs: list[_Job]) -> bool:
        return any(job.processors <= self.free for job in jobs)

    def by_python_order(self) -> list[_Job]:
        if not self.pending:
            return []
        indices = np.array([job.index for job in self.pending])
        scores = self.calls.scores(self.source(), indices, self.now, *self.take_news()).tolist()
        by_index = dict(zip(indices.tolist(), scores, strict=True))
        return sorted(self.pending, key=lambda job: (-by_index[job.index], job.index))

    def place_in_queue(self, job: _Job) -> tuple[float, int]:
        """Smallest first."""
        wait, time = self.now - job.submit, job.queue_time
        match self.policy.order:
            case Order.FCFS:
                return 0, job.index
            case Order.SJF:
                return time, job.index
            case Order.LJF:
                return -time, job.index
            case Order.XF:
                return -((wait + time) / time), job.index
            case Order.WFP:
                ratio = wait / time
                return -(ratio * ratio * ratio * job.processors), job.index
            case Order.PRIORITY:
                return -job.priority, job.index
            case PythonOrder():
                raise TypeError("an order in Python is asked for the whole queue at once")

    def backfill(self, head: _Job, candidates: list[_Job]) -> None:
        on_requested = self.guard(head)
        if isinstance(self.policy.backfill, PythonBackfill):
            if not self.any_fits(candidates):
                return
            candidates = self.by_python_backfill([head, *candidates], on_requested)
        shadow_time, extra = self.plan(head, on_requested)

        def time(job: _Job) -> int:
            return job.requested if on_requested else job.backfill_time

        if self.policy.backfill is Backfill.EASY_SJBF:
            candidates = sorted(candidates, key=lambda job: (time(job), job.index))
        for job in candidates:
            if job.processors > self.free:
                continue
            ends_in_time = self.now + time(job) <= shadow_time
            if job.processors <= extra:
                self.start(job, StartedBy.OUT_OF_ORDER)
            elif ends_in_time or isinstance(self.policy.backfill, PythonBackfill):
                self.start(job, StartedBy.BACKFILLED)
            else:
                continue
            if not ends_in_time:
                extra -= job.processors

    def by_python_backfill(self, queue: list[_Job], on_requested: bool) -> list[_Job]:
        indices = np.array([job.index for job in queue])
        source, news = self.source(), self.take_news()
        chosen = self.calls.backfill(source, indices, self.now, *news, on_requested)
        return [self.jobs[index] for index in chosen.tolist()]

    def source(self) -> ReferenceJobs:
        return ReferenceJobs(self.jobs, self.running, self.free, self.now)

    def take_news(self) -> tuple[Int64Array, Int64Array]:
        started, finished = (np.array(jobs, dtype=np.int64) for jobs in self.news)
        self.news = [], []
        return started, finished

    def plan(self, head: _Job, on_requested: bool) -> tuple[int, int]:
        """When the head job can start, and how many processors it will leave free then."""

        def expected_end(job: _Job) -> int:
            return max(self.now, job.hard_end if on_requested else job.expected_end)

        def free_at(time: int) -> int:
            released = [job.processors for job in self.running if expected_end(job) <= time]
            return self.free + sum(released)

        shadow_time = min(
            time for time in map(expected_end, self.running) if free_at(time) >= head.processors
        )
        return shadow_time, free_at(shadow_time) - head.processors

    def guard(self, head: _Job) -> bool:
        """Say whether to plan on requested times, because a job has been blocked for too long."""
        if self.policy.guard_s is None:
            return False
        if head.planned_start is None:
            head.planned_start, _ = self.plan(head, on_requested=True)
        if not head.guarded and self.now > head.planned_start + self.policy.guard_s:
            head.guarded = True
            self.guard_activations += 1
        return any(job.guarded for job in self.pending)


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
) -> Schedule:
    """Schedule a whole workload; same parameters and result as `foretime_sim.engine.simulate`."""
    policy = policy or Policy()
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    columns = (
        workload.submit_time,
        workload.processors,
        workload.actual_runtime,
        workload.requested_time,
        times.queue,
        times.backfill,
        times.drain,
        times.time_limit,
        times.priority,
    )
    jobs = [
        _Job(index, *row)
        for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]
    calls = PolicyCalls.of_workload(policy, workload)
    simulation = _Simulation(list(jobs), workload.machine_processors, policy, calls)
    simulation.run()
    return Schedule(
        start_time=np.array([job.start for job in jobs], dtype=np.int64),
        end_time=np.array([job.end for job in jobs], dtype=np.int64),
        started_by=np.array([job.started_by for job in jobs], dtype=np.int8),
        corrections=np.array([job.corrections for job in jobs], dtype=np.int32),
        killed=np.array([job.actual_runtime > job.time_limit for job in jobs], dtype=np.bool_),
        counters=Counters(
            passes=simulation.passes,
            completions=simulation.completions,
            expiries=simulation.expiries,
            submissions=simulation.submissions,
            guard_activations=simulation.guard_activations,
            deepest_queue=simulation.deepest_queue,
        ),
    )
