"""A simulated run of a scheduler that tunes itself by forward runs.

It knows at each moment what had been submitted and had ended by then, and no more: runtimes are
learned from what has finished in this very run.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime, ExpectedRuntimeSettings
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sim.engine.estimated_run import finished_job, job_requests, logged_endings
from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.engine.job_view import Moves
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.self_tuning.forward_candidates import due_first
from foretime_sim.self_tuning.forward_switching import (
    Decision,
    ForwardSwitcher,
    ForwardSwitching,
    Future,
    forward_costs,
)
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.workloads.workload import Workload

LEAST_WAITING = 2
"""With fewer there is nothing to decide (Streit 2002, section 5.2)."""
NOBODY = "-"
"""Jobs without a user are one user's: what has the same request and width is a kind of its own."""


@dataclass(frozen=True, slots=True)
class SwitchedSchedule:
    """When jobs ran, and what was decided; arrays of shape (jobs,).

    Attributes
    ----------
    start_time, end_time
        Seconds.
    started_under
        int8: the place of the candidate that was current when each job started.
    was_due
        True where a job had waited for too long, and went before all orders.
    decisions
        In order of time.
    decision_s
        Processor time of each decision, seconds.
    """

    start_time: Int64Array
    end_time: Int64Array
    started_under: Int8Array
    was_due: BoolArray
    decisions: tuple[Decision, ...]
    decision_s: tuple[float, ...] = field(compare=False)


class Learned:
    """What has been learned of runtimes and submissions.

    Parameters
    ----------
    half_life_jobs
        See `ForwardSwitching`.
    """

    def __init__(self, half_life_jobs: float) -> None:
        self.mean = ExpectedRuntime(ExpectedRuntimeSettings(half_life_jobs=half_life_jobs))
        self.runtimes = RuntimeHistories()
        self.arrivals = ResampledArrivals(self.runtimes)

    def expected_s(self, job: JobRequest, now: int) -> int:
        """Give the mean runtime that is expected of a job, seconds."""
        return self.mean.predict_one(job, now)

    def futures(
        self, jobs: list[JobRequest], age: Int64Array, now: int, until: int, samples: int, seed: int
    ) -> list[Future]:
        """Draw how things may go on from now; parameters as those of the models."""
        rng = np.random.default_rng([seed, now])
        runtimes = self.runtimes.sample(jobs, age, now, samples, rng)
        arrivals = self.arrivals.sample(now, until, samples, rng)
        # Many are alike, as they are drawn from the same past.
        columns = np.stack([arrivals.processors, arrivals.requested_time], axis=1)
        kinds, which = np.unique(columns, axis=0, return_inverse=True)
        means = np.array(
            [
                self.mean.predict_one(JobRequest("", NOBODY, None, width, requested, now), now)
                for width, requested in kinds.tolist()
            ],
            dtype=np.float64,
        )
        expected = means[which.reshape(-1)] if len(kinds) else np.zeros(0)
        return [
            Future(runtimes[sample], *_of_sample(arrivals, expected, sample))
            for sample in range(samples)
        ]


def _of_sample(
    arrivals: SampledArrivals, expected_s: Float64Array, sample: int
) -> tuple[SampledArrivals, Float64Array]:
    chosen = np.flatnonzero(arrivals.sample == sample)
    chosen = chosen[np.argsort(arrivals.submit_time[chosen], kind="stable")]
    of_it = arrivals.rows(chosen)
    return replace(of_it, sample=np.zeros(len(chosen), dtype=np.int64)), expected_s[chosen]


