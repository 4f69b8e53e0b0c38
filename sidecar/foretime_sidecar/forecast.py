"""When a job would start: the queue of now, run forward in the engine with t_sched as runtimes.

What the engine plans with is what the scheduler plans with (time_min or soft_walltime under a soft
limit, the time limit otherwise); how long the jobs really take is taken to be t_sched.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import JobRequest
from foretime_sim import forward
from foretime_sim.policy import Backfill, Correction, Order, Policy

from foretime_sidecar.clients.client import Queue
from foretime_sidecar.queue_snapshot import QueueSnapshot, snapshot_of
from foretime_sidecar.settings import ForecastSettings


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The queue as it was at one moment.

    Attributes
    ----------
    taken_at
        Epoch seconds.
    queue
        What ran and what waited.
    soft_limit
        Whether the scheduler took time_min as a soft limit.
    correction
        What it plans a job with that outlives its soft limit.
    """

    taken_at: int
    queue: Queue
    soft_limit: bool = False
    correction: Correction = Correction.SLURM


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """When a job would start, and what was assumed.

    Attributes
    ----------
    made_at
        Epoch seconds: the job is taken to be submitted then.
    start_time, wait_s
        Expected start, epoch seconds, and the wait until then; ``None`` if the queue was too long
        to be run forward.
    requested_time_s, scheduled_time_s
        Of the job asked for: t_req and t_sched.
    snapshot_age_s
        Seconds between the look at the queue and ``made_at``.
    machine_processors
        Processors of nodes that were up.
    running_jobs, pending_jobs
        Jobs that took part; each pending task of an array is one.
    left_out
        Jobs that did not, by why.
    assumptions
        In words.
    """

    made_at: int
    start_time: int | None
    requested_time_s: int
    scheduled_time_s: int
    snapshot_age_s: int
    machine_processors: int
    running_jobs: int
    pending_jobs: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()

    @property
    def wait_s(self) -> int | None:
        """Seconds from ``made_at`` to the start."""
        return None if self.start_time is None else self.start_time - self.made_at


def expected_start(
    snapshot: Snapshot,
    job: JobRequest,
    now: int,
    scheduled_time: Callable[[JobRequest], int],
    settings: ForecastSettings,
    *,
    enforced: bool = False,
) -> ExpectedStart:
    """Say when a job submitted now would start.

    A running job that has outlived its t_sched is taken to run on as the scheduler corrects it:
    half of what is left to its limit under Slurm's soft limit, to the next multiple of its t_sched
    on PBS, up to the limit otherwise.

    Parameters
    ----------
    snapshot
        The queue that it would join.
    job
        The job.
    now
        Epoch seconds, when it is submitted.
    scheduled_time
        t_sched of a job, seconds.
    settings
        Order and backfilling of the scheduler, and the longest queue to run forward.
    enforced
        Whether the hook would make the scheduler plan this job with t_sched.

    Raises
    ------
    InputError
        If the machine is too small for the job.
    """
    taken_at = snapshot.taken_at
    now = max(now, taken_at)
    taken = snapshot_of(snapshot.queue, taken_at=taken_at, soft_limit=snapshot.soft_limit)
    processors, pending = taken.snapshot.machine_processors, len(taken.snapshot.pending)
    if job.processors > processors:
        raise InputError(
            f"processors = {job.processors}: only {processors} processors are up now; ask for less"
        )
    mine = min(scheduled_time(job), job.requested_time)
    answer = ExpectedStart(
        made_at=now,
        start_time=None,
        requested_time_s=job.requested_time,
        scheduled_time_s=mine,
        snapshot_age_s=now - taken_at,
        machine_processors=processors,
        running_jobs=len(taken.snapshot.running),
        pending_jobs=pending,
        left_out=taken.left_out_by_reason(),
        assumptions=(
            "jobs run for their scheduled time",
            f"the queue's order is {settings.order}, backfilling {settings.backfill}",
            *taken.not_modelled,
            "nobody submits another job that goes first",
        ),
    )
    if len(taken.snapshot) > settings.most_jobs:
        too_long = (
            f"the queue has {len(taken.snapshot):,} jobs and is not run forward beyond "
            f"{settings.most_jobs:,} (forecast.most_jobs)"
        )
        return replace(answer, assumptions=(too_long,))
    correction = snapshot.correction if snapshot.soft_limit else Correction.REQUESTED
    policy = Policy(Order(settings.order), Backfill(settings.backfill), correction)
    begin = taken.snapshot.with_job(
        job.processors, job.requested_time, mine if enforced else None, submit_time=now
    )
    runtimes = _runtimes(taken, correction, scheduled_time)
    sample = np.array([[*runtimes, mine]], dtype=np.int64)
    (start_time,) = forward.start_times_of(-1, begin, policy, sample, threads=1).tolist()
    return replace(answer, start_time=start_time)


def _runtimes(
    taken: QueueSnapshot, correction: Correction, scheduled_time: Callable[[JobRequest], int]
) -> list[int]:
    """Say how long each job is to run, in the order of columns."""
    running = taken.snapshot.running
    ages = (taken.snapshot.now - running.start_time).tolist()
    runtimes: list[int] = []
    for request, age in zip(taken.requests, ages, strict=False):
        runtime, limit = scheduled_time(request), request.requested_time
        if runtime <= age:
            match correction:
                case Correction.SLURM:
                    runtime = age + max((limit - age) // 2, 1)
                case Correction.PBS:
                    runtime *= 1 + age // runtime
                case _:
                    runtime = limit
        runtimes.append(min(runtime, limit))
    waiting = taken.requests[len(running) :]
    runtimes += [min(scheduled_time(job), job.requested_time) for job in waiting]
    return runtimes
