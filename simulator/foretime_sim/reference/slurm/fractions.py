"""At which fraction of a second the loops run, and jobs come and go."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

from foretime_sim.reference.slurm.jobs.job import Run
from foretime_sim.reference.slurm.jobs.schedule import Loop

START_S = 0.05
"""To submit a job takes so long, and so does its start: the median of live runs."""


@dataclass(frozen=True, slots=True)
class Fractions:
    """The order of what one second brings.

    Attributes
    ----------
    main, end, tick, submission, backfill
        When the background thread wakes, jobs end, priorities are worked out anew, jobs are
        submitted, and the backfill loop looks whether it is due.
    main_runs, backfill_runs
        When the loops of a live run did, seconds in their order, to be used instead: a second has
        the fraction of the run nearest to it, and a job ends as far into a second as it was
        started, or is killed as the background thread wakes, and `START_S`.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.fractions import Fractions
    >>> fractions = Fractions(main=0.0, backfill_runs=(12.25, 72.75))
    >>> fractions.of_main(60), fractions.of_backfill(60)
    (0.0, 0.75)
    """

    main: float
    end: float = 0.2
    tick: float = 0.3
    submission: float = 0.4
    backfill: float = 0.9
    main_runs: Sequence[float] = ()
    backfill_runs: Sequence[float] = ()

    def of_main(self, now: int) -> float:
        """When the background thread wakes in a second."""
        return _fraction_near(now, self.main_runs) if self.main_runs else self.main

    def of_backfill(self, now: int) -> float:
        """When the backfill loop looks in a second whether a cycle is due."""
        return _fraction_near(now, self.backfill_runs) if self.backfill_runs else self.backfill

    def of_end(self, run: Run) -> float:
        """When a job ends in its last second."""
        if not self.backfill_runs:
            return self.end
        if run.killed:
            return min(self.of_main(run.end) + START_S, 0.99)
        started = self.of_main if run.loop is Loop.MAIN else self.of_backfill
        return (started(run.start) + START_S) % 1


def _fraction_near(now: int, runs: Sequence[float]) -> float:
    place = bisect(runs, now)
    near = min(runs[max(place - 1, 0) : place + 1], key=lambda at: abs(at - now))
    return near % 1
