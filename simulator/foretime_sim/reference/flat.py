"""What the engine does, in plain Python: the specification that the native core must agree with.

Written to be read, not to be fast: everything is looked at anew in every pass. One loop, one
function for each decision. `foretime_sim.policies.policy` explains the names. Where more than the
head job is planned, `foretime_sim.reference.plans` decides the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from foretime_estimators.arrays import Int64Array

from foretime_sim.engine.schedule import Counters, Schedule, StartedBy
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.advance_reservations import check_interval, check_reservations
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.families import Easy, NoBackfilling, Slack
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.policies.role_times import JobTimes, ScheduledTimes, job_times
from foretime_sim.policies.slack import Overruns, SlackJobs
from foretime_sim.reference.candidates import candidate_place
from foretime_sim.reference.plain_easy import Lateness, PlainEasy, jobs_beside, policy_beside
from foretime_sim.reference.plans import Planner
from foretime_sim.reference.policies import AskedPolicies
from foretime_sim.reference.profile import PlainProfile, Profile
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.reference.slack_passes import SlackPlanner
from foretime_sim.workloads.workload import Workload

INCREMENTS_S = [60, 300, 900, 1800, 3600, 7200, 18000, 36000, 72000, 180000, 360000]


class Simulation:
    """One run: events in order, and a scheduling pass after them.

    Parameters are those of `simulate`; ``calls`` asks the policies in Python.
    """

    def __init__(
        self,
        jobs: list[ReferenceJob],
        machine_processors: int,
        policy: Policy,
        reservations: Sequence[AdvanceReservation],
        new_profile: Callable[[int, int], Profile],
        calls: PolicyCalls,
        slack_jobs: SlackJobs | None = None,
    ) -> None:
        self.policy = policy
        self.asked = AskedPolicies(self, jobs, calls)
        self.machine_processors = machine_processors
        self.free = machine_processors
        self.to_submit = jobs
        self.pending: list[ReferenceJob] = []
        self.running: list[ReferenceJob] = []
        self.now = 0
        self.passes = self.completions = self.expiries = self.submissions = 0
        self.guard_activations = self.deepest_queue = 0
        self.lateness = Lateness(0, 0)
        self.planner: Planner | None = None
        if isinstance(policy.backfill, Slack):
            self.planner = SlackPlanner(self, reservations, new_profile, slack_jobs)
        elif not policy.backfill.head_only or reservations:
            self.planner = Planner(self, reservations, new_profile)
        self.beside: PlainEasy | None = None
        if policy.guard is not None and policy.guard.runs_beside:
            plain = policy_beside(policy)
            others = jobs_beside(jobs)
            self.beside = PlainEasy(
                Simulation(others, machine_processors, plain, (), new_profile, calls)
            )

    # Events

    def run(self) -> None:
        """Go from event to event until every job has ended."""
        if self.to_submit:
            self.now = self.to_submit[0].submit
        self.go_on()

    def go_on(self) -> None:
        """Go on from now until every job has ended."""
        while (time := self.next_time()) is not None:
            self.step(time)

    def next_time(self) -> int | None:
        """Give when something happens next; ``None`` once every job has ended."""
        times = (
            [job.submit for job in self.to_submit[:1]]
            + [job.end for job in self.running]
            + [job.expected_end for job in self.running if not job.expects_no_end]
            + (self.due() if self.pending else [])
        )
        return min(times, default=None)

    def step(self, time: int) -> None:
        """Do what happens next, at this time."""
        planned = self.due() if self.pending else []
        self.now = time
        if self.policy.event_order is EventOrder.PER_TIMESTEP:
            self.timestep()
        else:
            self.event(planned)

    def event(self, planned: list[int]) -> None:
        """Do the next of what happens at one second, each with a scheduling pass of its own."""
        expected = [job for job in self.running if job.end == job.expected_end == self.now]
        for job in expected:
            self.complete(job)
        for job in self.expiring():
            self.correct(job)
        if self.to_submit and self.to_submit[0].submit == self.now:
            self.arrive(self.to_submit.pop(0))
        elif completing := self.first_completing():
            self.complete(completing)
        elif not expected and self.now not in planned:
            self.reestimate()
            return
        self.schedule()

    def timestep(self) -> None:
        """Do all that happens at one second, and make a scheduling pass if one is due."""
        while completing := self.first_completing():
            self.complete(completing)
        for job in self.expiring():
            self.correct(job)
        while self.to_submit and self.to_submit[0].submit <= self.now:
            self.arrive(self.to_submit.pop(0))
        self.let_in()
        if self.now % (self.policy.scheduling_interval_s or 1) > 0:
            self.reestimate()
        else:
            self.schedule()

    def let_in(self) -> None:
        """Put jobs into the queue that have been kept from it: none here."""

    def due(self) -> list[int]:
        """Give the times to come at which a pass is due while somebody waits."""
        interval = self.policy.scheduling_interval_s
        if interval is None:
            return self.moments()
        return [self.now - self.now % interval + interval]

    def moments(self) -> list[int]:
        """Give the times to come at which a pass is due because of a plan."""
        return list(self.planner.moments()) if self.planner else []

    def first_completing(self) -> ReferenceJob | None:
        """Give the job that started first of those that end now."""
        return next((job for job in self.running if job.end == self.now), None)

    def expiring(self) -> list[ReferenceJob]:
        """Give the jobs whose estimate expires now, in log order."""
        expired = [j for j in self.running if j.expected_end == self.now and not j.expects_no_end]
        return sorted(expired, key=lambda job: job.index)

    def complete(self, job: ReferenceJob) -> None:
        """End a running job."""
        self.running.remove(job)
        self.free += job.processors
        self.completions += 1
        if self.beside:
            self.beside.ended(job.index, job.end - job.start, self.now)
        self.asked.finished.append(job.index)
        if self.planner:
            self.planner.surprised |= self.planner.claimed_until(job) > self.now
        self.claims_changed()

    def kill(self, job: ReferenceJob) -> None:
        """End a running job now."""
        job.end = self.now
        self.complete(job)

    def claims_changed(self) -> None:
        """Note that a running job ended or has another estimate."""
        if self.planner:
            self.planner.changed = True

    def estimate_changed(self) -> None:
        """Note that a running job has another estimate."""
        if self.planner:
            self.planner.surprised = True
        self.claims_changed()

    def arrive(self, job: ReferenceJob) -> None:
        """Note that a job's time has come."""
        job.rank = self.submissions
        self.submissions += 1
        self.enter_queue(job)

    def enter_queue(self, job: ReferenceJob) -> None:
        """Put a job into the queue."""
        self.pending.append(job)
        self.deepest_queue = max(self.deepest_queue, len(self.pending))

    def start(self, job: ReferenceJob, started_by: StartedBy) -> None:
        """Start a waiting job now."""
        self.pending.remove(job)
        self.running.append(job)
        self.free -= job.processors
        if self.beside:
            self.beside.started(job.index, self.now)
        job.start = self.now
        job.end = self.now + min(job.actual_runtime, job.time_limit)
        if self.policy.overruns is not Overruns.KILL:
            job.end = self.now + job.actual_runtime
        job.expected_end = self.now + job.drain_time
        job.started_by = started_by
        self.asked.started.append(job.index)

    # Estimates

    def correct(self, job: ReferenceJob) -> None:
        """Give a running job whose estimate expires now another one."""
        self.expiries += 1
        if job.expected_end == job.hard_end:
            job.expects_no_end = True
            self.claims_changed()
            return
        self.estimate_changed()
        estimate = self.now - job.start
        steps = self.policy.correction_steps
        in_steps = steps is None or job.corrections < steps
        match self.policy.correction if in_steps else Correction.REQUESTED:
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
                    self.estimate_changed()

    def slurm_expected_end(self, job: ReferenceJob) -> int:
        """Slurm's soft limit."""
        return self.now + max(1, (job.hard_end - self.now) // 2)

    # A scheduling pass

    def schedule(self) -> None:
        """Make a scheduling pass."""
        self.passes += 1
        self.reestimate()
        if self.planner:
            self.planner.schedule()
            return
        asks = isinstance(self.policy.order, PythonOrder) and self.policy.guard is None
        if asks and not self.any_fits(self.pending):
            return  # so that an order in Python is not asked for nothing
        queue = self.in_order(self.pending)
        while queue and queue[0].processors <= self.free:
            self.start(queue.pop(0), StartedBy.HEAD)
        if queue and not isinstance(self.policy.backfill, NoBackfilling):
            self.backfill(queue[0], queue[1:])

    def any_fits(self, jobs: list[ReferenceJob]) -> bool:
        """Say whether there are processors now for any of these."""
        return any(job.processors <= self.free for job in jobs)

    def in_order(self, jobs: list[ReferenceJob], order: Order | None = None) -> list[ReferenceJob]:
        """Put the waiting jobs into queue order: the policy's, unless another is given."""
        if order is None and isinstance(self.policy.order, PythonOrder):
            return self.asked.in_order(jobs)
        return sorted(jobs, key=lambda job: self.place_in_queue(job, order))

    def place_in_queue(self, job: ReferenceJob, order: Order | None = None) -> tuple[float, ...]:
        """Smallest first."""
        wait, time = self.now - job.submit, job.queue_time
        match order or self.policy.order:
            case Order.FCFS:
                return 0, job.rank
            case Order.SJF:
                return time, job.rank
            case Order.LJF:
                return -time, job.rank
            case Order.XF:
                return -((wait + time) / time), job.rank
            case Order.WFP:
                ratio = wait / time
                return -(ratio * ratio * ratio * job.processors), job.rank
            case Order.PRIORITY:
                return -job.priority, job.rank
            case PythonOrder():
                raise TypeError("an order in Python is asked for the whole queue at once")

    def backfill(self, head: ReferenceJob, candidates: list[ReferenceJob]) -> None:
        """Start what does not delay the head job."""
        on_requested = self.guard(head)
        in_python = isinstance(self.policy.backfill, PythonBackfill)
        if in_python:
            if not self.any_fits(candidates):
                return
            candidates = self.asked.chosen([head, *candidates], on_requested)
        shadow_time, extra = self.plan(head, on_requested)

        gradual = (
            self.policy.guard is not None
            and self.policy.guard.eases_in
            and self.lateness.late_s > 0
        )

        def time(job: ReferenceJob) -> int:
            if on_requested:
                return job.requested
            if not gradual:
                return job.backfill_time
            more = job.requested - job.backfill_time
            return job.backfill_time + more * self.lateness.late_s // self.lateness.bound_s

        easy = self.policy.backfill
        sorts = isinstance(easy, Easy) and easy.sorts_candidates
        if isinstance(easy, Easy) and sorts and not (on_requested and self.beside):

            def place(job: ReferenceJob) -> tuple[float, int, int]:
                given = job.requested if on_requested else None
                time, rank = candidate_place(easy.candidates, job, given)
                if easy.ageing_s is None:
                    return 0.0, time, rank
                return -(self.now - job.submit + easy.ageing_s) / time, time, rank

            candidates = sorted(candidates, key=place)
        for job in candidates:
            if job.processors > self.free:
                continue
            ends_in_time = self.now + time(job) <= shadow_time
            if job.processors <= extra:
                self.start(job, StartedBy.OUT_OF_ORDER)
            elif ends_in_time or in_python:
                self.start(job, StartedBy.BACKFILLED)
            else:
                continue
            if not ends_in_time:
                extra -= job.processors

    def plan(self, head: ReferenceJob, on_requested: bool) -> tuple[int, int]:
        """When the head job can start, and how many processors it will leave free then."""

        def expected_end(job: ReferenceJob) -> int:
            return max(self.now, job.hard_end if on_requested else job.expected_end)

        def free_at(time: int) -> int:
            released = [job.processors for job in self.running if expected_end(job) <= time]
            return self.free + sum(released)

        shadow_time = min(
            time for time in map(expected_end, self.running) if free_at(time) >= head.processors
        )
        return shadow_time, free_at(shadow_time) - head.processors

    def guard(self, head: ReferenceJob) -> bool:
        """Say whether to plan on requested times, because a job has been blocked for too long."""
        if head.blocked_since is None:
            head.blocked_since = self.now
        guard = self.policy.guard
        if guard is None:
            return False
        if self.beside:
            self.lateness = self.beside.lateness(head.index, guard, self.now)
        else:
            if head.planned_start is None:
                head.planned_start, _ = self.plan(head, on_requested=True)
            self.lateness = Lateness(self.now - head.planned_start, guard.bound_s)
        if not head.guarded and self.lateness.late_s > self.lateness.bound_s:
            head.guarded = True
            self.guard_activations += 1
        return any(job.guarded for job in self.pending)


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
    *,
    reservations: Sequence[AdvanceReservation] = (),
    slack_jobs: SlackJobs | None = None,
    new_profile: Callable[[int, int], Profile] = PlainProfile,
) -> Schedule:
    """Schedule a whole workload; same parameters and result as `engine.simulate`.

    Parameters
    ----------
    new_profile
        Makes an empty profile from a capacity and a start time (seconds), for plans.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.reference.flat import simulate
    >>> from foretime_sim import simulate as simulate_natively
    >>> workload = generate("lublin2003", jobs=50, load=0.9, seed=1)
    >>> bool((simulate(workload).start_time == simulate_natively(workload).start_time).all())
    True
    """
    policy = policy or Policy()
    check_reservations(reservations, workload.machine_processors)
    check_interval(policy, reservations)
    if reservations:
        policy.check_in(Place.RESERVATIONS)
    policy.check_slack_jobs(slack_jobs, workload)
    if time_limit is not None:
        policy.check_in(Place.TIME_LIMITS)
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    jobs = reference_jobs(workload, times)
    calls = PolicyCalls.of_workload(policy, workload, reservations)
    simulation = Simulation(
        list(jobs),
        workload.machine_processors,
        policy,
        reservations,
        new_profile,
        calls,
        slack_jobs,
    )
    simulation.run()
    planned = simulation.planner.first_planned if simulation.planner else {}
    schedule = reference_schedule(
        jobs, simulation, planned if policy.backfill.plans_every_job else None
    )
    planner = simulation.planner
    if isinstance(planner, SlackPlanner):
        latest = [planner.latest_start(job) for job in jobs]
        return replace(schedule, latest_start=np.array(latest, dtype=np.int64))
    if planner and planner.switcher:
        return replace(schedule, switching=planner.switcher.counters(jobs))
    return schedule


