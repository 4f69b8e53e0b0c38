"""Past waits of jobs that wait for others: from when these are forecast to start or end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Protocol

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.admission import After, Dependencies
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts, considered
from foretime_sim.waits.moment import Moment

from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS, ends


class Runtimes(Protocol):
    """Gives quantiles of how long jobs run in all, as `CalibratedBest.runtimes`."""

    def __call__(
        self, jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]
    ) -> Float64Array:
        """Give seconds, shape (jobs, levels)."""
        ...


class DependentWaits:
    """A `foretime_sim.waits.forecaster.LearnsFromAnswers` of past waits that knows dependencies.

    Past waits tell how long a job waits from when it can start. A job with an open dependency can
    once the jobs that it waits for have started or ended, and these are forecast, too. Level by
    level, as if all came early or late together. What is not known of them counts as now.

    Parameters
    ----------
    forecaster
        What is asked about the wait from then on; it does not learn from jobs with an open
        dependency.
    runtimes
        How long jobs run.
    """

    oracle = False

    def __init__(self, forecaster: WaitForecaster, runtimes: Runtimes) -> None:
        self.name = forecaster.name
        self._forecaster = forecaster
        self._runtimes = runtimes

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        rows = _dependent(moment)
        if not rows.any():
            return self._forecaster.forecast(moment)
        free = self._forecaster.forecast(_of_rows(moment, ~rows))
        kept = considered(self._forecaster, _of_rows(moment, rows))
        made = WaitForecasts.none(len(rows))
        for some, answer in ((~rows, free), (rows, kept)):
            made.wait_s[some], made.starts_now[some] = answer.wait_s, answer.starts_now
        return self._let_go(moment, made)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted."""
        made = considered(self._forecaster, moment)
        return self._let_go(moment, made) if _dependent(moment).any() else made

    def submitted(self, job: JobRequest) -> None:
        """Tell the forecaster."""
        self._forecaster.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Tell the forecaster."""
        self._forecaster.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Tell the forecaster."""
        self._forecaster.finished(job)

    def _let_go(self, moment: Moment, made: WaitForecasts) -> WaitForecasts:
        """Give answers from when the jobs are let go, those first that others wait for."""
        dependencies = moment.snapshot.pending.dependencies
        if dependencies is None:  # for the type checker: somebody is dependent
            return made
        row_of = {column: row for row, column in enumerate(moment.asked.tolist())}
        events = _events(dependencies, len(moment.snapshot.running))
        awaited = {on for waited in events.values() for on, _, _ in waited}
        starts = _Happening(moment, self._runtimes, awaited)
        wait_s, starts_now = made.wait_s.copy(), made.starts_now.copy()
        to_come_s = moment.to_come_s()
        sorter = TopologicalSorter(
            {column: [on for on, _, _ in waited] for column, waited in events.items()}
        )
        try:
            sorter.prepare()
        except CycleError:  # the first of several is enough for one of them
            return made
        any_suffices = dict(zip(dependencies.job.tolist(), dependencies.any_suffices, strict=True))
        while sorter.is_active():
            ready = sorter.get_ready()
            for column in ready:
                row = row_of.get(column)
                if row is None or column not in events:
                    continue
                suffices = bool(any_suffices[column - len(moment.snapshot.running)])
                until = starts.latest(events[column], any_suffices=suffices)
                if until is not None:
                    later = np.maximum(until - to_come_s[row], 0)
                    wait_s[row] += later
                    if later[0] > NOW_S and not np.isnan(starts_now[row]):
                        starts_now[row] = 0.0
            starts.add([(column, wait_s[row_of[column]]) for column in ready if column in row_of])
            sorter.done(*ready)
        return replace(made, wait_s=wait_s, starts_now=starts_now)


_Event = tuple[int, int, int]
"""The column of a job that is waited for, a value of `After`, and a delay in seconds."""


def _dependent(moment: Moment) -> BoolArray:
    """Say which of the jobs asked about wait for others, shape (asked,)."""
    dependencies = moment.snapshot.pending.dependencies
    if dependencies is None:
        return np.zeros(len(moment.asked), dtype=np.bool_)
    return np.isin(moment.asked - len(moment.snapshot.running), dependencies.job)


def _of_rows(moment: Moment, rows: BoolArray) -> Moment:
    since = None if moment.since is None else moment.since[rows]
    return replace(moment, asked=moment.asked[rows], since=since)


def _events(dependencies: Dependencies, running: int) -> dict[int, list[_Event]]:
    """Give what each job waits for, by its column."""
    found: dict[int, list[_Event]] = {}
    columns = (dependencies.job, dependencies.on, dependencies.event, dependencies.delay_s)
    for job, on, event, delay_s in zip(*(each.tolist() for each in columns), strict=True):
        found.setdefault(running + job, []).append((on, event, delay_s))
    return found


class _Happening:
    """When the jobs that others wait for start and end, seconds from now at each of ``LEVELS``."""

    def __init__(self, moment: Moment, runtimes: Runtimes, awaited: Iterable[int]) -> None:
        self._columns = sorted(awaited)
        running = [column for column in self._columns if column < len(moment.snapshot.running)]
        pending = self._columns[len(running) :]
        age = moment.ages()[running]
        self._found: dict[tuple[int, int], Float64Array] = {}
        if running:
            runtime_s = runtimes([moment.requests[each] for each in running], age, LEVELS)
            left_s = np.maximum(runtime_s - age[:, np.newaxis], 0)
            for column, started_s, left in zip(running, (-age).tolist(), left_s, strict=True):
                self._found[column, After.START] = np.full(len(LEVELS), float(started_s))
                self._found[column, After.END] = left
        self._runtime_s: dict[int, Float64Array] = {}
        if pending:
            jobs = [moment.requests[column] for column in pending]
            runtime_s = runtimes(jobs, np.zeros(len(jobs), np.int64), RUNTIME_LEVELS)
            limits = np.array([job.requested_time for job in jobs])
            runtime_s = np.minimum(runtime_s, limits[:, np.newaxis])
            self._runtime_s = dict(zip(pending, runtime_s, strict=True))

    def add(self, waits: Sequence[tuple[int, Float64Array]]) -> None:
        """Take note of how long pending jobs wait, by their columns."""
        known = [
            (column, wait_s)
            for column, wait_s in waits
            if column in self._runtime_s and not np.isnan(wait_s).any()
        ]
        if not known:
            return
        wait_s = np.array([each for _, each in known])
        end_s = ends(wait_s, np.array([self._runtime_s[column] for column, _ in known]))
        for (column, starts_s), ends_s in zip(known, end_s, strict=True):
            self._found[column, After.START], self._found[column, After.END] = starts_s, ends_s

    def latest(self, events: Sequence[_Event], *, any_suffices: bool) -> Float64Array | None:
        """Give when events have happened, all or any; ``None``: that is not known."""
        found = [self._found.get((on, event)) for on, event, _ in events]
        known = [
            np.maximum(each + delay_s, 0)
            for each, (_, _, delay_s) in zip(found, events, strict=True)
            if each is not None
        ]
        if not known or (len(known) < len(found) and not any_suffices):
            return None
        together = np.min(known, axis=0) if any_suffices else np.max(known, axis=0)
        return np.asarray(together)
