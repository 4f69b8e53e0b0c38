"""The study of forecast waits: logs gone through, kept, and scored together."""

from __future__ import annotations

import multiprocessing
from collections.abc import MutableSequence, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from foretime_sim.scores.worker_processes import interrupts_wait, run_in_processes
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.progress import Progress, counted_on
from foretime_studies.waits.runs import (
    WaitsRun,
    WaitsSettings,
    keep_run,
    kept_answers,
    kept_run,
    kept_runs,
    run_log,
)
from foretime_studies.waits.scores import ScoredRun


@dataclass(frozen=True, slots=True)
class WaitsLog:
    """A log to go through: its workload, and whether waits are simulated or as logged."""

    workload: Workload
    kind: str


@dataclass(frozen=True, slots=True)
class WaitsStudy:
    """Logs gone through and scored; and the titles of those kept by other code, left out."""

    runs: list[ScoredRun]
    left_out: list[str]


def study(
    logs: Sequence[WaitsLog],  # to go through
    settings: WaitsSettings,
    folder: Path,  # where runs are kept
    *,
    workers: int = 2,  # processes, each with a log
    progress: Progress | None = None,  # called with the jobs done so far, of all logs
) -> WaitsStudy:
    """Go through the logs of which no run is kept, and score every run kept with these settings.

    A run that other code made is not taken for this one's: its log is gone through again if it is
    given, and left out if not. If only what is made of the methods' answers has changed, that alone
    is made anew, of the answers kept.
    """
    todo = [log for log in logs if kept_run(folder, settings.key(log.workload, log.kind)) is None]
    done = sum(len(log.workload) for log in logs) - sum(len(log.workload) for log in todo)
    if len(todo) > 1 and workers > 1:
        _run_beside(todo, settings, folder, workers, done, progress)
        todo = []
    for log in todo:
        _run_and_keep(log, settings, folder, counted_on(progress, done))
        done += len(log.workload)
    runs, stale = kept_runs(folder, settings)
    return WaitsStudy([ScoredRun(run) for run in _in_order(runs, logs)], stale)


def _in_order(runs: list[WaitsRun], logs: Sequence[WaitsLog]) -> list[WaitsRun]:
    """Put the runs in the order of the logs, others after them."""
    order = {(log.workload.name, log.kind): place for place, log in enumerate(logs)}
    return sorted(runs, key=lambda run: order.get((run.name, run.kind), len(order)))


def _run_beside(
    logs: Sequence[WaitsLog],
    settings: WaitsSettings,
    folder: Path,
    workers: int,
    done: int,
    progress: Progress | None,
) -> None:
    """Go through several logs at once, a process each."""
    context = multiprocessing.get_context("spawn")
    with interrupts_wait():
        manager = context.Manager()
    with manager:
        counts = manager.list([0] * len(logs))
        run_in_processes(
            partial(_counted, settings, folder, counts),
            list(enumerate(logs)),
            workers,
            lambda *_: None,
            look=None if progress is None else lambda: progress(done + sum(counts)),
        )


def _counted(
    settings: WaitsSettings, folder: Path, counts: MutableSequence[int], task: tuple[int, WaitsLog]
) -> None:
    place, log = task

    def count(jobs: int) -> None:
        counts[place] = jobs

    _run_and_keep(log, settings, folder, count)


def _run_and_keep(
    log: WaitsLog, settings: WaitsSettings, folder: Path, progress: Progress | None
) -> None:
    key = settings.key(log.workload, log.kind)
    answered = kept_answers(folder, key)
    keep_run(folder, key, run_log(log.workload, log.kind, settings, progress, answered))
