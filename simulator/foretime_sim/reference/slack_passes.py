"""The scheduling passes of slack-based backfilling, in plain Python.

Part of the specification, `foretime_sim.reference.flat`: when `foretime_sim.reference.slack` plans,
and what is known of each job then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretime_sim.engine.schedule import StartedBy
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Slack
from foretime_sim.policies.slack import INFINITE_SLACK, Overruns, SlackJobs
from foretime_sim.policies.slack_rules import (
    FIRST_SCHEDULER_PRIORITY,
    initial_slack,
    priority,
    scheduler_priority,
)
from foretime_sim.reference.plans import Planner
from foretime_sim.reference.profile import Profile
from foretime_sim.reference.simulated import ReferenceJob, Simulated
from foretime_sim.reference.slack import PlannedJob, SlackPlan, own_price

EXTENSIONS = 10
"""An extension is a tenth of the requested time, rounded up."""


@dataclass(frozen=True, slots=True)
class Promise:
    """What a job has been promised when it came; seconds."""

    priority: float
    initial_slack: int
    latest_start: int


class SlackPlanner(Planner):
    """The plans of one simulation under slack-based backfilling.

    Parameters
    ----------
    simulation, reservations, new_profile
        See `Planner`.
    slack_jobs
        By job index; ``None``: priority 0 for everybody.
    """

    def __init__(
        self,
        simulation: Simulated,
        reservations: Sequence[AdvanceReservation],
        new_profile: Callable[[int, int], Profile],
        slack_jobs: SlackJobs | None,
    ) -> None:
        super().__init__(simulation, reservations, new_profile)
        if not isinstance(self.policy.backfill, Slack):
            raise TypeError(f"{self.policy.backfill} is not slack-based")
        self.settings = self.policy.backfill.settings
        self.slack_jobs = slack_jobs
        self.promised: dict[int, Promise] = {}  # by job index
        self.started = self.waited_s = 0

    def schedule(self) -> None:
        """Decide a scheduling pass: keep the plan, use what came free, insert new jobs."""
        pending = self.simulation.pending
        new = [job for job in pending if job.index not in self.planned]
        if len(new) > 1:
            new = [job for job in self.simulation.in_order(pending) if job in new]
        self.keep_possible()
        if self.surprised:
            self.surprised = False
            self.adopt(self.plan().remove())
        self.extend_or_kill()
        self.start_due()
        for job in new:
            self.keep_possible()
            self.insert_new(job)
            self.start_due()

    def extend_or_kill(self) -> None:
        """Give running jobs whose time is up some more if that is cheaper than to kill them."""
        if self.settings.overruns is not Overruns.EXTEND:
            return
        for job in [job for job in self.simulation.running if job.expects_no_end]:
            self.keep_possible()
            more_s = -(-job.requested // EXTENSIONS)
            first = priority(*self.given_priorities(job), FIRST_SCHEDULER_PRIORITY)
            going_on = PlannedJob(job.rank, job.processors, more_s, first, self.now, 0, 0)
            worth = own_price(self.settings, job.requested, job.processors)
            starts = self.plan().extend(going_on, worth)
            if starts is None:
                self.simulation.kill(job)
                continue
            self.adopt(starts)
            job.extended_s += more_s
            job.expected_end = job.hard_end
            job.expects_no_end = False

    def make_room(self, job: ReferenceJob) -> None:
        """Kill as few jobs whose time is up as must be for one to start, the longest over first."""
        over = [other for other in self.simulation.running if other.expects_no_end]
        if job.processors > self.simulation.free + sum(other.processors for other in over):
            return
        for other in sorted(over, key=lambda other: other.hard_end):
            if not self.fits_really(job):
                self.simulation.kill(other)

    def keep_possible(self) -> None:
        """Plan everybody anew if the claims of running jobs have broken the plan."""
        if not self.still_fit(self.waiting()):
            self.adopt(self.plan().remade())

    def insert_new(self, job: ReferenceJob) -> None:
        """Find the cheapest schedule with a new job, and promise it a latest start."""
        average_wait_s = self.average_wait(job)
        user, political = self.given_priorities(job)
        first = priority(user, political, FIRST_SCHEDULER_PRIORITY)
        new = PlannedJob(job.rank, job.processors, self.time(job), first, self.now, 0, 0)
        starts = self.plan().insert(new)
        start = starts[job.rank]
        waits_long = scheduler_priority(start - self.now, average_wait_s)
        final = priority(user, political, waits_long)
        slack = initial_slack(final, self.settings.slack_factor, average_wait_s)
        latest_start = INFINITE_SLACK if slack == INFINITE_SLACK else start + slack
        self.promised[job.index] = Promise(final, slack, latest_start)
        self.first_planned[job.index] = start
        self.planned[job.index] = start
        self.adopt(starts)

    def given_priorities(self, job: ReferenceJob) -> tuple[float, float]:
        """Give UP and PP."""
        if self.slack_jobs is None:
            return 0.0, 0.0
        user = float(self.slack_jobs.user_priority[job.index])
        return user, float(self.slack_jobs.political_priority[job.index])

    def average_wait(self, job: ReferenceJob) -> float:
        """Give AWT for a new job."""
        if self.slack_jobs is not None and self.slack_jobs.average_wait_s is not None:
            return float(self.slack_jobs.average_wait_s[job.index])
        if self.settings.average_wait_s is not None:
            return float(self.settings.average_wait_s)
        return self.waited_s / self.started if self.started else 0.0

    def start_due(self) -> None:
        """Start the jobs that are planned for now, those that came first before others."""
        due = [job for job in self.waiting() if self.planned[job.index] <= self.now]
        for job in due:
            if self.settings.overruns is Overruns.KILL_BLOCKING:
                self.make_room(job)
            if self.fits_really(job):
                longest_waiting = min(self.simulation.pending, key=lambda job: job.rank)
                self.start(job, StartedBy.HEAD if job is longest_waiting else StartedBy.BACKFILLED)

    def start(self, job: ReferenceJob, started_by: StartedBy) -> None:
        """Start a job now."""
        super().start(job, started_by)
        self.started += 1
        self.waited_s += self.now - job.submit

    def waiting(self) -> list[ReferenceJob]:
        """Give the jobs that have a planned start, in order of arrival."""
        planned = [job for job in self.simulation.pending if job.index in self.planned]
        return sorted(planned, key=lambda job: job.rank)

    def plan(self) -> SlackPlan:
        """Give the plan as it stands."""
        ends = [self.claimed_until(job) for job in self.simulation.running]
        claims = [time for claim in self.reservations for time in (claim.start, claim.end)]
        waiting = [self.planned_job(job) for job in self.waiting()]
        return SlackPlan(
            self.settings, self.now, self.profile_of_running, [*ends, *claims], waiting
        )

    def planned_job(self, job: ReferenceJob) -> PlannedJob:
        """Give a waiting job as the plan has it."""
        start, promise = self.planned[job.index], self.promised[job.index]
        slack = INFINITE_SLACK
        if promise.latest_start != INFINITE_SLACK:
            slack = promise.latest_start - start
        return PlannedJob(
            job.rank,
            job.processors,
            self.time(job),
            promise.priority,
            start,
            promise.initial_slack,
            slack,
        )

    def adopt(self, starts: dict[int, int]) -> None:
        """Make planned starts by rank the plan."""
        for job in self.waiting():
            self.planned[job.index] = starts[job.rank]

    def latest_start(self, job: ReferenceJob) -> int:
        """Give the latest start that a job was promised."""
        return self.promised[job.index].latest_start
