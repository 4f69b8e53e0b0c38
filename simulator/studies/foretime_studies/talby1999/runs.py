"""The study of Talby & Feitelson 1999 again: cases on months of logs, kept in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.policies.families import Slack
from foretime_sim.policies.slack import INFINITE_SLACK, SlackJobs
from foretime_sim.scores.job_classes import LENGTHS, SIZES, JobClasses
from foretime_sim.scores.metrics import bounded_slowdown, rank
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.kept_results import kept_results
from foretime_studies.frame.known_by_behaviour import known_by_jobs, probe
from foretime_studies.frame.progress import Begin, Progress, counted_on
from foretime_studies.frame.runs import JITTER_S, Gain, paired_gain
from foretime_studies.talby1999.cases import (
    CONSERVATIVE,
    FIFTH,
    AverageWait,
    Case,
    Estimates,
    MonthsBy,
    other_cases,
    paper_cases,
)
from foretime_studies.talby1999.months import Month, MonthlyLog, cut_by, numbered_month

_CLASSES = JobClasses()


@dataclass(frozen=True, slots=True)
class RunFigures:
    """What is kept of one case on all months of one copy of a log; times in seconds."""

    months: tuple[str, ...]  # ``YYYY-MM``
    # jobs, wait_s: by month: how many, and their mean wait
    jobs: tuple[int, ...]
    wait_s: tuple[float, ...]
    # fifth_wait_s, others_wait_s: by month: mean wait of every fifth job, and of the others; NaN
    # without such jobs
    fifth_wait_s: tuple[float, ...]
    others_wait_s: tuple[float, ...]
    # mean_wait_s, p99_wait_s, longest_wait_s, bounded_slowdown, fifth_mean_wait_s,
    # others_mean_wait_s: of all months' jobs together
    mean_wait_s: float
    p99_wait_s: float
    longest_wait_s: float
    bounded_slowdown: float
    fifth_mean_wait_s: float
    others_mean_wait_s: float
    # planned_wait_s, promised_wait_s: mean over the jobs of their first planned start, and of the
    # latest start that they were promised, from their submission on; ``None`` where nothing is
    # planned. Without infinite slacks
    planned_wait_s: float | None
    promised_wait_s: float | None
    # Share of the jobs that started later than first planned; ``None`` where nothing is planned.
    later_share: float | None
    broken: int  # jobs that started later than promised
    killed: int  # jobs that were ended before their runtime
    # wait_by_size_s, wait_by_length_s: mean wait in each class of
    # `foretime_sim.scores.job_classes`; NaN without jobs
    wait_by_size_s: tuple[float, ...]
    wait_by_length_s: tuple[float, ...]
    # Processor seconds that jobs run for, of those between each month's first and last submission.
    offered_load: float


class LogRuns(dict[tuple[str, int], RunFigures]):
    """A log's runs by case and copy; copy 0 is the log as it is."""

    def repeats(self, case: str) -> list[RunFigures]:
        """Give a case's runs on the jittered copies."""
        copies = sorted(copy for name, copy in self if name == case and copy)
        return [self[case, copy] for copy in copies]

    def gain(
        self, base: str, case: str, of: Callable[[RunFigures], float] = lambda run: run.mean_wait_s
    ) -> Gain:
        """Compare one figure of a case, the mean wait if not told, with its baseline's."""
        return paired_gain(
            of(self[base, 0]),
            of(self[case, 0]),
            map(of, self.repeats(base)),
            map(of, self.repeats(case)),
        )


def run_cases(
    log: MonthlyLog,
    cases: Sequence[Case],  # with distinct names
    # Where runs are kept, each as soon as it is done. A run is known by the jobs, the case, and by
    # what this code makes of the case on a small workload.
    folder: Path,
    *,
    # repeats, seed: jittered copies (each submission by up to a minute, ties shuffled), and their
    # seed
    repeats: int,
    seed: int,
    workers: int,  # threads; the engine runs without the interpreter's lock
    progress: Progress | None = None,
) -> LogRuns:
    """Run every case on the log's months, and on jittered copies of them, if it is not kept yet.

    InputError if another study is writing into the folder.
    """
    prepared = _Prepared(log, repeats, seed)
    few = _probe()
    known = {case.name: _identity(log, case, seed, few) for case in cases}
    named = {
        (case.name, copy): (f"{known[case.name]}-{copy}", partial(prepared.run, case, copy))
        for case, copy in tasks_of(cases, repeats)
    }
    runs = dict(named.values())
    found = kept_results(runs, RunFigures, folder, workers=workers, progress=progress)
    return LogRuns({task: found[run] for task, (run, _) in named.items()})


def tasks_of(cases: Iterable[Case], repeats: int) -> list[tuple[Case, int]]:
    """Give every case and copy that `run_cases` runs, the log as it is first."""
    listed = list(cases)
    return [
        (case, copy) for copy in range(repeats + 1) for case in listed if copy == 0 or case.repeated
    ]


