"""The runs of a study: cases on inputs, once as the log is and again on jittered copies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.job_events import learn_history
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.estimators.scaled_request import ScaledRequest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, job_requests
from foretime_sim.engine.finished_history import finished_before
from foretime_sim.engine.schedule import Schedule, StartedBy
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.gains import relative_gain
from foretime_sim.scores.intervals import Interval, t_interval
from foretime_sim.scores.job_classes import LENGTHS, SIZES, JobClasses
from foretime_sim.scores.metrics import Direction, rank, slowdown, unitless_wait
from foretime_sim.scores.repeats import FEWEST_REPEATS, Repeats
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import in_threads
from foretime_studies.frame.tables import Row

METRICS = ("wait", "unitless_wait", "slowdown")
"""What Tang 2010 measures (IV.C); waits in seconds."""
FRACTIONS = tuple(round(0.90 + step / 200, 3) for step in range(21))
"""Shares of the jobs, smallest values first, over which means are taken (Tang 2010, figure 6)."""
JITTER_S = 60


@dataclass(frozen=True, slots=True)
class StudyInput:
    """A workload that cases run on.

    Attributes
    ----------
    name
        What tables call it.
    test
        The jobs that are simulated.
    history
        Jobs before them, for estimators; they are learned as far as they had ended by then.
    """

    name: str
    test: Workload
    history: Workload | None


@dataclass(frozen=True, slots=True)
class StudyCase:
    """One way to schedule an input.

    Attributes
    ----------
    name
        Its key.
    on
        Name of its input.
    policy
        What the scheduler does; its roles say where the estimate is used.
    estimate
        An estimator's name; the history alone is learned. ``doubled`` plans with twice the
        request, beyond the limit at which jobs are killed.
    repeated
        Whether it is run on the jittered copies, too.
    """

    name: str
    on: str
    policy: Policy
    estimate: str = "requested"
    repeated: bool = True


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What is kept of one run.

    Attributes
    ----------
    below
        By metric, shape of `FRACTIONS`: mean over the jobs with the smallest values.
    started
        Share of the jobs by how they started, in the order of `StartedBy`.
    started_jobs
        The same as numbers of jobs.
    by_size, by_length
        By metric, shape (4,): mean of each class of `foretime_sim.scores.job_classes`; NaN without
        jobs.
    outlived
        Share of the jobs that ran longer than they were planned with.
    """

    below: dict[str, Float64Array]
    started: tuple[float, float, float]
    started_jobs: tuple[int, int, int]
    by_size: dict[str, Float64Array]
    by_length: dict[str, Float64Array]
    outlived: float

    def mean(self, metric: str, fraction: float = 1.0) -> float:
        """Mean of a metric over a fraction of `FRACTIONS`."""
        return float(self.below[metric][FRACTIONS.index(fraction)])


@dataclass(frozen=True, slots=True)
class CaseRuns:
    """A case's runs: on the log as it is, and on its jittered copies."""

    single: RunFigures
    repeats: tuple[RunFigures, ...]


@dataclass(frozen=True, slots=True)
class Gain:
    """How much better a case is than its baseline: (base - new) / base (Tang 2010, IV.C).

    Attributes
    ----------
    single
        On the log as it is; ``None`` where the baseline is 0.
    mean, interval
        Of the repeats' gains; ``None`` without repeats, the interval with fewer than three.
    """

    single: float | None
    mean: float | None
    interval: Interval | None

    @property
    def words(self) -> str | None:
        """The interval as tables have it."""
        return (
            None
            if self.interval is None
            else f"{self.interval.low:+.1%} to {self.interval.high:+.1%}"
        )

    def copies(self, heading: str = "copies") -> Row:
        """Give the copies' mean and its interval as cells of a table."""
        return [(heading, self.mean, "+.1%"), ("95%", self.words)]


class StudyRuns(dict[str, CaseRuns]):
    """Every case's runs by its name."""

    def gain(self, base: str, case: str, of: Callable[[RunFigures], float]) -> Gain:
        """Compare one figure of a case with its baseline, run by run."""
        old, new = self[base], self[case]
        return paired_gain(
            of(old.single), of(new.single), map(of, old.repeats), map(of, new.repeats)
        )


def paired_gain(
    old: float, new: float, old_repeats: Iterable[float], new_repeats: Iterable[float]
) -> Gain:
    """Compare a figure on the log as it is, and repeat by repeat: each pair is of one copy."""
    single = relative_gain(old, new, Direction.SMALLER)
    pairs = zip(old_repeats, new_repeats, strict=False)
    gains = [relative_gain(before, after, Direction.SMALLER) for before, after in pairs]
    known = [gain for gain in gains if gain is not None]
    if not known or len(known) < len(gains):
        return Gain(single, None, None)
    interval = t_interval(known) if len(known) >= FEWEST_REPEATS else None
    return Gain(single, float(np.mean(known)), interval)


@dataclass(frozen=True, slots=True)
class _Planned:
    """What the jobs of an input are planned with: shape (jobs,), seconds, in the input's order."""

    scheduled_time: Int64Array | None
    beyond_request: bool = False


