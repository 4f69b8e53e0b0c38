"""A simulated run with an estimator in the loop: it predicts at submission, learns at completion.

No hook, table or polling stands between estimator and engine (`foretime replay` has those): a job
is planned with what its estimator says at its submission, knowing all that had finished by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.arrays import BoolArray, Int8Array, Int32Array, Int64Array
from foretime_estimators.estimators.estimator import (
    Memoryless,
    RoleEstimator,
    RolePrediction,
    RuntimeEstimator,
    observes_starts,
)
from foretime_estimators.estimators.job_events import learn_history, tell
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.estimators.requested import Requested
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

from foretime_sim.engine.engine import simulate
from foretime_sim.engine.finished_history import finished_before
from foretime_sim.engine.native.estimator_core import is_native
from foretime_sim.engine.native.learning_core import native_learning_run, runs_natively
from foretime_sim.engine.schedule import Counters, Schedule
from foretime_sim.engine.schedule import check as check_schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.policies.role_times import JobTimesUpdate, RoleTimes
from foretime_sim.policies.said_to_sites import said_by
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import ENDINGS, Workload


@dataclass(frozen=True, slots=True)
class EstimatedSchedule:
    """A schedule, and what its jobs were planned with; arrays of shape (jobs,).

    Attributes
    ----------
    schedule
        The engine's.
    scheduled_time
        t_sched, seconds, from 1 to the requested time; for backfilling, where roles differ.
    role_times
        What each role went by; ``None``: the requested times in all of them.
    """

    schedule: Schedule
    scheduled_time: Int64Array
    role_times: RoleTimes | None = None

    @property
    def start_time(self) -> Int64Array:
        """Seconds on the workload's clock."""
        return self.schedule.start_time

    @property
    def end_time(self) -> Int64Array:
        """Seconds on the workload's clock."""
        return self.schedule.end_time

    @property
    def started_by(self) -> Int8Array:
        """A `foretime_sim.engine.schedule.StartedBy` for each job."""
        return self.schedule.started_by

    @property
    def outlived(self) -> BoolArray:
        """True where the job ran longer than its t_sched."""
        return self.end_time - self.start_time > self.scheduled_time

    @property
    def killed(self) -> BoolArray:
        """True where the job was ended by its time limit before its actual runtime."""
        return self.schedule.killed

    @property
    def corrections(self) -> Int32Array:
        """How often each job outlived its estimate and was given another."""
        return self.schedule.corrections

    @property
    def first_planned_start(self) -> Int64Array | None:
        """When each job was first planned to start, seconds; see `Schedule`."""
        return self.schedule.first_planned_start

    @property
    def bgp_partition(self) -> Int32Array | None:
        """On which bgp_partition of a Blue Gene each job ran; see `Schedule`."""
        return self.schedule.bgp_partition

    @property
    def counters(self) -> Counters:
        """What the run did."""
        return self.schedule.counters

    @property
    def guard_activations(self) -> int:
        """Number of jobs for which the starvation guard became active."""
        return self.schedule.guard_activations

    @property
    def used_up(self) -> BoolArray | None:
        """Where Slurm ended a job because a limit's minutes were used up; see `Schedule`."""
        return self.schedule.used_up

    @property
    def never_ran(self) -> Mapping[int, str]:
        """Jobs that the site's rules never let run, by index, and why."""
        return self.schedule.never_ran

    def __len__(self) -> int:
        return len(self.scheduled_time)


