"""What is measured of a schedule; docs/outputs.md has every figure.

Arrays have shape (jobs,), in the workload's order. Each metric's unit, formula and source stand in
docs/outputs.md under the key that `METRICS` lists.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import WEEK_S

from foretime_sim.engine.schedule import StartedBy, that_ran
from foretime_sim.files.toml_keys import format_time
from foretime_sim.scores.machine_use import MachineUse
from foretime_sim.workloads.workload import Workload


class JobTimes(Protocol):
    """When jobs ran; every array has shape (jobs,), in the workload's order."""

    @property
    def start_time(self) -> Int64Array:
        """Seconds on the workload's clock."""
        ...

    @property
    def end_time(self) -> Int64Array:
        """Seconds on the workload's clock."""
        ...


class ScheduleLike(JobTimes, Protocol):
    """What else is read of a schedule, likewise."""

    @property
    def started_by(self) -> Int8Array:
        """A `foretime_sim.engine.schedule.StartedBy` for each job."""
        ...

    @property
    def outlived(self) -> BoolArray:
        """True where the job ran longer than its t_sched."""
        ...

    @property
    def used_up(self) -> BoolArray | None:
        """True where Slurm ended the job for used minutes; ``None``: it ended none so."""
        ...


class Direction(enum.Enum):
    """Which way a metric gets better."""

    SMALLER = "smaller"
    LARGER = "larger"
    NEITHER = "neither"


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure of `Scores.to_dict`.

    Attributes
    ----------
    key
        Its name in JSON and CSV, with the unit at the end where it has one.
    title
        Its name in tables.
    unit
        ``s``, ``jobs``, ``share`` (0 to 1) or ``ratio``.
    better
        Which way it gets better.
    """

    key: str
    title: str
    unit: str
    better: Direction = Direction.SMALLER


JOB_METRICS = {
    "wait": ("wait", "s"),
    "unitless_wait": ("unitless wait", "ratio"),
    "slowdown": ("slowdown", "ratio"),
    "bounded_slowdown": ("bounded slowdown", "ratio"),
    "turnaround_time": ("turnaround", "s"),
}
"""Figures that each job has: their title and unit."""

STATISTICS = {
    "mean": "mean",
    "mean_below_p99": "mean below p99",
    "p50": "median",
    "p90": "p90",
    "p99": "p99",
    "p99_9": "p99.9",
    "max": "maximum",
    "top_share": "top share",
}
"""What is said of the distribution of each of `JOB_METRICS`: their titles."""


def statistic_key(job_metric: str, statistic: str) -> str:
    """Key of one statistic of one job metric, such as ``wait_p99_s``."""
    in_seconds = JOB_METRICS[job_metric][1] == "s" and statistic != "top_share"
    return f"{job_metric}_{statistic}" + ("_s" if in_seconds else "")


def _metrics() -> dict[str, Metric]:
    listed = [Metric("jobs", "jobs scored", "jobs", Direction.NEITHER)]
    for name, (title, unit) in JOB_METRICS.items():
        for statistic, statistic_title in STATISTICS.items():
            share = statistic == "top_share"
            listed.append(
                Metric(
                    statistic_key(name, statistic),
                    f"{title}, {statistic_title}",
                    "share" if share else unit,
                    Direction.NEITHER if share else Direction.SMALLER,
                )
            )
        if name in ("bounded_slowdown", "turnaround_time"):
            key = f"{name}_weighted_mean" + ("_s" if unit == "s" else "")
            listed.append(Metric(key, f"{title}, by processors", unit))
    listed += [
        Metric("makespan_s", "makespan", "s"),
        Metric("utilization_makespan", "utilization, makespan", "share", Direction.LARGER),
        Metric("utilization_arrivals", "utilization, arrivals", "share", Direction.LARGER),
        Metric("loss_of_capacity", "loss of capacity", "share"),
        Metric("avoidable_loss_of_capacity", "loss of capacity, a job fits", "share"),
        Metric("started_from_head_jobs", "started from the head", "jobs", Direction.NEITHER),
        Metric("started_out_of_order_jobs", "started out of order", "jobs", Direction.NEITHER),
        Metric("backfilled_jobs", "backfilled", "jobs", Direction.NEITHER),
        Metric("outlived_jobs", "outlived t_sched", "jobs", Direction.NEITHER),
        Metric("killed_at_requested_jobs", "killed at t_req", "jobs", Direction.NEITHER),
        Metric("killed_early_jobs", "killed before t_req", "jobs"),
        Metric("used_up_jobs", "ended, minutes used up", "jobs"),
        Metric("starved_jobs", "starved", "jobs"),
    ]
    return {metric.key: metric for metric in listed}


METRICS = _metrics()
"""Every metric by its key, in the order of `Scores.to_dict`."""


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """What a site or a study may set about the metrics.

    Attributes
    ----------
    tau_s
        Bounded slowdown's bound, seconds, at least 1 (SC'15: 10; Streit 2002: 60).
    starved_wait_s, starved_wait_over_requested
        A job starved when its wait exceeds both ``starved_wait_s`` seconds and
        ``starved_wait_over_requested`` times its t_req.
    top_share
        Largest jobs, as a share of all, whose part of a mean is told; above 0, at most 1.
    """

    tau_s: int = 10
    starved_wait_s: int = WEEK_S
    starved_wait_over_requested: float = 10.0
    top_share: float = 0.001

    def __post_init__(self) -> None:
        if self.tau_s < 1:
            raise InputError(f"tau_s is {self.tau_s}: give at least 1 second")
        if self.starved_wait_s < 0:
            raise InputError(f"starved_wait_s is {self.starved_wait_s}: give 0 or more seconds")
        if not self.starved_wait_over_requested >= 0:
            raise InputError(
                f"starved_wait_over_requested is {self.starved_wait_over_requested}: "
                "give 0 or more times t_req"
            )
        if not 0 < self.top_share <= 1:
            raise InputError(f"top_share is {self.top_share}: give a share above 0, at most 1")


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """The jobs that are scored: those submitted in [start_time, end_time) of the workload's clock.

    ``None`` leaves that side open. All jobs are simulated; the warm-up before and the cool-down
    after only keep the empty machine and the missing arrivals out of the figures. ``ran``, shape
    (jobs,), leaves out the jobs that one of the runs compared never ran.
    """

    start_time: int | None = None
    end_time: int | None = None
    ran: BoolArray | None = field(default=None, compare=False)

    def among(self, *start_times: Int64Array) -> ScoredSpan:
        """Leave out the jobs that never ran in one of several runs, whose starts these are."""
        ran = np.logical_and.reduce([that_ran(starts) for starts in start_times])
        if self.ran is not None:
            ran &= self.ran
        return self if ran.all() else replace(self, ran=ran)

    def submitted_in(self, workload: Workload) -> BoolArray:
        """Shape (jobs,), True where the job was submitted in the span."""
        inside = np.ones(len(workload), dtype=np.bool_)
        if self.start_time is not None:
            inside &= workload.submit_time >= self.start_time
        if self.end_time is not None:
            inside &= workload.submit_time < self.end_time
        return inside

    def select(self, workload: Workload) -> BoolArray:
        """Shape (jobs,), True where the job is scored; an error when none is."""
        scored = self.submitted_in(workload)
        if self.ran is not None:
            if scored.any() and not (scored & self.ran).any():
                raise InputError(
                    f"{workload.name}: none of the {int(scored.sum()):,} jobs to score ever ran"
                    " under this site, or under all that are compared: limits, accounts or"
                    " partitions keep them out: change the site, or leave it out"
                )
            scored &= self.ran
        if not scored.any():
            raise InputError(self._why_none(workload))
        return scored

    def _why_none(self, workload: Workload) -> str:
        told = f"{workload.name}: none of {len(workload)} jobs is left to score"
        if not len(workload):
            return told
        first, last = (int(workload.submit_time[job]) for job in (0, -1))
        if self.start_time is not None:
            told += f" after the warm-up of {format_time(self.start_time - first)}"
        if self.end_time is not None:
            told += f" before the cool-down of {format_time(last + 1 - self.end_time)}"
        return (
            f"{told}, as all are submitted within {format_time(last - first)}: leave out less"
            " (--warm-up 0), or replay a longer log"
        )


def scored_span(
    workload: Workload,
    *,
    warm_up_s: int | None = None,
    warm_up_share: float | None = None,
    cool_down_s: int | None = None,
    cool_down_share: float | None = None,
) -> ScoredSpan:
    """Leave out the first and the last part of a log, each in seconds or as a share of its jobs.

    Parameters
    ----------
    workload
        The log as it is: one span, taken from it, serves all jittered repeats.
    warm_up_s, cool_down_s
        Seconds from the first submission on, and up to the last submission.
    warm_up_share, cool_down_share
        Shares of the jobs in order of submission, 0 to 1. Jobs submitted in the same second are
        not separated: the warm-up leaves all of them in, the cool-down all of them out.
    """
    for side, seconds, share in (
        ("warm-up", warm_up_s, warm_up_share),
        ("cool-down", cool_down_s, cool_down_share),
    ):
        if seconds is not None and share is not None:
            raise InputError(f"{side}: give seconds ({seconds}) or a share ({share}), not both")
        if seconds is not None and seconds < 0:
            raise InputError(f"{side} is {seconds} s: give 0 or more")
        if share is not None and not 0 <= share < 1:
            raise InputError(f"{side} is {share} of the jobs: give a share of 0 or more, below 1")
    submit, jobs = workload.submit_time, len(workload)
    if jobs == 0:
        return ScoredSpan()
    start = end = None
    if warm_up_s:
        start = int(submit[0]) + warm_up_s
    elif warm_up_share:
        start = int(submit[min(jobs - 1, math.ceil(warm_up_share * jobs))])
    if cool_down_s:
        end = int(submit[-1]) - cool_down_s + 1
    elif cool_down_share:
        end = int(submit[jobs - math.ceil(cool_down_share * jobs)])
    return ScoredSpan(start, end)


def bounded_slowdown(wait: Int64Array, runtime: Int64Array, tau_s: int = 10) -> Float64Array:
    """max(1, (wait + runtime) / max(tau, runtime)), Gaussier 2015, section 5.3."""
    return np.maximum(1.0, (wait + runtime) / np.maximum(tau_s, runtime))


def slowdown(wait: Int64Array, runtime: Int64Array) -> Float64Array:
    """(wait + runtime) / runtime (Tang 2010, IV.C); a runtime of 0 counts as 1 s."""
    at_least_1 = np.maximum(1, runtime)
    return np.asarray((wait + at_least_1) / at_least_1, dtype=np.float64)


def unitless_wait(wait: Int64Array, requested_time: Int64Array) -> Float64Array:
    """Wait / t_req (Tang 2010, IV.C)."""
    return np.asarray(wait / requested_time, dtype=np.float64)


def mean_by_processors(values: Int64Array | Float64Array, processors: Int64Array) -> float:
    """Sum of processors x value / sum of processors (Streit 2002, section 5.1: "wW").

    Parameters
    ----------
    values
        Shape (jobs,): of turnaround times it is ARTwW, of bounded slowdowns SLDwW.
    processors
        Shape (jobs,), at least one job; sums are exact, whatever the order of the jobs.
    """
    return math.fsum(processors * values) / int(processors.sum())


def job_metrics(
    workload: Workload, schedule: ScheduleLike, settings: ScoreSettings | None = None
) -> dict[str, Int64Array | Float64Array]:
    """Give every one of `JOB_METRICS` for every job, shape (jobs,) each.

    Raises
    ------
    InputError
        When the schedule is not of this workload: other lengths, a start before submission, an end
        before the start.
    """
    settings = settings or ScoreSettings()
    check_schedule(workload, schedule)
    wait = schedule.start_time - workload.submit_time
    runtime = schedule.end_time - schedule.start_time
    return {
        "wait": wait,
        "unitless_wait": unitless_wait(wait, workload.requested_time),
        "slowdown": slowdown(wait, runtime),
        "bounded_slowdown": bounded_slowdown(wait, runtime, settings.tau_s),
        "turnaround_time": wait + runtime,
    }


def check_schedule(workload: Workload, schedule: JobTimes) -> None:
    """Refuse a schedule that can't be one of this workload (see `job_metrics`)."""
    for name, times in (("start", schedule.start_time), ("end", schedule.end_time)):
        if len(times) != len(workload):
            raise InputError(
                f"{workload.name}: {len(times)} {name} times for {len(workload)} jobs: "
                "score a schedule with the workload that it was made of"
            )
    for bad, what in (
        (schedule.start_time < workload.submit_time, "starts before its submission"),
        (schedule.end_time < schedule.start_time, "ends before its start"),
    ):
        if bad.any():
            job = int(np.argmax(bad))
            raise InputError(
                f"{workload.name}: job {workload.job_id[job]} {what} "
                f"(submitted {workload.submit_time[job]}, started {schedule.start_time[job]}, "
                f"ended {schedule.end_time[job]}): not a schedule of this workload"
            )


