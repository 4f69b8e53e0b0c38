"""Downey 1997 again: what is run. Tables and figures are made of it by the modules beside this.

A log is scheduled strictly first come, first served. How long jobs wait at the head of the queue is
predicted (`downey1997_heads`) with parameters of the whole log, as in most of the paper, with those
of the four months before (section 6.1), and with what had finished by then.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import Lifetimes, Overdue
from foretime_estimators.distributions.uniform_log import UniformLog, fit_uniform_log
from foretime_estimators.distributions.uniform_log_classes import (
    Classifier,
    Fit,
    LifetimeClasses,
    fit_one_stage,
    size_class,
)
from foretime_estimators.distributions.uniform_log_stages import fit_stages
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

from foretime_studies.downey1997.clusters import side_by_side
from foretime_studies.downey1997.greedy import greedy_choices
from foretime_studies.downey1997.heads import (
    HeadMoment,
    Heads,
    ModelOf,
    Predicted,
    heads_of,
    predict,
    predict_exactly,
)
from foretime_studies.downey1997.logs import PARAGON, Names, StudiedLog
from foretime_studies.downey1997.queues import whole_queues
from foretime_studies.frame.progress import Progress
from foretime_studies.frame.tables import Cell, Row

_PREDICTED = 9_000
"""Moments at which the main predictions are made; of more, every so manieth is taken."""
_THINNED = 2_000
"""Moments at which variants are compared, likewise."""
_EXACT = 300
"""Moments at which the exact median is worked out."""
_PERIOD_MONTHS = 4
_LEAST_OF_PERIOD = 0.03
"""Share of the log's jobs that a period has at least."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to get lifetimes, and what it predicts at some moments."""

    name: str
    actual_s: Int64Array  # waits at the head, seconds, shape (moments,)
    predicted: Predicted


@dataclass(frozen=True, slots=True)
class Period:
    """Four months of a log."""

    name: str  # such as ``1-4/96``
    jobs: BoolArray  # which jobs were submitted then, shape (jobs,)
    lines: dict[str, UniformLog | None]  # fitted line of each class, ``None`` where there is none


@dataclass(frozen=True, slots=True)
class LogFound:
    """What was found on one log."""

    log: StudiedLog
    lines: dict[str, UniformLog | None]  # fitted line of each class
    stages: dict[str, Lifetimes | None]  # fitted stages of each class
    heads: Heads  # its FCFS schedule, and who waited at the head
    every: int  # of the moments every so manieth is predicted
    predicted: Predicted  # with the lines of the whole log, at those moments
    variants: tuple[Variant, ...]  # other ways, at fewer moments
    periods: tuple[Period, ...]  # its thirds of years
    # By period what its own lines predict, and at the same moments those of the period before, if
    # there is one.
    by_period: dict[str, list[Variant]]
    # exact_s, exact_at: exact medians, and the moments that they are of
    exact_s: Float64Array
    exact_at: Int64Array

    @property
    def needed(self) -> Int64Array:
        """Give n' at the predicted moments."""
        return self.heads.needed[:: self.every]

    @property
    def actual_s(self) -> Int64Array:
        """Give the waits at the head that are predicted, seconds."""
        return self.heads.wait_s[:: self.every]


@dataclass(frozen=True, slots=True)
class Downey1997:
    """What was found: logs, whole queues, and what choices of sizes and of clusters do."""

    logs: tuple[LogFound, ...]
    queues: tuple[tuple[Cell, ...], ...]
    greedy: tuple[Row, ...]
    clusters: tuple[tuple[Cell, ...], ...]


STEPS_PER_LOG = 13
"""Steps of the progress that each log counts."""
LAST_STEPS = 2
"""Steps after all logs."""


