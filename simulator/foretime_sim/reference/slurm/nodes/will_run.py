"""When and where a job could run as running jobs end (`_will_run_test`, cons_tres/job_test.c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foretime_sim.reference.slurm.jobs.job import Run
from foretime_sim.reference.slurm.nodes.node_choice import NodeChoice
from foretime_sim.reference.slurm.nodes.nodes import NodeUse

FIRST_WINDOW_S = 30
"""Ends of running jobs within a window are tried together; it doubles with each failure."""
LONGEST_WINDOW_S = 365 * 86_400
OWN_ENDS_VERSION = (25, 5)
"""From 25.05.1 on a start is the end of a job that has one of the chosen nodes (CHANGELOG)."""
ENDED_AT_START_VERSION = (25, 5)
"""Some release between 24.11.5 and 25.11.7 counts a job as gone that ends at the start tested."""
NO_END = -(2**62)


@dataclass(frozen=True, slots=True)
class JobEnds:
    """When running jobs are thought to end.

    Attributes
    ----------
    soft
        time_min_as_soft_limit, of a version whose select plugin knows it (25.05 and newer).
    kill_wait_s
        KillWait.
    over_time_limit_s
        OverTimeLimit by slurm_partition, with that of the cluster where it has none.
    epoch
        What to add to a time for epoch seconds: windows are aligned to the real clock.
    """

    soft: bool
    kill_wait_s: int
    over_time_limit_s: Sequence[int]
    epoch: int = 0

    def end(self, run: Run, now: int) -> int:
        """Give the end by the limit; with a soft one, past it: now + half of the rest.

        `_soft_job_end`.
        """
        if not self.soft or not run.job.time_min_s:
            return run.limit_end
        return soft_end(run, now)

    def guess(self, run: Run, now: int) -> int:
        """Guess the end of a job past its limit (`_guess_job_end`)."""
        over = self.over_time_limit_s[run.partition_index]
        return max(run.limit_end + self.kill_wait_s + over, now + 1)


def soft_end(run: Run, now: int) -> int:
    """Give the end of a job by its least time; past it, now + half of the rest."""
    end = run.start + run.job.time_min_s
    if end < now:
        return now + int((run.limit_end - now) / 2)  # C's division, towards 0
    return end


@dataclass(frozen=True, slots=True)
class WillRun:
    """The answer: a start, and the nodes that the job would then have."""

    start: int
    nodes: frozenset[int]


def will_run(
    choice: NodeChoice,
    candidates: frozenset[int],
    use: NodeUse,
    running: Iterable[Run],
    ends: JobEnds,
    now: int,
    *,
    now_only: bool = False,
    start: int | None = None,
    end: int | None = None,
) -> WillRun | None:
    """Find when a job could run on some nodes; ``None`` if not at all, or not within the time.

    Parameters
    ----------
    candidates
        Nodes that it may have.
    running
        All running jobs in the order of their ids.
    now_only
        TEST_NOW_ONLY: no future is looked at.
    start, end
        Of the time that backfill asks for (24.11 and newer; ``None`` before): jobs that end by
        ``start`` (24.11: before it) count as gone, those that end after ``end`` as there for good.

    Notes
    -----
    Running jobs are taken away in the order of their ends, several at once: all that end within
    the window of the first one tried, which begins with 30 s and doubles. The start is then the
    end of the last one taken away (24.11 and older), or of the last one that has any of the chosen
    nodes (25.05 and newer): not always the earliest possible. Past 2 s of its own time Slurm gives
    up; the model does not.
    """
    if start is None or start <= now:
        found = choice.choose(candidates, use)
        if found is not None:
            return WillRun(now, found.nodes)
        if now_only:
            return None
    elif now_only:
        return None
    future = use.copy()
    to_remove = []
    last_gone = (start or 0) - (choice.version < ENDED_AT_START_VERSION)
    for run in running:
        if start is not None and ends.end(run, now) <= last_gone:
            future.remove(run.allocation, run.partition_index, candidates)
        else:
            to_remove.append(run)
    if start is not None:
        found = choice.choose(candidates, future)
        if found is not None:
            return WillRun(now, found.nodes)
    to_remove.sort(key=lambda run: ends.end(run, -ends.epoch))
    return _as_jobs_end(
        choice, candidates, future, to_remove, ends, now, end, choice.version >= OWN_ENDS_VERSION
    )


def _as_jobs_end(
    choice: NodeChoice,
    candidates: frozenset[int],
    future: NodeUse,
    to_remove: Sequence[Run],
    ends: JobEnds,
    now: int,
    latest: int | None,
    own_ends: bool,
) -> WillRun | None:
    """Take running jobs away, window by window, until the job fits (`_future_run_test`)."""
    window = FIRST_WINDOW_S
    window_start = NO_END
    removed: list[Run] = []
    place, more = 0, True
    while more:
        last = following = None
        while True:
            if place >= len(to_remove) or (
                latest is not None and ends.end(to_remove[place], now) > latest
            ):
                more = False
                break
            run = to_remove[place]
            place += 1
            if not run.allocation.nodes & candidates:
                continue
            if window_start == NO_END:
                end = ends.end(run, now)
                window_start = end + FIRST_WINDOW_S - (end + ends.epoch) % FIRST_WINDOW_S
            last = run
            future.remove(run.allocation, run.partition_index, candidates)
            removed.append(run)
            if place >= len(to_remove):
                more = False
                break
            following = to_remove[place]
            if ends.end(following, now) > window_start + window:
                break
        if last is None:
            return None
        found = choice.choose(candidates, future)
        if found is not None:
            if own_ends:
                last = next(
                    (run for run in reversed(removed) if run.allocation.nodes & found.nodes), last
                )
            end = ends.end(last, now)
            return WillRun(ends.guess(last, now) if end <= now else end, found.nodes)
        latest_tried = NO_END if following is None else ends.end(following, now)
        while window <= LONGEST_WINDOW_S:
            window *= 2
            if latest_tried <= window_start + window:
                break
    return None