@dataclass(frozen=True, slots=True)
class Distribution:
    """One job metric over the scored jobs, in the metric's own unit.

    A percentile is the smallest value that at least that part of the jobs do not exceed (nearest
    rank), so it is the value of a job.

    Attributes
    ----------
    mean
        Over all jobs.
    mean_below_p99
        Over the ceil(0.99 n) smallest values (Tang 2010, IV.C: without 1% of outliers).
    p50, p90, p99, p99_9, max
        Percentiles.
    top_share
        The part of the sum that the largest jobs make (`ScoreSettings.top_share`; at least one
        job); ``None`` where the sum is 0.
    """

    mean: float
    mean_below_p99: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float
    top_share: float | None

    @classmethod
    def of(cls, values: Int64Array | Float64Array, top_share: float = 0.001) -> Distribution:
        """Describe at least one value.

        Sums are taken in sorted order, so the order of the jobs can't change the last digit.
        """
        ordered = np.sort(values)
        count = len(ordered)
        total = float(ordered.sum())
        below = rank(0.99, count)
        top = max(1, rank(top_share, count))
        return cls(
            mean=total / count,
            mean_below_p99=float(ordered[:below].sum()) / below,
            p50=float(ordered[rank(0.50, count) - 1]),
            p90=float(ordered[rank(0.90, count) - 1]),
            p99=float(ordered[below - 1]),
            p99_9=float(ordered[rank(0.999, count) - 1]),
            max=float(ordered[-1]),
            top_share=float(ordered[count - top :].sum()) / total if total else None,
        )