def study(
    # The first plays the Paragon's part in figures, the others that of the SP2.
    logs: Sequence[StudiedLog],
    # Called after each step; there are ``STEPS_PER_LOG`` for each log, and ``LAST_STEPS``.
    progress: Progress | None = None,
    *,
    asked: int = 300,  # jobs of each log whose whole wait is predicted
    malleable_jobs: int = 1_000,  # jobs of the generated workloads that choose their sizes
    seed: int = 1,  # of what is drawn
) -> Downey1997:
    """Run everything."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done)

    found = []
    queues: list[tuple[Cell, ...]] = []
    for log in logs:
        found.append(_on_log(log, step))
        # Where jobs have no requests, they are the runtimes here: nothing to forecast with.
        if log.name.startswith(PARAGON):
            step()
            continue
        queues += whole_queues(log.with_limits(), asked, seed)
        step()
    greedy = greedy_choices(malleable_jobs, seed)
    step()
    asking = [log.with_limits() for log in logs if not log.name.startswith(PARAGON)]
    clusters = side_by_side(asking, seed)
    step()
    return Downey1997(tuple(found), tuple(queues), tuple(greedy), tuple(clusters))


def _on_log(log: StudiedLog, step: Callable[[], None]) -> LogFound:
    heads = heads_of(log.workload)
    lines = {name: fit_uniform_log(log.runtimes(name)) for name in log.class_names}
    stages = {name: fit_stages(log.runtimes(name)) for name in log.class_names}
    of_class = {name: _lifetimes(line) for name, line in lines.items()}
    whole = _by_class(log, of_class)
    every = _step(heads.moments, _PREDICTED)
    asked = heads.moments[::every]
    predicted = predict(heads, whole, asked)
    step()
    few = heads.moments[:: _step(heads.moments, _THINNED)]
    memory = [_label(log, log.memory)] if (log.memory != "").any() else []
    in_class = _label(log, log.classes)
    known_then: dict[str, ModelOf | None] = {
        "all jobs alike": _learned(heads, []),
        "class": _learned(heads, [in_class]),
        "class, stages": _learned(heads, [in_class], fit_stages),
        "class, size": _learned(heads, [in_class, size_class]),
        "class, size, memory": _learned(heads, [in_class, size_class, *memory]) if memory else None,
        "class, user": _learned(heads, [in_class, lambda job: job.user]),
    }
    variants = []
    for name, model_of, overdue in (
        ("one stage, whole log", whole, Overdue.PAST_REPEATS),
        ("fitted stages, whole log", _by_class(log, stages), Overdue.PAST_REPEATS),
        ("overdue jobs end now", whole, Overdue.ENDS_NOW),
        ("overdue jobs never end", whole, Overdue.NEVER_ENDS),
        ("past repeats (no model)", lambda job, time: None, Overdue.PAST_REPEATS),
        *((f"past only: {by}", model, Overdue.PAST_REPEATS) for by, model in known_then.items()),
    ):
        if model_of is not None:
            variants.append(_variant(name, heads, few, model_of, overdue))
        step()
    periods = periods_of(log)
    at = np.arange(0, len(asked), _step(asked, _EXACT))
    exact = predict_exactly(heads, whole, [asked[place] for place in at.tolist()])
    by_period = _by_period(log, heads, periods)
    return LogFound(
        log,
        lines,
        stages,
        heads,
        every,
        predicted,
        tuple(variants),
        periods,
        by_period,
        exact,
        at,
    )


def _step(moments: Sequence[HeadMoment], most: int) -> int:
    """Give how many moments to go on by for no more than so many."""
    return max(1, -(-len(moments) // most))


def _lifetimes(line: UniformLog | None) -> Lifetimes | None:
    return None if line is None else line.lifetimes


def _by_class(log: StudiedLog, models: dict[str, Lifetimes | None]) -> ModelOf:
    classes = log.classes.tolist()
    return lambda job, time: models[classes[job]]


def _label(log: StudiedLog, labels: Names) -> Classifier:
    """Classify by a column of the study's own."""
    of_job = dict(
        zip([str(number) for number in log.workload.job_id.tolist()], labels.tolist(), strict=True)
    )
    return lambda job: of_job[job.job_id] or None


def _learned(heads: Heads, classifiers: Sequence[Classifier], fit: Fit = fit_one_stage) -> ModelOf:
    """Give lifetimes of what has finished by each time; to be asked in order of time."""
    classes = LifetimeClasses(classifiers, fit=fit)
    workload = heads.workload
    ends = np.argsort(heads.end_time, kind="stable").tolist()
    end_of = heads.end_time.tolist()
    requests: dict[int, JobRequest] = {}
    ended = 0

    def request(job: int) -> JobRequest:
        if job not in requests:
            requests[job] = workload.job_request(job)
        return requests[job]

    def model_of(job: int, time: int) -> Lifetimes | None:
        nonlocal ended
        while ended < len(ends) and end_of[ends[ended]] <= time:
            over = ends[ended]
            start, end = int(heads.start_time[over]), end_of[over]
            learned = FinishedJob(request(over), start, end, end - start, Ending.COMPLETED)
            classes.learn_one(learned)
            ended += 1
        return classes.lifetimes(request(job))

    return model_of


def periods_of(log: StudiedLog) -> tuple[Period, ...]:
    """Divide a log into thirds of calendar years (figure 7, table 5); UTC.

    Those with few of its jobs, as at its ends, are left out.
    """
    epoch = log.workload.epoch_of_zero
    thirds = []
    for time in (log.workload.submit_time + epoch).tolist():
        date = datetime.datetime.fromtimestamp(time, datetime.UTC)
        thirds.append(date.year * 3 + (date.month - 1) // _PERIOD_MONTHS)
    of_job = np.array(thirds)
    periods = []
    for third in sorted(set(thirds)):
        jobs = of_job == third
        if jobs.mean() < _LEAST_OF_PERIOD:
            continue
        year, part = divmod(third, 3)
        first = part * _PERIOD_MONTHS + 1
        name = f"{first}-{first + _PERIOD_MONTHS - 1}/{year % 100:02d}"
        lines = {
            key: fit_uniform_log(log.workload.actual_runtime[jobs & (log.classes == key)])
            for key in log.class_names
        }
        periods.append(Period(name, jobs, lines))
    return tuple(periods)


def _by_period(
    log: StudiedLog, heads: Heads, periods: Sequence[Period]
) -> dict[str, list[Variant]]:
    """Predict with each period's own lines, and with those of the period before (section 6.1).

    Where a class had no line then, that of all its period's jobs stands in.
    """
    begins = [int(log.workload.submit_time[period.jobs][0]) for period in periods]
    every = _step(heads.moments, _THINNED)
    place = (np.searchsorted(begins, heads.time, side="right") - 1)[::every].tolist()
    few = heads.moments[::every]
    models = []
    for period in periods:
        everybody = _lifetimes(fit_uniform_log(log.workload.actual_runtime[period.jobs]))
        models.append({name: _lifetimes(line) or everybody for name, line in period.lines.items()})
    found = {}
    for which, period in enumerate(periods):
        asked = [moment for moment, at in zip(few, place, strict=True) if at == which]
        lines_of = {"own four months": which, "four months before": which - 1}
        found[period.name] = [
            _variant(name, heads, asked, _by_class(log, models[of]))
            for name, of in lines_of.items()
            if of >= 0
        ]
    return found


def _variant(
    name: str,
    heads: Heads,
    asked: Sequence[HeadMoment],
    model_of: ModelOf,
    overdue: Overdue = Overdue.PAST_REPEATS,
) -> Variant:
    actual = np.array([moment.wait_s for moment in asked], dtype=np.int64)
    return Variant(name, actual, predict(heads, model_of, asked, overdue=overdue))
