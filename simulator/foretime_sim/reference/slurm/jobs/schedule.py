"""What came of a simulation of Slurm: when each job ran, where, and which loop started it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass


class Loop(enum.IntEnum):
    """Who started a job (``sacct``'s SchedMain, SchedBackfill).

    None starts at its submission: that is for salloc and srun (`allocate` of `job_allocate`).

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.schedule import Loop
    >>> Loop.MAIN.name
    'MAIN'
    """

    MAIN = 1
    """The main loop."""
    BACKFILL = 2
    """The backfill loop."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """What became of one job.

    Attributes
    ----------
    start, end
        Seconds on the workload's clock; ``None`` if it never started.
    loop
        Who started it.
    slurm_partition
        Index of the one in which it ran.
    nodes
        Numbers of its nodes, ascending, and CPUs on each.
    planned_start
        What backfill last said of its start while it waited (``squeue --start``); ``None`` if
        nothing.
    killed
        Whether its time limit ended it, or ``used_up``.
    used_up
        Whether it was ended because minutes that it, or its group, may use were used up.
    reason
        Why it waited when the simulation ended, or why it was refused at submission.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.schedule import JobOutcome, Loop
    >>> JobOutcome(start=60, end=120, loop=Loop.MAIN).loop.name
    'MAIN'
    """

    start: int | None = None
    end: int | None = None
    loop: Loop | None = None
    slurm_partition: int | None = None
    nodes: tuple[tuple[int, int], ...] = ()
    planned_start: int | None = None
    killed: bool = False
    used_up: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SlurmSchedule:
    """A whole simulation.

    Attributes
    ----------
    jobs
        What became of each job, in the workload's order.
    main_runs, backfill_runs
        How often each loop ran.
    refused
        Why jobs were refused at submission, by job.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.schedule import JobOutcome, SlurmSchedule
    >>> SlurmSchedule((JobOutcome(start=5),), 1, 0, {}).start_times
    [5]
    """

    jobs: tuple[JobOutcome, ...]
    main_runs: int
    backfill_runs: int
    refused: Mapping[int, str]

    @property
    def start_times(self) -> list[int | None]:
        """Starts alone."""
        return [job.start for job in self.jobs]

    @property
    def planned_starts(self) -> list[int | None]:
        """What backfill last planned, of each job."""
        return [job.planned_start for job in self.jobs]

    @property
    def loops(self) -> list[Loop | None]:
        """Who started each job."""
        return [job.loop for job in self.jobs]
