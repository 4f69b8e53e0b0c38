"""Several policies run on the same jobs, and compared with the first of them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.arrays import Float64Array, Int32Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    simulate_with_estimator,
)
from foretime_sim.engine.schedule import why_never
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.site_machine import on_machine_of
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.scores.gains import MetricComparison, compare_metric, mean, resampled_figures
from foretime_sim.scores.intervals import Interval, Weeks, gains, t_interval
from foretime_sim.scores.metrics import (
    METRICS,
    ScoredSpan,
    Scores,
    ScoreSettings,
    job_metrics,
    score,
)
from foretime_sim.scores.repeats import Repeats
from foretime_sim.scores.start_promises import StartPromises, mean_promises, promised_starts
from foretime_sim.scores.wait_curve import wait_curve
from foretime_sim.workloads.bgp_jobs import BgpUse
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class PolicyCase:
    """One of the policies compared, and the estimator whose runtimes it plans with.

    Attributes
    ----------
    name
        What tables call it; no two cases have the same.
    policy
        What the scheduler does.
    estimator
        A name of `foretime_estimators.estimators.registry`.
    """

    name: str
    policy: Policy
    estimator: str = "requested"


class ClassValue(NamedTuple):
    """A metric of the jobs of one class of size and length, either of which may be ``all``."""

    size_class: str
    length_class: str
    jobs: int
    value: float | None


@dataclass(frozen=True, slots=True)
class CaseScores:
    """One case in one repeat.

    Attributes
    ----------
    scores
        All metrics.
    wait_curve
        How waits are distributed (`foretime_sim.scores.wait_curve`).
    resampled_gains
        What `foretime_sim.scores.intervals.gains` says of its gain over the first case; empty for
        that one, and where weeks were not resampled.
    by_class
        The metric asked for by size and length of jobs; empty where none was.
    guard_activations
        Jobs for which the starvation guard became active.
    wall_clock_s
        Seconds that simulating took.
    wait
        Shape (jobs,), seconds, in the order of the repeat's workload.
    bgp_partition
        On which bgp_partition of a Blue Gene each job ran, shape (jobs,), in the same order.
    bgp_use
        How much each of them was used.
    promises
        How promised starts of the scored jobs fared; ``None``: the policy promises nothing.
    switching
        What a decider that switches between queue orders did; ``None`` without one.
    never_ran
        How many of the jobs submitted in the scored span never ran, by the reason.
    """

    scores: Scores
    wait_curve: Float64Array
    resampled_gains: Mapping[str, Float64Array]
    by_class: tuple[ClassValue, ...]
    guard_activations: int
    wall_clock_s: float
    wait: Int64Array
    bgp_partition: Int32Array | None
    bgp_use: BgpUse | None
    promises: StartPromises | None = None
    switching: SwitchingCounters | None = None
    never_ran: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric of one case: its mean over the repeats, and Student's interval from three on."""

    mean: float | None
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """All cases over all repeats.

    Attributes
    ----------
    cases
        In the order asked for; the first is the baseline of the gains.
    runs
        Each repeat's scores of each case, in these orders.
    repeats
        How often, and how repeats differ.
    interval_method
        Of the gains: ``t``, ``weeks``, or ``none`` where the log is too short for a bootstrap.
    settings, span, class_metric
        As scored, and what was asked for by class.
    """

    cases: tuple[PolicyCase, ...]
    runs: tuple[tuple[CaseScores, ...], ...]
    repeats: Repeats
    interval_method: str
    settings: ScoreSettings
    span: ScoredSpan
    class_metric: str | None

    def figure(self, case: int, key: str) -> Figure:
        """Give one of `METRICS` of one case, by its place among the cases."""
        values = [run[case].scores.to_dict()[key] for run in self.runs]
        known = [value for value in values if value is not None]
        interval = None
        if self.interval_method == "t" and len(known) == len(values):
            interval = t_interval(known, self.repeats.level)
        return Figure(mean(values), interval)

    def gain(self, case: int, key: str) -> MetricComparison:
        """Compare one of `METRICS` of one case with the first case's."""
        return compare_metric(
            METRICS[key],
            [run[0].scores.to_dict()[key] for run in self.runs],
            [run[case].scores.to_dict()[key] for run in self.runs],
            [run[case].resampled_gains for run in self.runs],
            self.repeats.level,
        )

    def by_class(self, case: int) -> tuple[ClassValue, ...]:
        """Give the metric asked for by class of one case, means over the repeats."""
        return tuple(
            ClassValue(
                one[0].size_class,
                one[0].length_class,
                round(sum(value.jobs for value in one) / len(one)),
                mean([value.value for value in one]),
            )
            for one in zip(*(run[case].by_class for run in self.runs), strict=True)
        )

    def bgp_use(self, case: int) -> tuple[Float64Array, Float64Array] | None:
        """Give jobs on each bgp_partition of a Blue Gene and its seconds in use, by case.

        Means over the repeats, shape (bgp_partitions,) each; ``None`` on other machines.
        """
        used = [run[case].bgp_use for run in self.runs]
        known = [use for use in used if use is not None]
        if not known:
            return None
        return (
            np.mean([use.jobs for use in known], axis=0),
            np.mean([use.busy_s for use in known], axis=0),
        )

    def promises(self, case: int) -> StartPromises | None:
        """Give how the promised starts of one case fared, means over the repeats."""
        return mean_promises([run[case].promises for run in self.runs])

    def switching(self, case: int) -> tuple[SwitchingCounters, ...]:
        """Give what the decider of one case did, of each repeat; empty without one."""
        counted = (run[case].switching for run in self.runs)
        return tuple(switching for switching in counted if switching is not None)

    def never_ran(self, case: int) -> dict[str, float]:
        """Give how many jobs one case never ran, by the reason; means over the repeats."""
        return mean_by_reason([run[case].never_ran for run in self.runs])

    def jobs_per_s(self, case: int) -> float:
        """Jobs simulated per second of wall clock, estimators included, over all repeats."""
        jobs = sum(len(run[case].wait) for run in self.runs)
        return jobs / sum(run[case].wall_clock_s for run in self.runs)