def simulate_with_estimator(
    workload: Workload,
    policy: Policy,
    estimator: RuntimeEstimator,
    *,
    learn: bool = True,
    history: Workload | None = None,
    reservations: Sequence[AdvanceReservation] = (),
    check: bool = False,
    progress: Callable[[int], None] | None = None,
) -> EstimatedSchedule:
    """Schedule a workload by what an estimator predicts for its jobs.

    A job is predicted at its submission, after all that ended by then has been learned, in the
    order in which it ended; an estimator that observes starts is told of those, too. What ends in
    the very second of a submission is known to it under the event order ``per-timestep``, and is
    not under ``per-event``, where submissions come first. An estimator that learns nothing, or is
    not to, gives all its predictions at once, and the whole log runs in one native call; the
    schedule is the same.

    Parameters
    ----------
    workload
        Jobs in submission order.
    policy
        What the scheduler does; ``policy.roles`` says where predictions are used.
    estimator
        A fresh one (see `estimator_of`): what it learns stays in it.
    learn
        Whether jobs that finish are learned; otherwise the history alone decides.
    history
        Jobs learned before the first submission: those that had ended by then, at their logged
        ends. ``None`` for none.
    reservations
        Processors claimed from outside (see `foretime_sim.engine.engine.simulate`).
    check
        Check the conservation laws on the result (`foretime_sim.engine.schedule.check`).
    progress
        Called with the number of jobs submitted so far, about a hundred times.

    Raises
    ------
    InputError
        If the workload can't be simulated, an oracle does not know a job, or no job of the history
        had ended.
    ScheduleError
        If a checked schedule breaks a law.

    Examples
    --------
    >>> from foretime_estimators import parse_estimator
    >>> from foretime_sim import Backfill, Correction, Policy, generate, simulate_with_estimator
    >>> workload = generate("lublin2003", jobs=500, load=0.9, seed=1)
    >>> policy = Policy(backfill=Backfill.EASY_SJBF, correction=Correction.INCREMENTAL)
    >>> run = simulate_with_estimator(workload, policy, parse_estimator("last-two"))
    >>> print(f"{run.outlived.mean():.0%} of the jobs ran longer than predicted")
    33% of the jobs ran longer than predicted
    """
    if history is not None and len(workload):
        learn_history(estimator, finished_before(history, workload))
    if isinstance(estimator, Requested):
        scheduled = workload.requested_time.astype(np.int64)
        schedule = simulate(workload, policy, reservations=reservations, check=check)
        return EstimatedSchedule(schedule, scheduled)
    if learn and runs_natively(workload, policy) and is_native(estimator):
        schedule, (queue, backfill, drain) = native_learning_run(
            estimator, workload, policy, reservations, progress
        )
        times = _by_role(queue, backfill, drain, policy.roles)
        if check:
            check_schedule(workload, schedule, workload.requested_time, reservations)
        return EstimatedSchedule(schedule, backfill, times)
    requests = job_requests(workload)
    if not learn or isinstance(estimator, Memoryless):
        predict = role_predictor(estimator)
        predicted = [predict(request, request.submit_time) for request in requests]
        times = _role_times(predicted, policy.roles)
        schedule = simulate(workload, policy, times, reservations=reservations, check=check)
        return EstimatedSchedule(schedule, _told(predicted), times)
    now = requests[0].submit_time if requests else 0
    engine = Engine(
        workload.machine_processors,
        policy,
        now,
        reservations,
        epoch_of_zero=workload.epoch_of_zero,
        machine=workload.machine,
    )
    estimated = _learning_run(engine, workload, requests, estimator, progress)
    if check:
        check_schedule(workload, estimated.schedule, workload.requested_time, reservations)
    return estimated


