"""What a stepwise engine shows: what happened in a step, and a job as it stands."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_estimators.arrays import Int64Array

from foretime_sim.engine.schedule import StartedBy


@dataclass(frozen=True, slots=True)
class Moves:
    """What happened in one step; arrays of job indices, in the order of events."""

    started: Int64Array
    finished: Int64Array


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as the engine holds it now.

    Attributes
    ----------
    state
        submitted (its submission is still to come), pending, running, finished or cancelled.
    submit_time, processors, actual_runtime, requested_time, time_limit
        As submitted, or as updated since; seconds.
    queue_time, backfill_time, drain_time
        t_sched in each role, seconds.
    start_time, end_time
        ``None`` before the start; ``end_time`` of a running job is when it will end.
    expected_end
        When the scheduler believes a running job to end; ``None`` for other jobs.
    started_by
        ``None`` before the start.
    corrections
        How often it outlived its estimate.
    killed
        True for a finished job ended by its time limit before its actual runtime, or ``used_up``.
    used_up
        True for one that Slurm ended because a limit's minutes were used up.
    """

    state: str
    submit_time: int
    processors: int
    actual_runtime: int
    requested_time: int
    time_limit: int
    queue_time: int
    backfill_time: int
    drain_time: int
    priority: int
    start_time: int | None
    end_time: int | None
    expected_end: int | None
    started_by: StartedBy | None
    corrections: int
    killed: bool
    used_up: bool = False
