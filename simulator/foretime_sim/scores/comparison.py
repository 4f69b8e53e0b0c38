"""Two runs of the same jobs compared, as means over repeats, with how sure the gains are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.scores.gains import MetricComparison, compare_metric, resampled_figures
from foretime_sim.scores.intervals import Weeks, gains
from foretime_sim.scores.job_classes import CLASS_METRICS, JobClasses, scores_by_class
from foretime_sim.scores.metrics import (
    METRICS,
    Direction,
    Metric,
    ScheduleLike,
    ScoredSpan,
    Scores,
    ScoreSettings,
    job_metrics,
    score,
    starved,
)
from foretime_sim.scores.repeats import Repeats
from foretime_sim.scores.shortening import Shortening
from foretime_sim.scores.user_waits import waits_by_user
from foretime_sim.scores.wait_curve import wait_curve
from foretime_sim.workloads.workload import Workload

PAIRED_METRICS = {
    metric.key: metric
    for metric in (
        Metric("started_earlier_jobs", "start earlier", "jobs", Direction.NEITHER),
        Metric("started_later_jobs", "start later", "jobs", Direction.NEITHER),
        Metric("newly_starved_jobs", "newly starved", "jobs", Direction.SMALLER),
        Metric("largest_added_wait_s", "largest added wait", "s", Direction.SMALLER),
    )
}
"""What is told of the adjusted run's jobs against the same jobs in the baseline."""


class AdjustedSchedule(ScheduleLike, Protocol):
    """A schedule of the adjusted run: it also says what jobs were planned with."""

    @property
    def scheduled_time(self) -> Int64Array:
        """Shape (jobs,): t_sched, seconds."""
        ...


class PairedRun(NamedTuple):
    """What a repeat gives back: both schedules of one workload, and what else is to be kept."""

    baseline: ScheduleLike
    adjusted: AdjustedSchedule
    statistics: object = None


Run: TypeAlias = Callable[[Workload, int], PairedRun]
"""Simulates a workload twice, without and with adjustment; its second argument is the repeat."""


@dataclass(frozen=True, slots=True)
class RepeatScores:
    """One repeat, scored.

    Attributes
    ----------
    baseline, adjusted
        Scores of the two runs.
    paired
        Each of `PAIRED_METRICS`.
    shortening
        How far t_sched lay below t_req, scored jobs only.
    baseline_classes, adjusted_classes
        What `scores_by_class` says of the two runs.
    user_waits
        What `waits_by_user` says of the scored jobs.
    baseline_wait_curve, adjusted_wait_curve
        Shape of `WAIT_CURVE_SHARES`: waits, seconds, that these shares of the jobs do not exceed.
    resampled_gains
        By metric, shape (resamples,); empty when no bootstrap was asked for or possible.
    statistics
        What the run gave back besides.
    """

    baseline: Scores
    adjusted: Scores
    paired: dict[str, int]
    shortening: Shortening
    baseline_classes: pd.DataFrame
    adjusted_classes: pd.DataFrame
    user_waits: pd.DataFrame
    baseline_wait_curve: Float64Array
    adjusted_wait_curve: Float64Array
    resampled_gains: dict[str, Float64Array]
    statistics: object