def mean_by_reason(counted: Sequence[Mapping[str, int]]) -> dict[str, float]:
    """Give the means over repeats of how many jobs never ran, by the reason, most first.

    >>> from foretime_sim.scores.policy_comparison import mean_by_reason
    >>> mean_by_reason([{"Licenses": 4}, {"Licenses": 2, "QOSGrpCpuLimit": 10}])
    {'QOSGrpCpuLimit': 5.0, 'Licenses': 3.0}
    """
    total: Counter[str] = Counter()
    for one in counted:
        total.update(one)
    return {why: jobs / len(counted) for why, jobs in total.most_common()}


def _bgp_use(workload: Workload, schedule: EstimatedSchedule) -> BgpUse | None:
    if schedule.bgp_partition is None or not isinstance(workload.machine, BgpMachine):
        return None
    return BgpUse.of(
        workload.machine, schedule.bgp_partition, schedule.start_time, schedule.end_time
    )


def compare_policies(
    workload: Workload,
    cases: Sequence[PolicyCase],
    *,
    repeats: Repeats | None = None,
    accuracy: AccuracySettings | None = None,
    reservations: Sequence[AdvanceReservation] = (),
    span: ScoredSpan | None = None,
    settings: ScoreSettings | None = None,
    class_metric: str | None = None,
    check: bool = False,
    progress: Callable[[int], None] | None = None,
) -> PolicyComparison:
    """Run every case on the same jobs, and score all after the same warm-up.

    Jobs that a site's rules never let run under one of the cases are scored under none.

    Parameters
    ----------
    workload
        The log.
    cases
        At least one; the first is the baseline.
    repeats
        How often, and how repeats differ: within a repeat all cases get the same jobs. Once if
        ``None``.
    accuracy
        Rule of the estimators by user and project; production's if ``None``.
    reservations
        Processors claimed from outside, in every case.
    span, settings
        Which jobs are scored (all), and the bounds of metrics.
    class_metric
        One of `foretime_sim.scores.job_classes.CLASS_METRICS`, to be told by size and length, too.
    check
        Check the conservation laws on each schedule.
    progress
        Called with the jobs scheduled so far, of ``len(workload) * len(cases) * repeats.count``.

    Raises
    ------
    InputError
        If there is no case, two have one name, or the workload or an estimator can't be used.
    ScheduleError
        If a checked schedule breaks a law.
    """
    if not cases:
        raise InputError("no policy to run: give at least one")
    names = [case.name for case in cases]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"policy {twice!r} is given twice: leave one out")
    repeats, span = repeats or Repeats(), span or ScoredSpan()
    settings = settings or ScoreSettings()
    weeks = repeats.weeks(workload.submit_time[span.select(workload)])
    in_process = repeats.workers == 1 or repeats.count == 1
    task = _Task(
        cases=tuple(cases),
        seed=repeats.seed,
        accuracy=accuracy,
        reservations=tuple(reservations),
        span=span,
        settings=settings,
        class_metric=class_metric,
        check=check,
        weeks=weeks if len(cases) > 1 else None,
        progress=progress if in_process else None,
    )
    whole = len(workload) * len(cases)

    def repeat_done(done: int, _: int) -> None:
        if progress is not None:
            progress(done * whole)

    runs = repeats.run(workload, task, repeat_done)
    return PolicyComparison(
        cases=tuple(cases),
        runs=runs,
        repeats=repeats,
        interval_method=repeats.interval_method(task.weeks),
        settings=settings,
        span=span,
        class_metric=class_metric,
    )


