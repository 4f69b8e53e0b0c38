"""A run with an estimator in the loop, whole in the native core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
from foretime_estimators.endings import EVIDENCE, Evidence
from foretime_estimators.jobs import Ending

from foretime_sim import _core
from foretime_sim.advance_reservations import AdvanceReservation
from foretime_sim.engine_core import core_engine, core_schedule
from foretime_sim.estimator_core import CoreUsers, NativeEstimator, core_estimator
from foretime_sim.policy import Policy
from foretime_sim.policy_calls import has_python
from foretime_sim.role_times import job_times
from foretime_sim.schedule import Schedule
from foretime_sim.workload import ENDINGS, Int64Array, Workload


def runs_natively(workload: Workload, policy: Policy) -> bool:
    """Whether the native core can do a whole run: on a flat pool, without a policy in Python."""
    return workload.machine is None and not has_python(policy)


def native_learning_run(
    estimator: NativeEstimator,
    workload: Workload,
    policy: Policy,
    reservations: Sequence[AdvanceReservation],
    progress: Callable[[int], None] | None,
) -> tuple[Schedule, Int64Array]:
    """Do what `foretime_sim.estimated_run` does step by step, without the interpreter's lock.

    The estimator begins with all that it has learned, and has learned from this run when it
    returns; where it raises, it is as it was.

    Returns
    -------
    schedule, scheduled_time
        The engine's; t_sched as predicted for each job, seconds.

    Raises
    ------
    InputError
        If the workload can't be simulated.
    """
    job_times(workload, policy.roles)
    now = int(workload.submit_time[0]) if len(workload) else 0
    engine = core_engine(workload.machine_processors, policy, now, reservations, None)
    native = core_estimator(estimator, workload)
    run = _core.LearningRun(
        engine,
        native.core,
        _column(workload.submit_time),
        _column(workload.processors),
        _column(workload.actual_runtime),
        _column(workload.requested_time),
        CoreUsers(workload).codes,
        _is_evidence(workload),
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


def _is_evidence(workload: Workload) -> npt.NDArray[np.bool_]:
    """Say of each job whether its ending in the log tells of its runtime; shape (jobs,)."""
    if workload.endings is None:
        return np.ones(len(workload), dtype=np.bool_)
    tells = np.array([EVIDENCE[ending] is not Evidence.NONE for ending in ENDINGS])
    return tells[workload.endings.filled(ENDINGS.index(Ending.COMPLETED))]