@dataclass(frozen=True, slots=True)
class Comparison:
    """Baseline and adjusted runs over all repeats.

    Attributes
    ----------
    repeats
        Each repeat's scores, in order.
    metrics
        By key, in the order of `METRICS`.
    level
        Of the intervals.
    interval_method
        ``t``, ``weeks``, or ``none`` where the log is too short for a bootstrap.
    settings, span, classes
        As scored.
    jitter_s, seed
        As repeated; ``jitter_s`` is 0 where the log was run as it is.
    """

    repeats: tuple[RepeatScores, ...]
    metrics: dict[str, MetricComparison]
    level: float
    interval_method: str
    settings: ScoreSettings
    span: ScoredSpan
    classes: JobClasses
    jitter_s: int
    seed: int

    def __getitem__(self, key: str) -> MetricComparison:
        return self.metrics[key]

    def paired(self, key: str) -> float:
        """Mean over the repeats of one of `PAIRED_METRICS`."""
        return sum(repeat.paired[key] for repeat in self.repeats) / len(self.repeats)

    def by_class(self, metric: str) -> pd.DataFrame:
        """Compare one metric by class.

        Parameters
        ----------
        metric
            One of `CLASS_METRICS`.

        Returns
        -------
        pandas.DataFrame
            Rows as in `scores_by_class`; columns ``jobs``, ``baseline``, ``adjusted`` (means over
            the repeats) and ``gain`` of these means, NaN where it is not defined.
        """
        if metric not in CLASS_METRICS:
            raise InputError(
                f"no metric {metric!r} by class: take one of {', '.join(CLASS_METRICS)}"
            )
        count = len(self.repeats)
        baseline = sum(repeat.baseline_classes[metric] for repeat in self.repeats) / count
        adjusted = sum(repeat.adjusted_classes[metric] for repeat in self.repeats) / count
        jobs = sum(repeat.baseline_classes["jobs"] for repeat in self.repeats) / count
        table = pd.DataFrame({"jobs": jobs, "baseline": baseline, "adjusted": adjusted})
        sign = {Direction.SMALLER: 1.0, Direction.LARGER: -1.0}.get(METRICS[metric].better, np.nan)
        base = table["baseline"].where(table["baseline"] > 0)
        table["gain"] = sign * (base - table["adjusted"]) / base
        return table

    def by_user(self) -> pd.DataFrame:
        """Compare the mean waits of users: means over the repeats of `waits_by_user`."""
        found = pd.concat([repeat.user_waits for repeat in self.repeats])
        return found.groupby(level=0, sort=False).mean()


@dataclass(frozen=True)
class _Task:
    """One repeat's work, as it goes to a worker process."""

    run: Run
    settings: ScoreSettings
    span: ScoredSpan
    classes: JobClasses
    weeks: Weeks | None

    def __call__(self, workload: Workload, repeat: int) -> RepeatScores:
        return score_pair(
            workload,
            PairedRun(*self.run(workload, repeat)),
            settings=self.settings,
            span=self.span,
            classes=self.classes,
            weeks=self.weeks,
        )


def score_pair(
    workload: Workload,
    pair: PairedRun,
    *,
    settings: ScoreSettings,
    span: ScoredSpan,
    classes: JobClasses,
    weeks: Weeks | None = None,
) -> RepeatScores:
    """Score both runs on the jobs that ran in both; see `compare` for the parameters."""
    span = span.among(pair.baseline.start_time, pair.adjusted.start_time)
    scored = span.select(workload)
    baseline = job_metrics(workload, pair.baseline, settings)
    adjusted = job_metrics(workload, pair.adjusted, settings)
    old = {name: values[scored] for name, values in baseline.items()}
    new = {name: values[scored] for name, values in adjusted.items()}
    requested = workload.requested_time[scored]
    old_starved = starved(old["wait"], requested, settings)
    new_starved = starved(new["wait"], requested, settings)
    added = new["wait"] - old["wait"]
    resampled = {}
    jobs = workload.take(scored)
    if weeks is not None:
        resampled = gains(
            resampled_figures(weeks, jobs, old, settings),
            resampled_figures(weeks, jobs, new, settings),
        )
    return RepeatScores(
        baseline=score(workload, pair.baseline, settings, span),
        adjusted=score(workload, pair.adjusted, settings, span),
        paired={
            "started_earlier_jobs": int((added < 0).sum()),
            "started_later_jobs": int((added > 0).sum()),
            "newly_starved_jobs": int((new_starved & ~old_starved).sum()),
            "largest_added_wait_s": max(0, int(added.max())),
        },
        shortening=Shortening.of(
            requested, pair.adjusted.scheduled_time[scored], workload.actual_runtime[scored]
        ),
        baseline_classes=scores_by_class(workload, pair.baseline, classes, settings, span),
        adjusted_classes=scores_by_class(workload, pair.adjusted, classes, settings, span),
        user_waits=waits_by_user(jobs, old["wait"], new["wait"]),
        baseline_wait_curve=wait_curve(old["wait"]),
        adjusted_wait_curve=wait_curve(new["wait"]),
        resampled_gains=resampled,
        statistics=pair.statistics,
    )