@dataclass(frozen=True)
class _Task:
    """One repeat's work, as it goes to a worker process."""

    cases: tuple[PolicyCase, ...]
    seed: int
    accuracy: AccuracySettings | None
    reservations: tuple[AdvanceReservation, ...]
    span: ScoredSpan
    settings: ScoreSettings
    class_metric: str | None
    check: bool
    weeks: Weeks | None
    progress: Callable[[int], None] | None = None

    def __call__(self, workload: Workload, repeat: int) -> tuple[CaseScores, ...]:
        runs = []
        for place, case in enumerate(self.cases):
            placed = on_machine_of(case.policy, workload)
            before = (repeat * len(self.cases) + place) * len(workload)
            begin = time.perf_counter()
            schedule = self._schedule(placed, case, before)
            runs.append((case, placed, schedule, time.perf_counter() - begin))
        span = self.span.among(*(schedule.start_time for _, _, schedule, _ in runs))
        submitted, scored = span.submitted_in(workload), span.select(workload)
        baseline: dict[str, Float64Array] | None = None
        found = []
        for case, workload, schedule, wall_clock_s in runs:
            jobs = workload.take(scored)
            wait = schedule.start_time - workload.submit_time
            resampled: dict[str, Float64Array] = {}
            if self.weeks is not None:
                values = job_metrics(workload, schedule, self.settings)
                values = {name: of_jobs[scored] for name, of_jobs in values.items()}
                figures = resampled_figures(self.weeks, jobs, values, self.settings)
                if baseline is None:
                    baseline = figures
                else:
                    resampled = gains(baseline, figures)
            found.append(
                CaseScores(
                    scores=score(workload, schedule, self.settings, span),
                    wait_curve=wait_curve(wait[scored]),
                    resampled_gains=resampled,
                    by_class=self._by_class(workload, schedule, span),
                    guard_activations=schedule.guard_activations,
                    wall_clock_s=wall_clock_s,
                    wait=wait,
                    bgp_partition=schedule.bgp_partition,
                    bgp_use=_bgp_use(workload, schedule),
                    promises=StartPromises.of(
                        workload,
                        schedule,
                        promised_starts(case.policy, schedule.schedule),
                        scored,
                    ),
                    switching=schedule.schedule.switching,
                    never_ran=why_never(
                        {job: why for job, why in schedule.never_ran.items() if submitted[job]}
                    ),
                )
            )
        return tuple(found)

    def _schedule(self, workload: Workload, case: PolicyCase, before: int) -> EstimatedSchedule:
        progress = self.progress
        schedule = simulate_with_estimator(
            workload,
            case.policy,
            estimator_of(case.estimator, workload, settings=self.accuracy, seed=self.seed),
            reservations=self.reservations,
            check=self.check,
            progress=None if progress is None else lambda jobs: progress(before + jobs),
        )
        if progress is not None:
            progress(before + len(workload))
        return schedule

    def _by_class(
        self, workload: Workload, schedule: EstimatedSchedule, span: ScoredSpan
    ) -> tuple[ClassValue, ...]:
        if self.class_metric is None:
            return ()
        from foretime_sim.scores.job_classes import scores_by_class  # needs pandas

        table = scores_by_class(workload, schedule, None, self.settings, span)
        return tuple(
            ClassValue(str(size), str(length), int(jobs), None if np.isnan(value) else float(value))
            for (size, length), jobs, value in zip(
                table.index, table["jobs"], table[self.class_metric], strict=True
            )
        )
