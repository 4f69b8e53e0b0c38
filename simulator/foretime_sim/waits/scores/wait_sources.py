"""Where waits come from: a log scheduled by the engine, or the waits as a site logged them.

Both tell what happened up to a moment and give a snapshot of it, and neither shows anything later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.estimators.estimator import RuntimeEstimator
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

from foretime_sim.engine.estimated_run import (
    finished_job,
    job_requests,
    logged_endings,
    planned_times,
    role_predictor,
)
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.said_to_sites import said_by
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload


class Happened(NamedTuple):
    """A start or an end; in the order in which forecasters are told."""

    time: int
    after: int  # 0: an end; 1: a start, told after the ends of its second; 2: an end in that second
    job: int  # position in the workload

    @property
    def is_start(self) -> bool:
        """Whether the job started then; otherwise it ended."""
        return self.after == 1


class WaitSource(Protocol):
    """A workload whose jobs start and end somehow, gone through once in the order of time."""

    workload: Workload
    policy: Policy
    requests: Sequence[JobRequest]

    def advance(self, now: int) -> list[Happened]:
        """Move the clock; give what happened since: all before ``now``, and the ends at ``now``."""
        ...

    def submit(self, job: int) -> None:
        """Let the job at this position of the workload, the next one, be submitted now."""
        ...

    def snapshot(self) -> tuple[Snapshot, Int64Array]:
        """Give the moment of the clock, with the workload's position of each column's job."""
        ...

    def finish(self) -> list[Happened]:
        """Move the clock to the last end; give what happened since."""
        ...

    def finished(self, job: int) -> FinishedJob:
        """Give a job that has ended, as the accounting has it."""
        ...


class SimulatedWaits:
    """Waits that the engine gives a workload's jobs.

    Parameters
    ----------
    workload
        Jobs in submission order.
    policy
        What the scheduler does, under the event order ``per-timestep``.
    estimator
        What gives the jobs their t_sched, used in the policy's roles; a fresh one, as for
        `foretime_sim.engine.estimated_run.simulate_with_estimator`, whose schedule this is.
        ``None``: the scheduler plans on the requested times.

    Raises
    ------
    InputError
        Under the event order ``per-event``, which has no moment between the ends and submissions
        of a second and its scheduling pass.

    Examples
    --------
    >>> from foretime_sim import Policy, generate
    >>> from foretime_sim.waits.qbets import Qbets
    >>> from foretime_sim.waits.scores.moments import ask_forecasters
    >>> from foretime_sim.waits.scores.wait_sources import SimulatedWaits
    >>> source = SimulatedWaits(generate("lublin2003", jobs=200, load=0.9, seed=1), Policy())
    >>> len(ask_forecasters(source, [Qbets()]).job)
    200
    """

    def __init__(
        self, workload: Workload, policy: Policy, estimator: RuntimeEstimator | None = None
    ) -> None:
        if policy.event_order is not EventOrder.PER_TIMESTEP:
            raise InputError(
                f"event order {policy.event_order}: forecasts are asked for after the submissions"
                " of a second and before its scheduling pass: take per-timestep"
            )
        self.workload, self.policy = workload, policy
        self.requests: Sequence[JobRequest] = job_requests(workload)
        self._endings = logged_endings(workload)
        self._estimator = estimator
        self._predict = None if estimator is None else role_predictor(estimator)
        self._actual_runtimes = workload.actual_runtime.tolist()
        self._engine = Engine(
            workload.machine_processors,
            policy,
            int(workload.submit_time[0]) if len(workload) else 0,
            epoch_of_zero=workload.epoch_of_zero,
            machine=workload.machine,
        )

    def advance(self, now: int) -> list[Happened]:
        """Move the clock; give what happened since: all before ``now``, and the ends at ``now``."""
        moves = self._engine.advance(now)
        return self._happened(moves.started.tolist(), moves.finished.tolist())

    def finish(self) -> list[Happened]:
        """Move the clock to the last end; give what happened since."""
        moves = self._engine.finish()
        return self._happened(moves.started.tolist(), moves.finished.tolist())

    def _happened(self, started: list[int], ended: list[int]) -> list[Happened]:
        core = self._engine._core
        events = [Happened(core.job(job).start_time, 1, job) for job in started]
        for job in ended:
            start, end = self._engine.ran(job)
            events.append(Happened(end, 2 if start == end else 0, job))
            if self._estimator is not None:
                self._estimator.learn_one(self.finished(job))
        events.sort(key=lambda event: event[:2])
        return events

    def submit(self, job: int) -> None:
        """Let the job at this position of the workload, the next one, be submitted now."""
        request = self.requests[job]
        scheduled = None
        if self._predict is not None:
            scheduled = planned_times(self._predict(request, self._engine.now), self.policy.roles)
        resources = None
        if isinstance(self.workload.machine, Machine):
            resources = job_resources(self.workload, job)
        self._engine.submit(
            request.submit_time,
            request.processors,
            self._actual_runtimes[job],
            request.requested_time,
            scheduled,
            resources=resources,
            user=request.user,
            project=request.project,
            said=said_by(self.workload, self.policy, job),
        )

    def snapshot(self) -> tuple[Snapshot, Int64Array]:
        """Give the moment of the clock, with the workload's position of each column's job."""
        snapshot = Snapshot.of(self._engine)
        return snapshot, np.asarray(snapshot.engine_index)

    def finished(self, job: int) -> FinishedJob:
        """Give a job that has ended, as the accounting has it."""
        return finished_job(self.requests[job], *self._engine.ran(job), self._endings[job])


class LoggedWaits:
    """Waits as logged: jobs start at submission + wait, and run for as long as they did.

    What a log does not say is assumed, and the forecasts bear it: that the machine was a flat pool
    of at least the processors that were in use at once, that the policy was the given one, and that
    the jobs that the workload's filters or `with_known_waits` left out were not there.

    Parameters
    ----------
    workload
        Jobs in submission order, each with a logged wait (see `with_known_waits`).
    policy
        What the scheduler is taken to have done.
    priority
        Shape (jobs,), for the queue order ``priority``, larger first; ``None``: none known.

    Attributes
    ----------
    machine_processors
        The workload's, or what was in use at once where that is more.

    Raises
    ------
    InputError
        If a job has no logged wait.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from foretime_sim import Policy, generate, simulate
    >>> from foretime_sim.waits.qbets import Qbets
    >>> from foretime_sim.waits.scores.moments import ask_forecasters
    >>> from foretime_sim.waits.scores.wait_sources import LoggedWaits
    >>> workload = generate("lublin2003", jobs=200, load=0.9, seed=1)
    >>> waits = simulate(workload).start_time - workload.submit_time
    >>> logged = replace(workload, logged_wait=np.ma.array(waits))
    >>> len(ask_forecasters(LoggedWaits(logged, Policy()), [Qbets()]).job)
    200
    """

    def __init__(
        self, workload: Workload, policy: Policy, priority: Int64Array | None = None
    ) -> None:
        waits = workload.logged_wait
        if waits is None or np.ma.is_masked(waits) or bool((waits < 0).any()):
            raise InputError(
                f"{workload.name}: not every job has a logged wait: leave those without out"
                " (with_known_waits)"
            )
        self.workload, self.policy = workload, policy
        self.requests: Sequence[JobRequest] = job_requests(workload)
        self._endings = logged_endings(workload)
        self._priority = priority
        self.start_time = workload.submit_time + np.ma.getdata(waits)
        self._end_time = self.start_time + workload.actual_runtime
        self._events = _events_of(self.start_time, self._end_time)
        self._next = 0
        self._now = int(workload.submit_time[0]) if len(workload) else 0
        self._running: dict[int, None] = {}  # in the order of starts
        self._pending: dict[int, None] = {}
        in_use = _most_in_use(self.start_time, self._end_time, workload.processors)
        self.machine_processors = max(workload.machine_processors, in_use)

    def advance(self, now: int) -> list[Happened]:
        """Move the clock; give what happened since: all before ``now``, and the ends at ``now``."""
        first = self._next
        while self._next < len(self._events) and self._events[self._next][:2] < (now, 1):
            self._take(self._events[self._next])
            self._next += 1
        self._now = now
        return self._events[first : self._next]

    def finish(self) -> list[Happened]:
        """Move the clock to the last end; give what happened since."""
        return self.advance(self._events[-1].time + 1 if self._events else self._now)

    def _take(self, event: Happened) -> None:
        if event.is_start:
            del self._pending[event.job]
            self._running[event.job] = None
        else:
            del self._running[event.job]

    def submit(self, job: int) -> None:
        """Let the job at this position of the workload, the next one, be submitted now."""
        self._pending[job] = None

    def snapshot(self) -> tuple[Snapshot, Int64Array]:
        """Give the moment of the clock, with the workload's position of each column's job."""
        running, pending = (
            np.fromiter(jobs, np.int64, len(jobs)) for jobs in (self._running, self._pending)
        )
        log = self.workload
        snapshot = Snapshot(
            self._now,
            self.machine_processors,
            RunningJobs(
                self.start_time[running], log.processors[running], log.requested_time[running]
            ),
            PendingJobs(
                log.submit_time[pending],
                log.processors[pending],
                log.requested_time[pending],
                priority=None if self._priority is None else self._priority[pending],
            ),
        )
        return snapshot, np.concatenate([running, pending])

    def finished(self, job: int) -> FinishedJob:
        """Give a job that has ended, as the accounting has it."""
        start, end = int(self.start_time[job]), int(self._end_time[job])
        return finished_job(self.requests[job], start, end, self._endings[job])


def with_known_waits(workload: Workload) -> tuple[Workload, int]:
    """Give the jobs whose start the log tells, and how many were left out.

    Raises
    ------
    InputError
        If the log tells no job's.
    """
    waits = workload.logged_wait
    if waits is None or not (known := np.ma.filled(waits >= 0, False)).any():
        raise InputError(f"{workload.name}: the log tells no job's wait")
    plain = np.ma.MaskedArray(np.ma.getdata(waits)[known].astype(np.int64))
    return replace(workload.take(known), logged_wait=plain), int((~known).sum())


def _events_of(start_time: Int64Array, end_time: Int64Array) -> list[Happened]:
    jobs = np.arange(len(start_time))
    times = np.concatenate([start_time, end_time])
    after = np.concatenate([np.ones_like(jobs), np.where(start_time == end_time, 2, 0)])
    both = np.tile(jobs, 2)
    order = np.lexsort((both, after, times))
    columns = (times[order].tolist(), after[order].tolist(), both[order].tolist())
    return list(map(Happened, *columns))


def _most_in_use(start_time: Int64Array, end_time: Int64Array, processors: Int64Array) -> int:
    """Give the most processors that were in use at once; those given back come first."""
    times = np.concatenate([end_time, start_time])
    change = np.concatenate([-processors, processors])
    order = np.argsort(times, kind="stable")
    return int(np.cumsum(change[order]).max(initial=0))
