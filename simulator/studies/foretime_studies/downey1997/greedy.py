"""What greedy choices of size do to the whole system.

Downey 1997 (sections 1.1 and 2) lets each job at the head of the queue take the size of least
predicted turnaround, and says of its companion ([5], Technical Report CSD-97-929) that this serves
everybody better than many strategies made for the system. Here the workload is generated
(`foretime_sim.self_tuning.malleable`), so nothing is tuned on a log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes, RunningLives
from foretime_estimators.distributions.uniform_log import fit_uniform_log
from foretime_estimators.time_units import DAY_S, HOUR_S
from foretime_sim.self_tuning.malleable import (
    HeadState,
    MalleableJobs,
    MalleableSchedule,
    SizeRule,
    draw_malleable_jobs,
    schedule_malleable,
)
from foretime_sim.waits.size_choice import choose_at_head

from foretime_studies.frame.tables import Row

PROCESSORS = 128
LOADS = (0.3, 0.5, 0.7)
_KNOWN_JOBS = 100
"""Runtimes that have to be known before they are fitted; until then lives up to a day."""
_REFIT = 1.2
"""They are fitted anew when there are so many times as many."""


def useful_sizes(jobs: MalleableJobs, job: int) -> Int64Array:
    """Give the powers of two up to the machine that run a job quicker than the one before."""
    sizes = 2 ** np.arange(PROCESSORS.bit_length(), dtype=np.int64)
    sizes = sizes[sizes <= PROCESSORS]
    runtimes = jobs.runtimes(job, sizes)
    helps = np.concatenate([[True], np.diff(runtimes) < 0])
    return np.asarray(sizes[helps])


def greedy_choices(count: int, seed: int) -> list[Row]:
    """Run every rule at every load, on the same jobs; give a row of a table of each."""
    rows: list[Row] = []
    for load in LOADS:
        jobs = draw_malleable_jobs(count, PROCESSORS, load, seed)
        for name, make in RULES.items():
            done = schedule_malleable(jobs, PROCESSORS, make(jobs))
            turnaround = done.end_time - jobs.submit_time
            rows.append(
                [
                    ("load", load, ".1f"),
                    ("size", name),
                    ("mean turnaround, h", float(turnaround.mean()) / HOUR_S, ",.2f"),
                    ("median turnaround, h", float(np.median(turnaround)) / HOUR_S, ",.2f"),
                    ("mean size", float(done.processors.mean()), ".1f"),
                    ("busy", _busy(jobs, done), ".0%"),
                ]
            )
    return rows


def _busy(jobs: MalleableJobs, done: MalleableSchedule) -> float:
    """Give the share of the machine's time that jobs held, up to the last submission."""
    last = int(jobs.submit_time[-1])
    held = np.minimum(done.end_time, last) - np.minimum(done.start_time, last)
    return float((held * done.processors).sum() / (PROCESSORS * last))


def _largest(jobs: MalleableJobs, job: int, at_most: float) -> int:
    """Give the largest useful size that is not above a bound, at least 1."""
    sizes = useful_sizes(jobs, job)
    return int(sizes[max(int(np.searchsorted(sizes, at_most, side="right")) - 1, 0)])


def _average_parallelism(jobs: MalleableJobs) -> SizeRule:
    return lambda job, state: _largest(jobs, job, jobs.speedups[job].parallelism)


def _quickest(jobs: MalleableJobs) -> SizeRule:
    return lambda job, state: _largest(jobs, job, PROCESSORS)


def _what_is_free(jobs: MalleableJobs) -> SizeRule:
    return lambda job, state: _largest(jobs, job, state.free)


def _fair_share(jobs: MalleableJobs) -> SizeRule:
    return lambda job, state: _largest(jobs, job, PROCESSORS / (state.queued + 1))


def _greedy(jobs: MalleableJobs) -> SizeRule:
    """Choose by Downey's combined predictor; lifetimes fitted to what has ended so far."""
    runtimes = np.zeros(len(jobs), dtype=np.int64)
    model = Lifetimes(np.array([0.0, np.log(DAY_S)]), np.array([0.0, 1.0]))
    fitted_at = _KNOWN_JOBS / _REFIT

    def rule(job: int, state: HeadState) -> int:
        nonlocal model, fitted_at
        ended = np.delete(runtimes[:job], state.running)
        if len(ended) >= _REFIT * fitted_at:
            line = fit_uniform_log(ended)
            model = model if line is None else line.lifetimes
            fitted_at = len(ended)
        size = _chosen(jobs, job, state, [model] * len(state.running))
        runtimes[job] = jobs.runtimes(job, np.array([size]))[0]
        return size

    return rule


def _clairvoyant(jobs: MalleableJobs) -> SizeRule:
    """Choose likewise, with the runtimes of the running jobs known."""
    lives: list[Lifetimes] = []

    def rule(job: int, state: HeadState) -> int:
        size = _chosen(jobs, job, state, [lives[index] for index in state.running.tolist()])
        runtime = int(jobs.runtimes(job, np.array([size]))[0])
        lives.append(Lifetimes(np.log([runtime, runtime + 0.5]), np.array([0.0, 1.0])))
        return size

    return rule


def _chosen(jobs: MalleableJobs, job: int, state: HeadState, models: Sequence[Lifetimes]) -> int:
    sizes = useful_sizes(jobs, job)
    runtimes = jobs.runtimes(job, sizes).astype(np.float64)
    lives = RunningLives(models, state.age)
    choice = choose_at_head(sizes, runtimes, state.free, state.held, lives)
    return int(sizes[choice.best or 0])


RULES: dict[str, Callable[[MalleableJobs], SizeRule]] = {
    "average parallelism A": _average_parallelism,
    "as wide as helps": _quickest,
    "what is free": _what_is_free,
    "machine / queue length": _fair_share,
    "greedy, Downey's predictor": _greedy,
    "greedy, runtimes known": _clairvoyant,
}
