"""A study repeated on jittered copies of its log, because schedules are chaotic in their ties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.scores.intervals import Weeks
from foretime_sim.workloads.workload import Workload

FEWEST_REPEATS = 3
"""Repeats from which on Student's interval is given; with fewer, a bootstrap over weeks."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often a study is repeated, and how repeats differ.

    A single repeat runs the log as it is. With more, each submits every job up to ``jitter_s``
    seconds earlier or later and shuffles the order of equal submissions, from its own seed. From
    `FEWEST_REPEATS` on the interval of a mean over them is Student's: what the schedule's chaos
    does to it. Below that it is a bootstrap over weeks of submission: what another choice of weeks
    would do to it.

    Attributes
    ----------
    count, seed, jitter_s
        How often, from which seed, and by how many seconds submissions move.
    level
        Of the intervals, between 0 and 1.
    workers
        Processes; ``None`` for one per physical core. 1 runs in this process.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.scores.repeats import Repeats
    >>> workload = generate("lublin2003", jobs=100, seed=1)
    >>> repeats = Repeats(count=3, seed=7)
    >>> [int(repeats.varied(workload, number).submit_time[-1]) for number in range(3)]
    [179658, 179645, 179667]
    """

    count: int = 1
    seed: int = 0
    jitter_s: int = 60
    level: float = 0.95
    workers: int | None = 1

    def __post_init__(self) -> None:
        if self.count < 1:
            raise InputError(f"{self.count} repeats: give at least 1")
        if self.seed < 0:
            raise InputError(f"seed {self.seed}: give 0 or more")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"{self.workers} workers: give at least 1")
        if self.jitter_s < 0:
            raise InputError(f"jitter of {self.jitter_s} s: give 0 or more")
        if not 0 < self.level < 1:
            raise InputError(f"level of intervals is {self.level}: give a share between 0 and 1")

    @property
    def vary(self) -> bool:
        """Whether repeats differ from the log."""
        return self.count > 1

    def varied(self, workload: Workload, repeat: int) -> Workload:
        """Give the workload of one repeat, counted from 0."""
        if not self.vary:
            return workload
        rng = np.random.default_rng([self.seed, repeat])
        if self.jitter_s:
            workload = workload.jittered(rng, self.jitter_s)
        return workload.shuffled_ties(rng)

    def weeks(self, submit_time: Int64Array) -> Weeks | None:
        """Give the weeks to be resampled, ``None`` where repeats tell more or weeks are too few.

        Parameters
        ----------
        submit_time
            Of the scored jobs, in the log as it is.
        """
        return None if self.count >= FEWEST_REPEATS else Weeks.of(submit_time, self.seed)

    def interval_method(self, weeks: Weeks | None) -> str:
        """Name what the intervals come from: ``t``, ``weeks`` or ``none``."""
        if self.count >= FEWEST_REPEATS:
            return "t"
        return "none" if weeks is None else "weeks"

    def run(
        self,
        workload: Workload,
        work: Callable[[Workload, int], Result],
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[Result, ...]:
        """Do the work for every repeat, and give its results in order.

        Parameters
        ----------
        workload
            The log as it is.
        work
            Given a repeat's workload, whose jobs may stand in another order than the log's, and
            its number. It and its result must be picklable when there are several workers.
        progress
            Called with repeats done and repeats in all, at each that is done.
        """
        done: dict[int, Result] = {}

        def finished(repeat: int, result: Result) -> None:
            done[repeat] = result
            if progress is not None:
                progress(len(done), self.count)

        processes = min(self.count, self._workers())
        if processes == 1:
            for repeat in range(self.count):
                finished(repeat, work(self.varied(workload, repeat), repeat))
        else:
            self._run_in_processes(workload, work, processes, finished)
        return tuple(done[repeat] for repeat in range(self.count))

    def _workers(self) -> int:
        if self.workers is not None:
            return self.workers
        import psutil  # only here: a single run starts sooner without

        return psutil.cpu_count(logical=False) or 1

    def _run_in_processes(
        self,
        workload: Workload,
        work: Callable[[Workload, int], Result],
        processes: int,
        finished: Callable[[int, Result], None],
    ) -> None:
        from foretime_sim.scores.worker_processes import run_in_processes  # takes time to import

        run_in_processes(
            partial(_repeat, self, workload, work), range(self.count), processes, finished
        )


def _repeat(
    repeats: Repeats, workload: Workload, work: Callable[[Workload, int], Result], repeat: int
) -> Result:
    """Do one repeat's work in a worker process."""
    return work(repeats.varied(workload, repeat), repeat)