def simulate_switching(
    workload: Workload,
    settings: ForwardSwitching | None = None,
    *,
    progress: Callable[[int], None] | None = None,
) -> SwitchedSchedule:
    """Run a workload under a scheduler that tunes itself by forward runs.

    Parameters
    ----------
    workload
        On a flat pool of processors.
    settings
        The defaults if ``None``.
    progress
        Called with the number of jobs submitted now and then.

    Raises
    ------
    InputError
        If the workload has a machine of nodes or a Blue Gene.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.self_tuning.forward_switching import ForwardSwitching
    >>> from foretime_sim.self_tuning.switched_run import simulate_switching
    >>> workload = generate("lublin2003", jobs=100, load=0.9, seed=1)
    >>> switched = simulate_switching(workload, ForwardSwitching(every_jobs=50, ahead_jobs=50))
    >>> len(switched.start_time)
    100
    """
    if workload.machine is not None:
        raise InputError(
            f"{workload.name}: forward switching is simulated on a flat pool: leave the machine out"
        )
    run = _Run(workload, settings or ForwardSwitching())
    for job in range(len(workload)):
        run.submit(job)
        if progress is not None and job % 100 == 99:
            progress(job + 1)
    run.finish()
    return SwitchedSchedule(
        run.start_time,
        run.end_time,
        run.started_under,
        run.was_due,
        tuple(run.decisions),
        tuple(run.decision_s),
    )