def rank(share: float, count: int) -> int:
    """ceil(share * count), 1 at least, without the error of 0.99 * 100 > 99 in binary."""
    return max(1, math.ceil(round(share * count, 6)))


@dataclass(frozen=True, slots=True)
class Scores:
    """Everything measured of one run; `to_dict` names each figure as `METRICS` does."""

    jobs: int
    wait: Distribution
    unitless_wait: Distribution
    slowdown: Distribution
    bounded_slowdown: Distribution
    turnaround_time: Distribution
    bounded_slowdown_weighted_mean: float
    turnaround_time_weighted_mean_s: float
    makespan_s: int
    utilization_makespan: float | None
    utilization_arrivals: float | None
    loss_of_capacity: float | None
    avoidable_loss_of_capacity: float | None
    started_from_head_jobs: int
    started_out_of_order_jobs: int
    backfilled_jobs: int
    outlived_jobs: int
    killed_at_requested_jobs: int
    killed_early_jobs: int
    used_up_jobs: int
    starved_jobs: int

    def to_dict(self) -> dict[str, float | int | None]:
        """Every figure by its key, in `METRICS` order; ``None`` where it is not defined."""
        figures: dict[str, float | int | None] = {}
        for name in JOB_METRICS:
            distribution: Distribution = getattr(self, name)
            for statistic in STATISTICS:
                figures[statistic_key(name, statistic)] = getattr(distribution, statistic)
        return {key: figures[key] if key in figures else getattr(self, key) for key in METRICS}


