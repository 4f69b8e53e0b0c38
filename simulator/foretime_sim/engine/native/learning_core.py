"""A run with an estimator in the loop, whole in the native core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.endings import EVIDENCE, Evidence
from foretime_estimators.jobs.jobs import Ending

from foretime_sim import _core
from foretime_sim.engine.native.engine_core import core_engine, core_schedule
from foretime_sim.engine.native.estimator_core import JobNames, NativeEstimator, core_estimator
from foretime_sim.engine.schedule import Schedule
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import has_python
from foretime_sim.policies.role_times import job_times
from foretime_sim.workloads.workload import ENDINGS, Workload

PredictedTimes: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]
"""Scheduled times for queue, backfill and drain, seconds; shape (jobs,) each."""
_TELLS_NOTHING, _TELLS_RUNTIME, _TELLS_LIMIT = range(3)


def runs_natively(workload: Workload, policy: Policy) -> bool:
    """Whether the native core can do a whole run: on a flat pool, without a policy in Python."""
    return workload.machine is None and not has_python(policy)


def native_learning_run(
    estimator: NativeEstimator,
    workload: Workload,
    policy: Policy,
    reservations: Sequence[AdvanceReservation],
    progress: Callable[[int], None] | None,
) -> tuple[Schedule, PredictedTimes]:
    """Do what `engine.estimated_run` does step by step, without the interpreter's lock.

    The estimator begins with all that it has learned, and has learned from this run when it
    returns; where it raises, it is as it was.

    Returns
    -------
    schedule, predicted
        The engine's; what was predicted for each job in every role.

    Raises
    ------
    InputError
        If the workload can't be simulated.
    """
    job_times(workload, policy.roles)
    now = int(workload.submit_time[0]) if len(workload) else 0
    engine = core_engine(workload.machine_processors, policy, now, reservations, None)
    native = core_estimator(estimator, workload)
    names = JobNames.of(workload)
    run = _core.LearningRun(
        engine,
        native.core,
        _column(workload.submit_time),
        _column(workload.processors),
        _column(workload.actual_runtime),
        _column(workload.requested_time),
        names.users.codes,
        names.projects.codes,
        names.queues.codes,
        names.executables.codes,
        _evidence(workload),
        policy.roles.queue,
        policy.roles.backfill,
        policy.roles.drain,
    )
    step = len(workload) if progress is None else max(len(workload) // 100, 1)
    for submitted in _up_to(len(workload), step):
        run.submit_up_to(submitted)
        if progress is not None:
            progress(submitted)
    engine.finish()
    estimator.restore(native.state())
    return core_schedule(engine, policy, None), run.predicted()


def _column(values: npt.NDArray[np.signedinteger]) -> Int64Array:
    return np.ascontiguousarray(values, dtype=np.int64)


def _up_to(jobs: int, step: int) -> Iterator[int]:
    if jobs:
        yield from range(step, jobs, step)
        yield jobs


def _evidence(workload: Workload) -> Int64Array:
    """Say what each job's ending in the log tells, as the core numbers it; shape (jobs,)."""
    if workload.endings is None:
        return np.full(len(workload), _TELLS_RUNTIME, dtype=np.int64)
    tells = np.array([_tells(ending) for ending in ENDINGS], dtype=np.int64)
    return tells[workload.endings.filled(ENDINGS.index(Ending.COMPLETED))]


def _tells(ending: Ending) -> int:
    if ending is Ending.TIMED_OUT:
        return _TELLS_LIMIT
    return _TELLS_NOTHING if EVIDENCE[ending] is Evidence.NONE else _TELLS_RUNTIME