def _learning_run(
    engine: Engine,
    workload: Workload,
    requests: list[JobRequest],
    estimator: RuntimeEstimator,
    progress: Callable[[int], None] | None,
) -> EstimatedSchedule:
    """Drive the engine from submission to submission, learning what finished in between."""
    now = engine.now
    actual_runtimes = workload.actual_runtime.tolist()
    endings = logged_endings(workload)
    roles = engine.policy.roles
    predict = role_predictor(estimator)
    told_of_starts = observes_starts(estimator)
    predicted: list[RolePrediction] = []
    step = max(len(requests) // 100, 1)
    for request, actual_runtime in zip(requests, actual_runtimes, strict=True):
        if request.submit_time > now:
            now = request.submit_time
            moves = engine.advance(now)
            started = []
            if told_of_starts:
                indices = moves.started.tolist()
                started = [(requests[job], engine.started_at(job)) for job in indices]
            finished = [
                finished_job(
                    requests[job],
                    *engine.ran(job),
                    Ending.TIMED_OUT if engine.is_used_up(job) else endings[job],
                )
                for job in moves.finished.tolist()
            ]
            tell(estimator, started, finished)
        times = predict(request, now)
        predicted.append(times)
        resources = None
        if isinstance(workload.machine, Machine):
            resources = job_resources(workload, len(predicted) - 1)
        engine.submit(
            now,
            request.processors,
            actual_runtime,
            request.requested_time,
            planned_times(times, roles),
            user=request.user,
            project=request.project,
            resources=resources,
            said=said_by(workload, engine.policy, len(predicted) - 1),
        )
        if progress is not None and len(predicted) % step == 0:
            progress(len(predicted))
    engine.finish()
    return EstimatedSchedule(engine.schedule(), _told(predicted), _role_times(predicted, roles))


def role_predictor(
    estimator: RuntimeEstimator,
) -> Callable[[JobRequest, int], RolePrediction]:
    """Give what predicts each role's time: the same in all, if the estimator has one."""
    if isinstance(estimator, RoleEstimator):
        return estimator.predict_roles

    def alike(job: JobRequest, now: int) -> RolePrediction:
        scheduled = estimator.predict_one(job, now)
        return RolePrediction(scheduled, scheduled, scheduled)

    return alike


def planned_times(predicted: RolePrediction, roles: Roles) -> JobTimesUpdate:
    """Give what the engine is told of one job: predictions only in the roles that go by them."""
    return JobTimesUpdate(
        predicted.queue if roles.queue else None,
        predicted.backfill if roles.backfill else None,
        predicted.drain if roles.drain else None,
    )


def finished_job(
    request: JobRequest, start_time: int, end_time: int, logged_ending: Ending
) -> FinishedJob:
    """Give a job as the accounting has it after it ran from start to end, seconds.

    It ended as it did in the log, or by its time limit where it ran for as long as requested.
    """
    runtime = end_time - start_time
    at_limit = runtime >= request.requested_time
    ending = Ending.TIMED_OUT if at_limit else logged_ending
    return FinishedJob(request, start_time, end_time, runtime, ending)


def _told(predicted: Sequence[RolePrediction]) -> Int64Array:
    """Give the time of each job that a scheduler which takes only one would be told."""
    return np.array([times.backfill for times in predicted], dtype=np.int64)


def _role_times(predicted: Sequence[RolePrediction], roles: Roles) -> RoleTimes:
    """Give the times by role, requested ones where a role goes by those."""
    queue, backfill, drain = np.array(predicted, dtype=np.int64).reshape(-1, 3).T
    return _by_role(queue, backfill, drain, roles)


def _by_role(queue: Int64Array, backfill: Int64Array, drain: Int64Array, roles: Roles) -> RoleTimes:
    return RoleTimes(
        queue if roles.queue else None,
        backfill if roles.backfill else None,
        drain if roles.drain else None,
    )


def estimator_of(
    name: str,
    workload: Workload,
    *,
    settings: AccuracySettings | None = None,
    seed: int = 0,
) -> RuntimeEstimator:
    """Build a fresh estimator by its name for a run of a workload; oracles are told its runtimes.

    Parameters are those of `foretime_estimators.estimators.registry.parse_estimator`.

    Raises
    ------
    InputError
        For a name that there is not, or a wrong number after it.
    """
    return parse_estimator(
        name, settings=settings, actual_runtimes=_RuntimesOf(workload), seed=seed
    )


class _RuntimesOf(Mapping[str, int]):
    """Actual runtimes by job id, seconds; made only when an oracle asks for the first."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._runtimes: dict[str, int] | None = None

    def _all(self) -> dict[str, int]:
        if self._runtimes is None:
            runtimes = self._workload.actual_runtime.tolist()
            self._runtimes = dict(zip(self._workload.distinct_job_ids(), runtimes, strict=True))
        return self._runtimes

    def __getitem__(self, job_id: str) -> int:
        return self._all()[job_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._workload)


def job_requests(workload: Workload) -> list[JobRequest]:
    """Give every job as its user submitted it; times from the log's start.

    As `Workload.job_request`, but a job whose number another job has gets an id of its own.
    """
    users, projects, queues, array_ids, executables = (
        [None] * len(workload) if labels is None else labels.by_job()
        for labels in (
            workload.users,
            workload.projects,
            workload.queues,
            workload.array_ids,
            workload.executables,
        )
    )
    return list(
        map(
            JobRequest,
            workload.distinct_job_ids(),
            users,
            projects,
            workload.processors.tolist(),
            workload.requested_time.tolist(),
            workload.submit_time.tolist(),
            queues,
            array_ids,
            executables,
        )
    )


def logged_endings(workload: Workload) -> list[Ending]:
    """Give how jobs ended in the log; completed where it does not say."""
    if workload.endings is None:
        return [Ending.COMPLETED] * len(workload)
    codes = workload.endings.filled(ENDINGS.index(Ending.COMPLETED))
    return [ENDINGS[code] for code in codes.tolist()]
