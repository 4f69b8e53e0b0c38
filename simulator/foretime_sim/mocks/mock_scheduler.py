"""What the mock Slurm and the mock PBS have in common: jobs in the engine, and a virtual clock."""

from __future__ import annotations

import enum
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.engine.job_view import Moves
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.site_jobs import SiteJob


class Phase(enum.Enum):
    """Where a job of a mock stands."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True, kw_only=True)
class MockJob:
    """A job as the mock keeps it; times are epoch seconds.

    Attributes
    ----------
    submit_time, start_time, end_time
        0 where it has not come to that.
    kill_limit
        Seconds after which it is ended.
    phase
        Where it stands.
    ending
        How it ended, ``None`` before.
    """

    submit_time: int
    kill_limit: int = 0
    start_time: int = 0
    end_time: int = 0
    phase: Phase = Phase.WAITING
    ending: Ending | None = None


JobT = TypeVar("JobT", bound=MockJob)


class MockScheduler(Generic[JobT]):
    """A scheduler driven by a virtual clock, around the engine.

    Parameters
    ----------
    processors
        Size of the machine.
    policy
        How the engine schedules.
    start_time
        The clock's first reading, epoch seconds.
    reservations
        Advance reservations, on the mock's clock.

    Attributes
    ----------
    now
        The clock, epoch seconds.
    adjusted_jobs
        Jobs submitted so far that the scheduler plans with less than t_req.
    hook_errors
        Error lines that the hook has written.

    Examples
    --------
    >>> from foretime_sim import MockSlurm, Policy
    >>> from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
    >>> slurm = MockSlurm(SlurmSetup(processors=8), Policy())
    >>> job = slurm.submit(Submission("ann", "physics", None, 8, 3600, 600))
    >>> slurm.advance(60)
    >>> slurm.next_event_time
    600
    """

    def __init__(
        self,
        processors: int,
        policy: Policy,
        start_time: int = 0,
        reservations: Sequence[AdvanceReservation] = (),
        machine: Machine | None = None,
    ) -> None:
        self._engine = Engine(processors, policy, start_time, reservations, machine=machine)
        self._has_nodes = machine is not None
        self._jobs: list[JobT] = []
        self._planned: list[int] = []
        self._ended: list[int] = []
        self._end_times: list[int] = []
        self.now = start_time
        self.hook_errors = 0
        self.adjusted_jobs = 0

    def __len__(self) -> int:
        return len(self._jobs)

    def advance(self, until: int) -> None:
        """Bring the clock to ``until`` (epoch seconds); jobs submitted next take part in its pass.

        What ends at ``until`` has ended; what could start at ``until`` has not been looked at.
        """
        self._take(self._engine.advance(until))
        self.now = until

    def settle(self) -> None:
        """Let the scheduler look at its queue now, at the time that the clock has reached."""
        self._take(self._engine.settle())

    @property
    def next_event_time(self) -> int | None:
        """When something happens next, epoch seconds; ``None`` if nothing ever does."""
        return self._engine.next_event_time

    def finish(self) -> None:
        """Run until the queue is empty and the last job has ended."""
        self._take(self._engine.finish())
        self.now = max(self.now, self._end_times[-1] if self._end_times else self.now)

    def schedule(self) -> Schedule:
        """Give the schedule of all jobs, once all have ended; times are epoch seconds."""
        return self._engine.schedule()

    def scheduled_times(self) -> Int64Array:
        """t_sched that each job was submitted with, seconds, in order of submission."""
        return np.array(self._planned, dtype=np.int64)

    def running_times(self) -> Int64Array:
        """t_sched that each job ran with, seconds, in order of submission."""
        return self.scheduled_times()

    # For the schedulers ---------------------------------------------------------------------

    def _take(self, moves: Moves) -> None:
        """Take over what the engine has done, as it was done."""
        for index in moves.started.tolist():
            job, seen = self._jobs[index], self._engine.job(index)
            job.phase = Phase.RUNNING
            job.start_time = seen.start_time or 0
            self._on_start(index, job)
        for index in moves.finished.tolist():
            job, seen = self._jobs[index], self._engine.job(index)
            ran = (seen.end_time or 0) - job.start_time
            timed_out = ran >= job.kill_limit or seen.used_up
            ending = Ending.TIMED_OUT if timed_out else self._ending(job)
            self._end(index, job, seen.end_time or 0, ending)

    def _on_start(self, index: int, job: JobT) -> None:
        """Do what this scheduler does when a job starts."""

    def _on_end(self, index: int, job: JobT, ending: Ending) -> None:
        """Do what this scheduler does when a job has ended."""

    def _ending(self, job: JobT) -> Ending:
        """Say how a job ends that is not stopped at its limit."""
        raise NotImplementedError

    def _end(self, index: int, job: JobT, end_time: int, ending: Ending) -> None:
        job.phase, job.end_time, job.ending = Phase.ENDED, end_time, ending
        self._ended.append(index)
        self._end_times.append(end_time)
        self._on_end(index, job, ending)

    def _enqueue(
        self,
        job: JobT,
        *,
        processors: int,
        actual_runtime: int,
        requested_time: int,
        planned: int,
        resources: JobResources | None,
        user: str | None,
        project: str | None,
        said: SiteJob | None = None,
    ) -> int:
        """Put an accepted job into the queue, times in seconds; give its index."""
        index = self._engine.submit(
            submit_time=self.now,
            processors=processors,
            actual_runtime=actual_runtime,
            requested_time=requested_time,
            scheduled_time=planned,
            time_limit=job.kill_limit,
            resources=resources if self._has_nodes else None,
            user=user,
            project=project,
            said=said,
        )
        self._jobs.append(job)
        self._planned.append(planned)
        self.adjusted_jobs += planned < requested_time
        return index

    def _cancel_waiting(self, index: int) -> None:
        """Take a waiting job out of the queue."""
        self._engine.cancel(index)
        self._end(index, self._jobs[index], self.now, Ending.NEVER_STARTED)

    def _ended_between(self, since: int, until: int) -> list[int]:
        """Give the jobs that ended from one time to another, in the order of their ends."""
        first, last = bisect_left(self._end_times, since), bisect_right(self._end_times, until)
        return self._ended[first:last]

    def _queued_jobs(self) -> list[int]:
        """Give what runs, what waits in the queue's order, and what was submitted just now."""
        just_submitted = []
        for index in range(len(self._jobs) - 1, -1, -1):
            if self._engine.job(index).state != "submitted":
                break
            just_submitted.append(index)
        running, queue = self._engine.running().tolist(), self._engine.queue().tolist()
        return [*running, *queue, *reversed(just_submitted)]