class _Prepared:
    """A log's months and their copies, and the averages that cases take for AWT."""

    def __init__(self, log: MonthlyLog, repeats: int, seed: int) -> None:
        self._log = log
        self._cuts = {MonthsBy.SUBMISSION: log.months}
        self._averages: dict[AverageWait, tuple[Float64Array, ...]] = {}
        varying = Repeats(max(repeats, 2), seed=seed, jitter_s=JITTER_S)
        self._copies = [log.months]
        for repeat in range(repeats):
            self._copies.append(
                tuple(replace(m, jobs=varying.varied(m.jobs, repeat)) for m in log.months)
            )
        self._averages = _averages(log)
        for by in MonthsBy:
            if by is not MonthsBy.SUBMISSION:
                self._cuts[by] = cut_by(log, by)

    def run(self, case: Case, copy: int) -> RunFigures:
        """Run a case on every month of a copy."""
        months = self._copies[copy] if copy else self._cuts[case.months_by]
        done = []
        for number, month in enumerate(months):
            jobs = _jobs(month.jobs, case)
            average = None
            if case.average_wait in self._averages:
                average = self._averages[case.average_wait][number][jobs.job_id]
            done.append((jobs, _schedule(jobs, case, average)))
        return _figures([month.name for month in months], done)


def _averages(log: MonthlyLog) -> dict[AverageWait, tuple[Float64Array, ...]]:
    """Give each job's AWT by kind, a month's jobs in an array, from a conservative run."""
    waits = []
    for month in log.months:
        jobs = _jobs(month.jobs, CONSERVATIVE)
        schedule = simulate(jobs, CONSERVATIVE.policy)
        waits.append((schedule.start_time - jobs.submit_time).astype(np.float64))
    lengths = [_CLASSES.length(month.jobs) for month in log.months]
    together, length = np.concatenate(waits), np.concatenate(lengths)
    counts = np.bincount(length, minlength=len(LENGTHS))
    by_length = np.bincount(length, together, len(LENGTHS)) / np.maximum(counts, 1)
    means = [float(wait.mean()) for wait in waits]

    def all_alike(values: Sequence[float]) -> tuple[Float64Array, ...]:
        return tuple(np.full(len(wait), value) for wait, value in zip(waits, values, strict=True))

    return {
        AverageWait.LOG: all_alike([float(together.mean())] * len(waits)),
        AverageWait.MONTH: all_alike(means),
        AverageWait.MONTH_BEFORE: all_alike([means[0], *means[:-1]]),
        AverageWait.LENGTH: tuple(by_length[codes] for codes in lengths),
    }