def run_cases(
    inputs: Mapping[str, StudyInput],
    cases: Sequence[StudyCase],
    *,
    repeats: int,
    seed: int,
    workers: int,
    classes: JobClasses | None = None,
    progress: Callable[[int], None] | None = None,
) -> StudyRuns:
    """Run every case on its input, and on the jittered copies of it.

    Parameters
    ----------
    inputs
        By name.
    cases
        With distinct names.
    repeats
        Jittered copies, 0 or more (`Workload.jittered` by up to a minute, ties shuffled); every
        case meets the same.
    seed
        Of the copies, and of randomised estimates.
    workers
        Threads; the engine runs without the interpreter's lock.
    classes
        Bounds of the classes.
    progress
        Called with the number of runs done so far.
    """
    classes = classes or JobClasses()
    varying = Repeats(max(repeats, 2), seed=seed, jitter_s=JITTER_S)
    numbered = {
        name: replace(given.test, job_id=np.arange(len(given.test), dtype=np.int64))
        for name, given in inputs.items()
    }
    planned = {
        (case.on, case.estimate): _plan(inputs[case.on], case.estimate, seed) for case in cases
    }
    copies: dict[tuple[str, int], Workload] = {(name, 0): jobs for name, jobs in numbered.items()}
    for name in {case.on for case in cases if case.repeated}:
        for repeat in range(repeats):
            copies[name, repeat + 1] = varying.varied(numbered[name], repeat)
    tasks = {
        (case.name, number): functools.partial(
            _run, copies[case.on, number], case, planned[case.on, case.estimate], classes
        )
        for number in range(repeats + 1)
        for case in cases
        if number == 0 or case.repeated
    }
    found = in_threads(tasks, workers, progress)
    runs = StudyRuns()
    for case in cases:
        numbers = range(1, repeats + 1) if case.repeated else ()
        runs[case.name] = CaseRuns(
            found[case.name, 0], tuple(found[case.name, number] for number in numbers)
        )
    return runs


def runs_in_all(cases: Sequence[StudyCase], repeats: int) -> int:
    """How many runs `run_cases` makes."""
    return sum(1 + repeats * case.repeated for case in cases)


def _plan(given: StudyInput, estimate: str, seed: int) -> _Planned:
    """Work out what each job is planned with: the paper's rule, learned from the history alone."""
    if estimate == "requested":
        return _Planned(None)
    requests = job_requests(given.test)
    if estimate == "doubled":
        doubling = parse_estimator(estimate)
        if not isinstance(doubling, ScaledRequest):
            raise TypeError(f"{estimate} is no scaled request")
        times = [doubling.predicted_runtime(request) for request in requests]
        return _Planned(np.array(times, dtype=np.int64), beyond_request=True)
    estimator = estimator_of(estimate, given.test, settings=AccuracySettings.tang2010(), seed=seed)
    if given.history is not None:
        learn_history(estimator, finished_before(given.history, given.test))
    now = requests[0].submit_time
    times = [estimator.predict_one(request, now) for request in requests]
    return _Planned(np.array(times, dtype=np.int64))


def _run(workload: Workload, case: StudyCase, planned: _Planned, classes: JobClasses) -> RunFigures:
    """Run a case on a copy of its input, whose job numbers are places in the input."""
    limit = workload.requested_time
    if planned.scheduled_time is None:
        times = limit
        schedule = simulate(workload, case.policy)
    else:
        times = planned.scheduled_time[workload.job_id]
        if planned.beyond_request:
            # The scheduler takes the longer time for the request; jobs end at their own limit.
            told = replace(workload, requested_time=times)
            schedule = simulate(told, case.policy, time_limit=limit)
        else:
            schedule = simulate(workload, case.policy, times)
    return figures_of(workload, schedule, times, classes)


def figures_of(
    workload: Workload, schedule: Schedule, scheduled_time: Int64Array, classes: JobClasses
) -> RunFigures:
    """Keep of a run what the tables and figures need."""
    wait = schedule.start_time - workload.submit_time
    runtime = schedule.end_time - schedule.start_time
    values: dict[str, Float64Array] = {
        "wait": wait.astype(np.float64),
        "unitless_wait": unitless_wait(wait, workload.requested_time),
        "slowdown": slowdown(wait, runtime),
    }
    jobs = len(workload)
    ranks = np.array([rank(fraction, jobs) for fraction in FRACTIONS])
    size, length = classes.size(workload), classes.length(workload)
    started_jobs = tuple(int((schedule.started_by == how).sum()) for how in StartedBy)
    head, out_of_order, backfilled = started_jobs
    return RunFigures(
        below={
            name: np.cumsum(np.sort(array))[ranks - 1] / ranks for name, array in values.items()
        },
        started=(head / jobs, out_of_order / jobs, backfilled / jobs),
        started_jobs=(head, out_of_order, backfilled),
        by_size={name: _by_class(array, size, len(SIZES)) for name, array in values.items()},
        by_length={name: _by_class(array, length, len(LENGTHS)) for name, array in values.items()},
        outlived=float(np.mean(runtime > scheduled_time)),
    )


def _by_class(values: Float64Array, code: Int64Array, classes: int) -> Float64Array:
    """Mean of each class; NaN where it has no job."""
    jobs = np.bincount(code, minlength=classes)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(code, values, classes) / jobs)