def starved(
    wait: Int64Array | Float64Array, requested_time: Int64Array, settings: ScoreSettings
) -> BoolArray:
    """Where a job waited longer than both bounds of `ScoreSettings`; shape (jobs,)."""
    return np.asarray(
        (wait > settings.starved_wait_s)
        & (wait > settings.starved_wait_over_requested * requested_time)
    )


def score(
    workload: Workload,
    schedule: ScheduleLike,
    settings: ScoreSettings | None = None,
    span: ScoredSpan | None = None,
) -> Scores:
    """Measure one run. Jobs that never ran are not scored.

    Parameters
    ----------
    workload, schedule
        The jobs and when they ran, in the same order.
    settings
        Bounds; the defaults of `ScoreSettings`.
    span
        Which jobs are scored; all.

    Raises
    ------
    InputError
        When no job is left to score, or the schedule is not one of this workload and machine.

    Examples
    --------
    >>> from foretime_estimators import parse_estimator
    >>> from foretime_sim import Policy, generate, simulate_with_estimator
    >>> from foretime_sim.scores.metrics import score
    >>> workload = generate("lublin2003", jobs=500, load=0.9, seed=1)
    >>> run = simulate_with_estimator(workload, Policy(), parse_estimator("requested"))
    >>> scores = score(workload, run)
    >>> scores.jobs, scores.outlived_jobs, scores.wait.mean > 0
    (500, 0, True)
    """
    settings, span = settings or ScoreSettings(), span or ScoredSpan()
    values = job_metrics(workload, schedule, settings)
    ran = that_ran(schedule.start_time)
    scored = span.among(schedule.start_time).select(workload)
    distributions = {
        name: Distribution.of(values[name][scored], settings.top_share) for name in JOB_METRICS
    }
    processors = workload.processors[scored]
    runtime = (schedule.end_time - schedule.start_time)[scored]
    actual, requested = workload.actual_runtime[scored], workload.requested_time[scored]
    since = int(workload.submit_time[scored].min())
    last_submission = int(workload.submit_time[scored].max())
    last_end = int(schedule.end_time[scored].max())
    machine = MachineUse.of(
        workload if ran.all() else workload.take(ran),
        schedule.start_time[ran],
        schedule.end_time[ran],
    )
    used_up = np.zeros(len(runtime), dtype=np.bool_)
    if schedule.used_up is not None:
        used_up = schedule.used_up[scored]
    ways = np.bincount(schedule.started_by[scored], minlength=max(StartedBy) + 1)

    def weighted_mean(name: str) -> float:
        return mean_by_processors(values[name][scored], processors)

    return Scores(
        jobs=int(scored.sum()),
        **distributions,
        bounded_slowdown_weighted_mean=weighted_mean("bounded_slowdown"),
        turnaround_time_weighted_mean_s=weighted_mean("turnaround_time"),
        makespan_s=last_end - since,
        utilization_makespan=machine.utilization(since, last_end),
        utilization_arrivals=machine.utilization(since, last_submission),
        loss_of_capacity=machine.loss_of_capacity(since, last_end),
        avoidable_loss_of_capacity=machine.avoidable_loss_of_capacity(since, last_end),
        started_from_head_jobs=int(ways[StartedBy.HEAD]),
        started_out_of_order_jobs=int(ways[StartedBy.OUT_OF_ORDER]),
        backfilled_jobs=int(ways[StartedBy.BACKFILLED]),
        outlived_jobs=int(schedule.outlived[scored].sum()),
        killed_at_requested_jobs=int(((actual > requested) & (runtime >= requested)).sum()),
        killed_early_jobs=int(((runtime < np.minimum(actual, requested)) & ~used_up).sum()),
        used_up_jobs=int(used_up.sum()),
        starved_jobs=int(starved(values["wait"][scored], requested, settings).sum()),
    )
