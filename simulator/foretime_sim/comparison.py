"""Two runs of the same jobs compared, as means over repeats, with how sure the gains are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pandas as pd
import psutil
from foretime_estimators.errors import InputError

from foretime_sim.intervals import Interval, Weeks, percentile_interval, t_interval
from foretime_sim.job_classes import CLASS_METRICS, JobClasses, scores_by_class
from foretime_sim.metrics import (
    METRICS,
    Direction,
    Float64Array,
    Metric,
    ScheduleLike,
    ScoredSpan,
    Scores,
    ScoreSettings,
    job_metrics,
    score,
    starved,
)
from foretime_sim.shortening import Shortening
from foretime_sim.workload import Int64Array, Workload

FEWEST_REPEATS = 3
"""Repeats from which on Student's interval is given; with fewer, a bootstrap over weeks."""

WAIT_CURVE_SHARES = np.unique(
    np.concatenate((np.linspace(0, 1, 201), 1 - np.geomspace(1e-5, 1e-1, 101)))
)
"""Shares of the jobs at which `RepeatScores` keeps the distribution of waits; dense at the top."""

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
    baseline_wait_curve: Float64Array
    adjusted_wait_curve: Float64Array
    resampled_gains: dict[str, Float64Array]
    statistics: object


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric in both runs.

    Attributes
    ----------
    metric
        What it is.
    baseline, adjusted
        Means over the repeats, ``None`` where a repeat has no value.
    gain
        Mean over the repeats of (base - new) / base (Tang 2010, IV.C), or (new - base) / base where
        larger is better: positive is better. ``None`` where neither is, or where a base is 0.
    interval
        Of the gain; ``None`` where there is none.
    """

    metric: Metric
    baseline: float | None
    adjusted: float | None
    gain: float | None
    interval: Interval | None

    @property
    def ratio(self) -> float | None:
        """Adjusted / baseline, the way tails are told; ``None`` where either is missing or 0."""
        if self.baseline is None or self.adjusted is None or self.baseline == 0:
            return None
        return self.adjusted / self.baseline


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


@dataclass(frozen=True)
class _Task:
    """One repeat's work, as it goes to a worker process."""

    workload: Workload
    run: Run
    settings: ScoreSettings
    span: ScoredSpan
    classes: JobClasses
    jitter_s: int
    shuffle_ties: bool
    seed: int
    weeks: Weeks | None = field(default=None)

    def __call__(self, repeat: int) -> RepeatScores:
        rng = np.random.default_rng([self.seed, repeat])
        workload = self.workload
        if self.jitter_s:
            workload = workload.jittered(rng, self.jitter_s)
        if self.shuffle_ties:
            workload = workload.shuffled_ties(rng)
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
    """Score both runs on the same jobs; see `compare` for the parameters."""
    scored = span.select(workload)
    baseline = job_metrics(workload, pair.baseline, settings)
    adjusted = job_metrics(workload, pair.adjusted, settings)
    old = {name: values[scored] for name, values in baseline.items()}
    new = {name: values[scored] for name, values in adjusted.items()}
    requested, processors = workload.requested_time[scored], workload.processors[scored]
    old_starved = starved(old["wait"], requested, settings)
    new_starved = starved(new["wait"], requested, settings)
    added = new["wait"] - old["wait"]
    resampled = {}
    if weeks is not None:
        resampled = weeks.resampled_gains(
            workload.submit_time[scored],
            old,
            new,
            {
                "bounded_slowdown_weighted_mean": (
                    processors * old["bounded_slowdown"],
                    processors * new["bounded_slowdown"],
                ),
                "turnaround_time_weighted_mean_s": (
                    processors * old["turnaround_time"],
                    processors * new["turnaround_time"],
                ),
                "starved_jobs": (old_starved, new_starved),
            },
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
        baseline_wait_curve=np.quantile(old["wait"], WAIT_CURVE_SHARES, method="inverted_cdf"),
        adjusted_wait_curve=np.quantile(new["wait"], WAIT_CURVE_SHARES, method="inverted_cdf"),
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
    """
    if repeats < 1:
        raise InputError(f"{repeats} repeats: give at least 1")
    if seed < 0:
        raise InputError(f"seed {seed}: give 0 or more")
    if workers is not None and workers < 1:
        raise InputError(f"{workers} workers: give at least 1")
    if jitter_s < 0:
        raise InputError(f"jitter of {jitter_s} s: give 0 or more")
    if not 0 < level < 1:
        raise InputError(f"level of intervals is {level}: give a share between 0 and 1")
    span, vary = span or ScoredSpan(), repeats > 1
    scored_submissions = workload.submit_time[span.select(workload)]
    task = _Task(
        workload=workload,
        run=run,
        settings=settings or ScoreSettings(),
        span=span,
        classes=classes or JobClasses(),
        jitter_s=jitter_s if vary else 0,
        shuffle_ties=vary,
        seed=seed,
        weeks=Weeks.of(scored_submissions, seed) if repeats < FEWEST_REPEATS else None,
    )
    scores = _scores(task, repeats, workers, progress)
    method = "none" if task.weeks is None else "weeks"
    if repeats >= FEWEST_REPEATS:
        method = "t"
    return Comparison(
        repeats=scores,
        metrics={key: _compare_metric(metric, scores, level) for key, metric in METRICS.items()},
        level=level,
        interval_method=method,
        settings=task.settings,
        span=span,
        classes=task.classes,
        jitter_s=task.jitter_s,
        seed=seed,
    )


def _scores(
    task: _Task,
    repeats: int,
    workers: int | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[RepeatScores, ...]:
    done: dict[int, RepeatScores] = {}

    def finished(repeat: int, scores: RepeatScores) -> None:
        done[repeat] = scores
        if progress is not None:
            progress(len(done), repeats)

    processes = min(repeats, workers or psutil.cpu_count(logical=False) or 1)
    if processes == 1:
        for repeat in range(repeats):
            finished(repeat, task(repeat))
    else:
        # Spawned, because a fork of a process with threads (a progress bar's) may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context) as pool:
            futures = {pool.submit(task, repeat): repeat for repeat in range(repeats)}
            try:
                for future in as_completed(futures):
                    finished(futures[future], future.result())
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return tuple(done[repeat] for repeat in range(repeats))


def _compare_metric(
    metric: Metric, repeats: tuple[RepeatScores, ...], level: float
) -> MetricComparison:
    baseline = [repeat.baseline.to_dict()[metric.key] for repeat in repeats]
    adjusted = [repeat.adjusted.to_dict()[metric.key] for repeat in repeats]
    gains = [
        relative_gain(before, after, metric.better)
        for before, after in zip(baseline, adjusted, strict=True)
    ]
    known = [gain for gain in gains if gain is not None]
    gain = sum(known) / len(known) if len(known) == len(repeats) else None
    interval = None
    if gain is not None:
        if len(repeats) >= FEWEST_REPEATS:
            interval = t_interval(known, level)
        elif all(metric.key in repeat.resampled_gains for repeat in repeats):
            resampled = np.mean([r.resampled_gains[metric.key] for r in repeats], axis=0)
            interval = percentile_interval(resampled, level)
    return MetricComparison(metric, _mean(baseline), _mean(adjusted), gain, interval)


def relative_gain(
    baseline: float | None, adjusted: float | None, better: Direction
) -> float | None:
    """Give (base - new) / base, negated where larger is better; ``None`` where undefined."""
    if baseline is None or adjusted is None or baseline == 0 or better is Direction.NEITHER:
        return None
    gain = (baseline - adjusted) / baseline
    return gain if better is Direction.SMALLER else -gain


def _mean(values: list[float | int | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if len(known) == len(values) else None
