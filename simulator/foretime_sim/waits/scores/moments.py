"""Goes through a log once, tells forecasters what happens, and asks them when jobs will start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.waits.forecast_records import ForecastRecords
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.scores.wait_sources import Happened, WaitSource
from foretime_sim.workloads.workload import Workload

LOOKS_S = (600, 3_600, 4 * 3_600, 12 * 3_600, 86_400)
"""When jobs that still wait are asked about again, seconds after their submission."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Which jobs are asked about, and when.

    Attributes
    ----------
    jobs
        Shape (jobs,): those asked about; ``None`` for all. All others take part unasked.
    looks_s
        Seconds after a job's submission at which it is asked about again while it waits.
    every_s
        If given, the jobs that wait are asked about at every multiple of this on the clock, too,
        until the last submission.
    """

    jobs: BoolArray | None = None
    looks_s: Sequence[int] = ()
    every_s: int | None = None

    def __post_init__(self) -> None:
        if any(look < 1 for look in self.looks_s):
            raise InputError(f"looks_s is {list(self.looks_s)}: give seconds from 1")
        if self.every_s is not None and self.every_s < 1:
            raise InputError(f"every_s is {self.every_s}: give 1 s or more")

    def of(self, workload: Workload) -> BoolArray:
        """Give for each job of a workload whether it is asked about.

        Raises
        ------
        InputError
            If ``jobs`` has another length.
        """
        if self.jobs is None:
            return np.ones(len(workload), dtype=np.bool_)
        if self.jobs.shape != (len(workload),):
            raise InputError(f"asking about {self.jobs.shape} of {len(workload)} jobs")
        return self.jobs


def sampled_evenly(workload: Workload, count: int, seed: int) -> BoolArray:
    """Choose jobs to ask about: each week's share of them is its share of the submissions.

    In each of as many stretches of the log as are asked for, of equally many submissions, one job
    is drawn; all if there are no more. Shape (jobs,).
    """
    jobs = len(workload)
    chosen = np.zeros(jobs, dtype=np.bool_)
    edges = np.linspace(0, jobs, min(count, jobs) + 1).astype(np.int64)
    rng = np.random.default_rng(seed)
    chosen[rng.integers(edges[:-1], edges[1:])] = True
    return chosen


def ask_forecasters(
    source: WaitSource,
    forecasters: Sequence[WaitForecaster],
    asking: Asking | None = None,
    progress: Callable[[int], None] | None = None,
) -> ForecastRecords:
    """Go through a log, and ask forecasters about its jobs at their submission and later.

    Everybody is told and asked in the order that `foretime_sim.waits.forecaster.WaitForecaster`
    promises; what is asked about at one second is asked at once. A job whose start falls on the
    very second of a later look is still asked about.

    Parameters
    ----------
    source
        Where the waits come from; a fresh one.
    forecasters
        Fresh ones, with names of their own. What they learn stays in them.
    asking
        Whom to ask about, and when; ``None``: every job at its submission.
    progress
        Called with the number of jobs submitted so far, about a hundred times.

    Raises
    ------
    InputError
        If two forecasters have the same name.

    Examples
    --------
    >>> from foretime_sim import Policy, generate
    >>> from foretime_sim.waits.qbets import Qbets
    >>> from foretime_sim.waits.scores.moments import ask_forecasters
    >>> from foretime_sim.waits.scores.wait_sources import SimulatedWaits
    >>> workload = generate("lublin2003", jobs=200, load=0.9, seed=1)
    >>> records = ask_forecasters(SimulatedWaits(workload, Policy()), [Qbets()])
    >>> records.methods, len(records.job)
    (('qbets',), 200)
    """
    names = tuple(forecaster.name for forecaster in forecasters)
    if len(set(names)) < len(names):
        raise InputError(f"forecasters need names of their own: {', '.join(names)}")
    asked = (asking or Asking()).of(source.workload)
    looks = _looks(source.workload, asked, asking or Asking())
    run = _Run(source, forecasters, asked, progress)
    for now, submitted, again in looks:
        run.tell(source.advance(now))
        run.submit(submitted)
        run.ask(now, submitted, again)
    run.tell(source.finish())
    return run.records(names)


_PERIODIC = -1
"""In place of a job: all that wait."""


def _looks(
    workload: Workload, asked: BoolArray, asking: Asking
) -> Iterator[tuple[int, list[int], list[int]]]:
    """Give each second of interest in turn: its time, the submissions, and who to ask about again.

    The latter may have started meanwhile.
    """
    jobs = np.arange(len(workload))
    chosen = np.flatnonzero(asked)
    times = [workload.submit_time]
    whose: list[Int64Array] = [jobs]
    for look in asking.looks_s:
        times.append(workload.submit_time[chosen] + look)
        whose.append(chosen)
    if asking.every_s is not None and len(workload):
        first, last = int(workload.submit_time[0]), int(workload.submit_time[-1])
        from_first = first + -first % asking.every_s
        periodic = np.arange(from_first, last + 1, asking.every_s, dtype=np.int64)
        times.append(periodic)
        whose.append(np.full(len(periodic), _PERIODIC, dtype=np.int64))
    time_of = np.concatenate(times)
    submits = np.arange(len(time_of)) < len(workload)
    order = np.argsort(time_of, kind="stable")
    time_of, submits, whom = time_of[order], submits[order], np.concatenate(whose)[order]
    starts = np.flatnonzero(np.diff(time_of, prepend=time_of[:1] - 1))
    for begin, end in zip(starts, np.append(starts[1:], len(time_of)), strict=True):
        here, new = whom[begin:end], submits[begin:end]
        yield int(time_of[begin]), here[new].tolist(), here[~new].tolist()


class _Run:
    """One pass through a log: who waits, and the answers so far."""

    def __init__(
        self,
        source: WaitSource,
        forecasters: Sequence[WaitForecaster],
        asked: BoolArray,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._source = source
        self._forecasters = forecasters
        self._asked = asked.tolist()
        self._progress = progress
        self._step = max(len(source.workload) // 100, 1)
        self._submitted = 0
        self._waiting: dict[int, None] = {}  # those asked about
        self._start_time = np.zeros(len(source.workload), dtype=np.int64)
        self._job: list[Int64Array] = []
        self._made_at: list[Int64Array] = []
        self._answers: list[list[WaitForecasts]] = [[] for _ in forecasters]
        self._seconds = np.zeros(len(forecasters))

    def tell(self, events: list[Happened]) -> None:
        """Tell everybody what happened."""
        for event in events:
            if event.is_start:
                self._start_time[event.job] = event.time
                self._waiting.pop(event.job, None)
                for forecaster in self._forecasters:
                    forecaster.started(self._source.requests[event.job], event.time)
            else:
                finished = self._source.finished(event.job)
                for forecaster in self._forecasters:
                    forecaster.finished(finished)

    def submit(self, jobs: list[int]) -> None:
        """Let jobs be submitted, and tell everybody."""
        for job in jobs:
            self._source.submit(job)
            if self._asked[job]:
                self._waiting[job] = None
            for forecaster in self._forecasters:
                forecaster.submitted(self._source.requests[job])
            self._submitted += 1
            if self._progress is not None and self._submitted % self._step == 0:
                self._progress(self._submitted)

    def ask(self, now: int, submitted: list[int], again: list[int]) -> None:
        """Ask everybody about those of the jobs that wait, and note the answers."""
        if _PERIODIC in again:
            jobs = list(self._waiting)
        else:
            jobs = [job for job in (*again, *submitted) if job in self._waiting]
        if not jobs:
            return
        snapshot, column_jobs = self._source.snapshot()
        whose = column_jobs.tolist()
        column = {job: at for at, job in enumerate(whose)}
        requests = self._source.requests
        moment = Moment(
            snapshot,
            self._source.policy,
            [requests[job] for job in whose],
            np.array([column[job] for job in jobs], dtype=np.int64),
        )
        for number, forecaster in enumerate(self._forecasters):
            began = time.perf_counter()
            self._answers[number].append(forecaster.forecast(moment))
            self._seconds[number] += time.perf_counter() - began
        self._job.append(np.array(jobs, dtype=np.int64))
        self._made_at.append(np.full(len(jobs), now, dtype=np.int64))

    def records(self, methods: tuple[str, ...]) -> ForecastRecords:
        """Give all answers with what came of them."""
        none = np.zeros(0, dtype=np.int64)
        job = np.concatenate([none, *self._job])
        made_at = np.concatenate([none, *self._made_at])
        wait_s = np.zeros((len(methods), len(job), len(LEVELS)))
        starts_now = np.zeros((len(methods), len(job)))
        for number, answers in enumerate(self._answers):
            if answers:
                wait_s[number] = np.concatenate([answer.wait_s for answer in answers])
                starts_now[number] = np.concatenate([answer.starts_now for answer in answers])
        return ForecastRecords(
            methods,
            job,
            made_at,
            made_at - self._source.workload.submit_time[job],
            self._start_time[job] - made_at,
            wait_s,
            starts_now,
            self._seconds,
        )