def compare(
    workload: Workload,
    run: Run,
    *,
    repeats: int = 1,
    seed: int = 0,
    jitter_s: int = 60,
    span: ScoredSpan | None = None,
    settings: ScoreSettings | None = None,
    classes: JobClasses | None = None,
    level: float = 0.95,
    workers: int | None = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Compare a scheme with its baseline on the same jobs after the same warm-up.

    A single repeat runs the log as it is. With more, each submits every job up to ``jitter_s``
    seconds earlier or later and shuffles the order of equal submissions, from its own seed; both
    runs of a repeat get the same jobs. From three repeats on the interval is Student's, of the mean
    of the repeats' gains: what the schedule's chaos does to a gain. Below that it is a bootstrap
    over weeks of submission: what another choice of weeks would do to it.

    Parameters
    ----------
    workload
        The log.
    run
        Gives both schedules of a workload, whose jobs may stand in another order than the log's. It
        and what it returns must be picklable when ``workers`` is not 1.
    repeats, seed, jitter_s
        How often, from which seed, and by how many seconds submissions move.
    span
        Which jobs are scored; all.
    settings, classes
        Bounds of metrics and classes.
    level
        Of the intervals, between 0 and 1.
    workers
        Processes; ``None`` for one per physical core. 1 runs in this process.
    progress
        Called with repeats done and repeats in all, at each that is done.

    Examples
    --------
    >>> from foretime_estimators import parse_estimator
    >>> from foretime_sim import Backfill, Policy, compare, generate, simulate_with_estimator
    >>> from foretime_sim.scores.comparison import PairedRun
    >>> from foretime_sim.scores.metrics import ScoredSpan
    >>> def run(jobs, repeat):
    ...     plain = simulate_with_estimator(jobs, Policy(), parse_estimator("requested"))
    ...     shortest, predicted = Policy(backfill=Backfill.EASY_SJBF), parse_estimator("last-two")
    ...     return PairedRun(plain, simulate_with_estimator(jobs, shortest, predicted))
    >>> found = compare(generate("lublin2003", jobs=100, seed=1), run, span=ScoredSpan(0))
    >>> wait = found.metrics["wait_mean_s"]
    >>> wait.metric.title, wait.metric.unit, wait.baseline > 0
    ('wait, mean', 's', True)
    """
    varied = Repeats(repeats, seed=seed, jitter_s=jitter_s, level=level, workers=workers)
    span = span or ScoredSpan()
    task = _Task(
        run=run,
        settings=settings or ScoreSettings(),
        span=span,
        classes=classes or JobClasses(),
        weeks=varied.weeks(workload.submit_time[span.select(workload)]),
    )
    scores = varied.run(workload, task, progress)
    baseline = [repeat.baseline.to_dict() for repeat in scores]
    adjusted = [repeat.adjusted.to_dict() for repeat in scores]
    resampled = [repeat.resampled_gains for repeat in scores]
    return Comparison(
        repeats=scores,
        metrics={
            key: compare_metric(
                metric,
                [figures[key] for figures in baseline],
                [figures[key] for figures in adjusted],
                resampled,
                level,
            )
            for key, metric in METRICS.items()
        },
        level=level,
        interval_method=varied.interval_method(task.weeks),
        settings=task.settings,
        span=span,
        classes=task.classes,
        jitter_s=varied.jitter_s if varied.vary else 0,
        seed=seed,
    )
