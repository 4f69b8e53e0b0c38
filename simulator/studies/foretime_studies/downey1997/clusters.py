"""Which of several clusters a job goes to, and what that does to everybody.

External resource selection (Downey 1997, section 1.1): a job goes where its predicted turnaround is
least. The machines of some logs stand side by side, each strictly first come, first served, and a
week of each log's jobs is submitted to all of them at once: a rule says where each of them goes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.uniform_log_classes import LifetimeClasses, parse_classifiers
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import HOUR_S, MINUTE_S, WEEK_S
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.downey_forecaster import DowneyForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.size_choice import choose_at_submission, choose_cluster
from foretime_sim.workloads.workload import Workload

from foretime_studies.frame.tables import Cell, Column

_FCFS = Policy(backfill=Backfill.NONE)


COLUMNS = (
    Column("cluster"),
    Column("jobs", ",d"),
    Column("elsewhere", ".0%"),
    Column("mean wait, h", ",.2f"),
    Column("median wait, min", ",.1f"),
    Column("mean turnaround, h", ",.2f"),
)
"""What is told of a rule; elsewhere: the share of jobs that left their own cluster."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that chooses, where it comes from, and how long it will run, seconds."""

    request: JobRequest
    home: int  # position of its log
    runtime_s: int


class Cluster:
    """A machine that is asked, and the jobs that went to it."""

    def __init__(self, name: str, processors: int) -> None:
        self.name, self.processors = name, processors
        self.engine = Engine(processors, _FCFS)
        self.requests: list[JobRequest] = []

    def moment(self) -> Moment:
        """Give its queue as it stands; nobody is asked about."""
        snapshot = Snapshot.of(self.engine)
        requests = [self.requests[index] for index in np.asarray(snapshot.engine_index).tolist()]
        return Moment(snapshot, _FCFS, requests, np.zeros(0, dtype=np.int64))

    def load_s(self) -> float:
        """Give the requested time that its jobs have left, shared by all processors; seconds."""
        moment = self.moment()
        requested = np.array([job.requested_time for job in moment.requests], dtype=np.int64)
        processors = np.array([job.processors for job in moment.requests], dtype=np.int64)
        left = np.maximum(requested - moment.ages(), 0)
        return float(left @ processors) / self.processors

    def submit(self, arrival: Arrival) -> None:
        """Take a job."""
        job = arrival.request
        self.engine.submit(job.submit_time, job.processors, arrival.runtime_s, job.requested_time)
        self.requests.append(job)

    def finished(self, index: int) -> FinishedJob:
        """Give a job that has ended."""
        start, end = self.engine.ran(index)
        return FinishedJob(self.requests[index], start, end, end - start, Ending.COMPLETED)


Rule: TypeAlias = Callable[[Arrival, Sequence[Cluster]], Cluster]
"""Chooses among the clusters that a job fits on, its own being one of them."""


def side_by_side(
    logs: Sequence[Workload],  # with requests as their users made them. None for fewer than two
    seed: int,  # of the random choice
) -> list[tuple[Cell, ...]]:
    """Run every rule on the same jobs, those of the week that begins halfway through each log."""
    if len(logs) < 2:
        return []
    arrivals = arrivals_of(logs)
    rng = np.random.default_rng(seed)
    predicted = LeastTurnaround()
    rules: dict[str, Rule] = {
        "its own": lambda job, fitting: _named(str(job.home), fitting),
        "at random": lambda job, fitting: fitting[int(rng.integers(len(fitting)))],
        "least loaded": lambda job, fitting: min(fitting, key=Cluster.load_s),
        "least predicted turnaround": predicted,
    }
    return [
        run(
            name, rule, arrivals, logs, predicted.forecaster.finished if rule is predicted else None
        )
        for name, rule in rules.items()
    ]


def arrivals_of(logs: Sequence[Workload]) -> list[Arrival]:
    """Give a week of each log's jobs, all from second 0 on, in the order of their submission."""
    found = []
    for home, log in enumerate(logs):
        begin = int(log.submit_time[len(log) // 2])
        within = (log.submit_time >= begin) & (log.submit_time < begin + WEEK_S)
        for job in np.flatnonzero(within).tolist():
            request = log.job_request(job)
            moved = replace(
                request,
                job_id=f"{home}/{request.job_id}",
                submit_time=request.submit_time - begin,
            )
            found.append(Arrival(moved, home, int(log.actual_runtime[job])))
    return sorted(found, key=lambda arrival: arrival.request.submit_time)


def _named(name: str, clusters: Sequence[Cluster]) -> Cluster:
    return next(each for each in clusters if each.name == name)


class LeastTurnaround:
    """Downey's combined predictor, whole queues, lifetimes of what has ended on all clusters."""

    def __init__(self) -> None:
        classes = LifetimeClasses(parse_classifiers("requested-time"))
        self.forecaster = DowneyForecaster("downey", classes)

    def __call__(self, arrival: Arrival, fitting: Sequence[Cluster]) -> Cluster:
        """Choose; the job's own run time is the same everywhere."""
        job = arrival.request
        size, requested = (
            np.array([value], dtype=np.int64) for value in (job.processors, job.requested_time)
        )
        choices = {
            each.name: choose_at_submission(
                job, size, requested.astype(np.float64), requested, each.moment(), self.forecaster
            )
            for each in fitting
        }
        chosen = choose_cluster(choices)
        return fitting[0] if chosen is None else _named(chosen[0], fitting)


def run(
    name: str,
    rule: Rule,
    arrivals: Sequence[Arrival],
    logs: Sequence[Workload],
    # Told of every job that has ended by the time of the next choice.
    finished: Callable[[FinishedJob], None] | None = None,
) -> tuple[Cell, ...]:
    """Let every job go where a rule says; give its row of `COLUMNS`."""
    clusters = [Cluster(str(home), log.machine_processors) for home, log in enumerate(logs)]
    went: list[int] = []
    for arrival in arrivals:
        job = arrival.request
        for cluster in clusters:
            ended = cluster.engine.advance(job.submit_time).finished
            if finished is not None:
                for index in ended.tolist():
                    finished(cluster.finished(index))
        cluster = rule(arrival, [each for each in clusters if job.processors <= each.processors])
        cluster.submit(arrival)
        went.append(clusters.index(cluster))
    waits: list[Int64Array] = []
    turnarounds: list[Int64Array] = []
    for cluster in clusters:
        cluster.engine.finish()
        ran = np.array([cluster.engine.ran(index) for index in range(len(cluster.requests))])
        submitted = np.array([job.submit_time for job in cluster.requests], dtype=np.int64)
        ran = ran.reshape(-1, 2)
        waits.append(ran[:, 0] - submitted)
        turnarounds.append(ran[:, 1] - submitted)
    wait = np.concatenate(waits)
    homes = np.array([arrival.home for arrival in arrivals])
    return (
        name,
        len(arrivals),
        float((np.array(went) != homes).mean()),
        float(wait.mean()) / HOUR_S,
        float(np.median(wait)) / MINUTE_S,
        float(np.concatenate(turnarounds).mean()) / HOUR_S,
    )