def _jobs(jobs: Workload, case: Case) -> Workload:
    """Give a month's jobs as a case meets them."""
    runtime, requested = jobs.actual_runtime, jobs.requested_time
    if case.killed:
        runtime = np.minimum(runtime, requested)
    if case.slot_s > 1:
        submit, runtime, requested = (
            -(-times // case.slot_s) * case.slot_s
            for times in (jobs.submit_time, runtime, requested)
        )
        jobs = replace(jobs, submit_time=submit)
    estimated = runtime if case.estimates is Estimates.RUNTIMES else requested
    planned: Int64Array = np.rint(estimated * case.estimate_factor).astype(np.int64)
    jobs = replace(jobs, actual_runtime=runtime, requested_time=planned)
    if case.processors is not None:
        jobs = replace(jobs, machine_processors=case.processors)
    if case.interarrival_factor != 1:
        jobs = jobs.with_interarrival_factor(case.interarrival_factor)
    return jobs


def _schedule(jobs: Workload, case: Case, average_wait_s: Float64Array | None) -> Schedule:
    if not isinstance(case.policy.backfill, Slack):
        longest = np.maximum(jobs.actual_runtime, jobs.requested_time)
        return simulate(jobs, case.policy, time_limit=None if case.killed else longest)
    user, political = case.everyone
    raised = np.where(fifths(jobs), case.gap / 2, 0.0)
    told = SlackJobs(user + raised, political + raised, average_wait_s)
    return simulate(jobs, case.policy, slack_jobs=told)


def fifths(jobs: Workload) -> BoolArray:
    """Shape (jobs,), True for every fifth job of a month, whatever its copy's order."""
    return np.asarray(jobs.job_id % FIFTH == FIFTH - 1)


def _figures(months: Sequence[str], done: Sequence[tuple[Workload, Schedule]]) -> RunFigures:
    waits = [schedule.start_time - jobs.submit_time for jobs, schedule in done]
    fifth = [fifths(jobs) for jobs, _ in done]
    wait, raised = np.concatenate(waits), np.concatenate(fifth)
    runtime = np.concatenate([schedule.end_time - schedule.start_time for _, schedule in done])
    planned, promised = (
        np.concatenate([_from_submission(which, *run) for run in done]) for which in (0, 1)
    )
    return RunFigures(
        months=tuple(months),
        jobs=tuple(len(jobs) for jobs, _ in done),
        wait_s=tuple(map(_mean, waits)),
        fifth_wait_s=tuple(_mean(w[hit]) for w, hit in zip(waits, fifth, strict=True)),
        others_wait_s=tuple(_mean(w[~hit]) for w, hit in zip(waits, fifth, strict=True)),
        mean_wait_s=_mean(wait),
        p99_wait_s=float(np.sort(wait)[rank(0.99, len(wait)) - 1]),
        longest_wait_s=float(wait.max()),
        bounded_slowdown=float(bounded_slowdown(wait, runtime).mean()),
        fifth_mean_wait_s=_mean(wait[raised]),
        others_mean_wait_s=_mean(wait[~raised]),
        planned_wait_s=_mean(planned) if len(planned) else None,
        promised_wait_s=_mean(promised[promised < INFINITE_SLACK / 2]) if len(planned) else None,
        later_share=_mean(wait > planned) if len(planned) else None,
        broken=int((wait > promised).sum()) if len(promised) else 0,
        killed=sum(int(schedule.killed.sum()) for _, schedule in done),
        wait_by_size_s=_by_class([_CLASSES.size(jobs) for jobs, _ in done], len(SIZES), wait),
        wait_by_length_s=_by_class([_CLASSES.length(jobs) for jobs, _ in done], len(LENGTHS), wait),
        offered_load=_offered_load([jobs for jobs, _ in done]),
    )


def _from_submission(which: int, jobs: Workload, schedule: Schedule) -> Int64Array:
    """Give first planned starts (0) or promised latest ones (1); empty where there are none."""
    planned = schedule.first_planned_start
    if planned is None:
        return np.empty(0, dtype=np.int64)
    latest = planned if schedule.latest_start is None else schedule.latest_start
    return (planned, latest)[which] - jobs.submit_time


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _by_class(codes: Sequence[Int64Array], classes: int, wait: Int64Array) -> tuple[float, ...]:
    code = np.concatenate(codes)
    return tuple(_mean(wait[code == which]) for which in range(classes))


def _offered_load(months: Sequence[Workload]) -> float:
    work = sum(int((jobs.processors * jobs.actual_runtime).sum()) for jobs in months)
    span = sum(int(jobs.submit_time[-1] - jobs.submit_time[0]) for jobs in months)
    return work / (months[0].machine_processors * span) if span else float("nan")


def _identity(log: MonthlyLog, case: Case, seed: int, few: Month) -> str:
    """Name a case's runs by the jobs, the case, and what is made of it on a small workload."""
    jobs = _jobs(few.jobs, replace(case, processors=None))
    average = None
    if case.average_wait is not AverageWait.GIVEN:
        average = np.full(len(jobs), 1_000.0)
    behaviour = _figures([few.name], [(jobs, _schedule(jobs, case, average))])
    months = [(month.name, len(month.jobs)) for month in log.months]
    scheduler = f"{replace(case, name='', repeated=True)} {months} {seed}"
    return known_by_jobs(log.whole, scheduler, f"{behaviour}".encode())


def _probe() -> Month:
    """Give a small workload, busy enough that jobs wait, in which some outlive their requests."""
    jobs = probe()
    requested = np.where(
        np.arange(len(jobs)) % 10 == 0, np.maximum(jobs.actual_runtime // 2, 1), jobs.requested_time
    )
    return numbered_month("probe", replace(jobs, requested_time=requested.astype(np.int64)))


@dataclass(frozen=True, slots=True)
class Talby1999:
    """What the study found."""

    logs: tuple[MonthlyLog, ...]  # in the order of tables
    runs: Mapping[str, LogRuns]  # by log's name
    repeats: int  # jittered copies

    @property
    def papers(self) -> MonthlyLog | None:
        """The paper's log on the paper's machine; ``None`` if it is not here."""
        return next((log for log in self.logs if log.papers), None)


def cases_of(log: MonthlyLog) -> list[Case]:
    """Give what runs on a log: everything on the paper's, the main comparisons on others."""
    return paper_cases() if log.papers else other_cases()


def study(
    logs: Sequence[MonthlyLog],  # with distinct names
    folder: Path,  # where runs are kept
    *,
    repeats: int,
    seed: int,
    workers: int,
    begin: Begin | None = None,
) -> Talby1999:
    """Run what is not kept yet.

    InputError if two logs have one name, or another study is writing into the folder.
    """
    names = [log.name for log in logs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: two logs have this name; give each once")
    tasks = {log.name: len(tasks_of(cases_of(log), repeats)) for log in logs}
    whole = sum(tasks[log.name] * len(log.whole) for log in logs)
    progress = None if begin is None else begin(whole)
    runs, before = {}, 0
    for log in logs:
        runs[log.name] = run_cases(
            log,
            cases_of(log),
            folder,
            repeats=repeats,
            seed=seed,
            workers=workers,
            progress=counted_on(progress, before, len(log.whole)),
        )
        before += tasks[log.name] * len(log.whole)
    return Talby1999(tuple(logs), runs, repeats)