class _Run:
    """One run: the engine, who is who in it, and what has been learned."""

    def __init__(self, workload: Workload, settings: ForwardSwitching) -> None:
        jobs = len(workload)
        self.workload, self.settings = workload, settings
        self.requests = [_of_somebody(job) for job in job_requests(workload)]
        self.endings = logged_endings(workload)
        self.learned = Learned(settings.half_life_jobs)
        self.switcher = ForwardSwitcher(settings)
        self.now = int(workload.submit_time[0]) if jobs else 0
        self.engine = self.new_engine()
        self.jobs_in_engine: list[int] = []  # by the engine's index
        self.index = np.full(jobs, -1, dtype=np.int64)  # in the engine
        self.waiting: dict[int, None] = {}  # in order of submission
        self.running: dict[int, None] = {}  # in order of their starts
        self.expected_s = np.ones(jobs)
        self.due = np.zeros(jobs, dtype=np.int64)
        self.next_due: list[tuple[int, int]] = []
        self.backlog = 0.0  # processor-seconds that wait, as expected
        self.start_time = np.zeros(jobs, dtype=np.int64)
        self.end_time = np.zeros(jobs, dtype=np.int64)
        self.started_under = np.zeros(jobs, dtype=np.int8)
        self.was_due = np.zeros(jobs, dtype=np.bool_)
        self.decisions: list[Decision] = []
        self.decision_s: list[float] = []
        self.undecided = 0  # submissions since the last decision

    def new_engine(self) -> Engine:
        """Give an engine that does what is current."""
        candidate = self.settings.candidates[self.switcher.current]
        return Engine(self.workload.machine_processors, candidate.policy(), self.now)

    # Time

    def submit(self, job: int) -> None:
        """Go on to a job's submission, decide if it is time to, and submit it."""
        request = self.requests[job]
        self.go_on(request.submit_time)
        if self.undecided >= self.settings.every_jobs and len(self.waiting) >= LEAST_WAITING:
            self.decide()
            self.undecided = 0
        self.undecided += 1
        self.learned.arrivals.submitted(request)
        self.expected_s[job] = self.learned.expected_s(request, self.now)
        backlog_s = self.backlog / self.workload.machine_processors
        self.due[job] = self.settings.patience.until(self.now, backlog_s)
        heapq.heappush(self.next_due, (int(self.due[job]), job))
        self.waiting[job] = None
        self.backlog += request.processors * self.expected_s[job]
        self.enter(job)

    def finish(self) -> None:
        """Go on until every job has ended."""
        while self.waiting and self.next_due:
            self.go_on(self.next_due[0][0])
        self.note(self.engine.finish())

    def go_on(self, until: int) -> None:
        """Move the clock, with a stop wherever a job becomes due."""
        while self.next_due and self.next_due[0][0] <= until:
            due, job = heapq.heappop(self.next_due)
            if job not in self.waiting:
                continue
            self.advance(max(due, self.now))
            if job in self.waiting:
                self.was_due[job] = True
                self.engine.update(int(self.index[job]), priority=self.priority([job])[0])
        self.advance(until)

    def advance(self, until: int) -> None:
        """Move the clock, and learn what has ended."""
        if until > self.now:
            self.now = until
            self.note(self.engine.advance(until))

    def note(self, moves: Moves) -> None:
        """Take in what started and what ended."""
        for index in moves.started.tolist():
            job = self.jobs_in_engine[index]
            del self.waiting[job]
            self.running[job] = None
            self.start_time[job] = self.engine.started_at(index)
            self.started_under[job] = self.switcher.current
            self.backlog -= self.requests[job].processors * self.expected_s[job]
        for index in moves.finished.tolist():
            job = self.jobs_in_engine[index]
            del self.running[job]
            self.end_time[job] = self.engine.ran(index)[1]
            started, ended = int(self.start_time[job]), int(self.end_time[job])
            finished = finished_job(self.requests[job], started, ended, self.endings[job])
            self.learned.mean.learn_one(finished)
            self.learned.runtimes.learn_one(finished)
            self.learned.arrivals.finished(finished)

    # The queue

    def priority(self, jobs: list[int]) -> list[int]:
        """Give the priorities of jobs under what is current."""
        given = self.workload
        current = self.settings.candidates[self.switcher.current].priorities(
            given.submit_time[jobs],
            given.processors[jobs],
            given.requested_time[jobs],
            self.expected_s[jobs],
        )
        priorities: list[int] = due_first(current, self.due[jobs], self.now).tolist()
        return priorities

    def enter(self, job: int) -> None:
        """Put a waiting job into the engine."""
        given = self.workload
        self.index[job] = self.engine.add_pending(
            int(given.submit_time[job]),
            int(given.processors[job]),
            int(given.actual_runtime[job]),
            int(given.requested_time[job]),
            priority=self.priority([job])[0],
        )
        self.jobs_in_engine.append(job)

    # Decisions

    def decide(self) -> None:
        """Compare the candidates, and go over to another if it is better."""
        began = time.process_time()
        running, waiting = list(self.running), list(self.waiting)
        snapshot = self.snapshot(running, waiting)
        age = np.zeros(len(snapshot), dtype=np.int64)
        age[: len(running)] = self.now - self.start_time[running]
        submitted = self.jobs_submitted()
        back = self.workload.submit_time[max(0, submitted - self.settings.ahead_jobs)]
        futures = self.learned.futures(
            [self.requests[job] for job in running + waiting],
            age,
            self.now,
            2 * self.now - int(back),
            self.settings.samples,
            self.settings.seed,
        )
        costs = forward_costs(
            snapshot, self.expected_s[waiting], self.due[waiting], futures, self.settings.candidates
        )
        decision = self.switcher.decide(self.now, len(waiting), costs)
        self.decisions.append(decision)
        self.decision_s.append(time.process_time() - began)
        if decision.chosen != decision.before:
            self.go_over(decision)

    def jobs_submitted(self) -> int:
        """Count the submissions so far."""
        return int(np.searchsorted(self.workload.submit_time, self.now, side="left"))

    def snapshot(self, running: list[int], waiting: list[int]) -> Snapshot:
        """Give what runs and what waits."""
        given = self.workload
        return Snapshot(
            self.now,
            given.machine_processors,
            RunningJobs(
                self.start_time[running], given.processors[running], given.requested_time[running]
            ),
            PendingJobs(
                given.submit_time[waiting], given.processors[waiting], given.requested_time[waiting]
            ),
        )

    def go_over(self, decision: Decision) -> None:
        """Go over to another candidate: other priorities, and another engine where it backfills."""
        candidates = self.settings.candidates
        waiting = list(self.waiting)
        if candidates[decision.chosen].policy() == candidates[decision.before].policy():
            for job, priority in zip(waiting, self.priority(waiting), strict=True):
                self.engine.update(int(self.index[job]), priority=priority)
            return
        self.engine = self.new_engine()
        self.jobs_in_engine = []
        given = self.workload
        for job in self.running:
            self.index[job] = self.engine.add_running(
                int(self.start_time[job]),
                int(given.processors[job]),
                int(given.actual_runtime[job]),
                int(given.requested_time[job]),
            )
            self.jobs_in_engine.append(job)
        for job in waiting:
            self.enter(job)


def _of_somebody(job: JobRequest) -> JobRequest:
    return job if job.user is not None else replace(job, user=NOBODY)