def reference_jobs(workload: Workload, times: JobTimes) -> list[ReferenceJob]:
    """Give the jobs of a workload, none of them begun."""
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
    return [
        ReferenceJob(index, *row)
        for index, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))
    ]


class Counting(Protocol):
    """A run that has counted what it did."""

    passes: int
    completions: int
    expiries: int
    submissions: int
    guard_activations: int
    deepest_queue: int


def reference_schedule(
    jobs: Sequence[ReferenceJob], run: Counting, first_planned: Mapping[int, int] | None
) -> Schedule:
    """Give the schedule of jobs that have all ended; first planned starts by their indices."""
    return Schedule(
        start_time=np.array([job.start for job in jobs], dtype=np.int64),
        end_time=np.array([job.end for job in jobs], dtype=np.int64),
        started_by=np.array([job.started_by for job in jobs], dtype=np.int8),
        corrections=np.array([job.corrections for job in jobs], dtype=np.int32),
        killed=np.array([job.end - job.start < job.actual_runtime for job in jobs], dtype=np.bool_),
        counters=Counters(
            passes=run.passes,
            completions=run.completions,
            expiries=run.expiries,
            submissions=run.submissions,
            guard_activations=run.guard_activations,
            deepest_queue=run.deepest_queue,
        ),
        first_planned_start=None
        if first_planned is None
        else np.array([first_planned[job.index] for job in jobs], dtype=np.int64),
    )
