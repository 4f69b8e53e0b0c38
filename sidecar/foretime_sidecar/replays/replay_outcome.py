"""What a replay comes to: the schedule as it is scored, and what went on besides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.schedule import Schedule, that_ran
from foretime_sim.scores.replay_result import HookStatistics, OrderingStatistics
from foretime_sim.scores.start_promises import StartPromises
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.store.start_bounds import StartBounds


@dataclass(frozen=True, slots=True)
class ReplaySchedule:
    """A schedule as it is scored: the engine's, and which jobs outlived the t_sched they had.

    Attributes
    ----------
    start_time, end_time
        Shape (jobs,), seconds of the log's clock.
    started_by
        Shape (jobs,), codes of `StartedBy`.
    outlived
        Shape (jobs,): ran longer than the t_sched that they ran with.
    killed
        Shape (jobs,): ended before the actual runtime *and* before t_req, which nobody may be but
        those ``used_up``.
    scheduled_time
        Shape (jobs,), seconds: the t_sched that they were submitted with.
    never_ran, used_up
        As in `Schedule`.
    """

    start_time: Int64Array
    end_time: Int64Array
    started_by: np.ndarray[tuple[int], np.dtype[np.int8]]
    outlived: np.ndarray[tuple[int], np.dtype[np.bool_]]
    killed: np.ndarray[tuple[int], np.dtype[np.bool_]]
    scheduled_time: Int64Array
    never_ran: Mapping[int, str] = field(default_factory=dict)
    used_up: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        schedule: Schedule,
        scheduled_time: Int64Array,
        running_time: Int64Array | None = None,
    ) -> ReplaySchedule:
        """Judge a schedule of a workload by what its users asked for.

        ``running_time`` is the t_sched that running jobs had, if it is not the one that they were
        submitted with; seconds.
        """
        ran = schedule.end_time - schedule.start_time
        promised = np.minimum(workload.actual_runtime, workload.requested_time)
        killed = (ran < promised) & that_ran(schedule.start_time)
        if schedule.used_up is not None:
            killed &= ~schedule.used_up
        return cls(
            start_time=schedule.start_time,
            end_time=schedule.end_time,
            started_by=schedule.started_by,
            outlived=ran > (scheduled_time if running_time is None else running_time),
            killed=killed,
            scheduled_time=scheduled_time,
            never_ran=schedule.never_ran,
            used_up=schedule.used_up,
        )


def ordering_of(looks: int, sidecar: Sidecar) -> OrderingStatistics:
    """Say what a sidecar's ordering of the queue came to, in so many looks at it."""
    switched = sidecar.switched_order
    tries = failures = 0
    switches: dict[str, int] = {}
    if switched is not None:
        tries, failures = switched.tries, switched.failures
        switches = switched.log.counts()
    bounds, kept = StartBounds(sidecar.store).of_started()
    starts = sidecar.scheduler.starts
    raised, missed = (0, 0) if starts is None else (starts.raised, starts.missed)
    return OrderingStatistics(looks, tries, failures, switches, bounds, kept, raised, missed)


@dataclass(frozen=True, slots=True)
class AdjustedStatistics:
    """What went on in one adjusted run besides its scores.

    Attributes
    ----------
    hook
        What the hook did; ``None`` where it was not in the loop.
    wait
        Shape (jobs,), seconds, in the order of the repeat's workload.
    guard_activations
        Jobs for which the starvation guard became active.
    forecasts
        How the forecasts of waits have done that were served; ``None`` if none were.
    ordering
        What putting the queue in order came to; ``None`` if the sidecar did not.
    promises
        How promised starts fared; ``None``: the policy promises nothing.
    baseline_promises
        Likewise, in the run without Foretime.
    never_ran
        How many jobs never ran, by the reason, without and with Foretime.
    """

    hook: HookStatistics | None
    wait: Int64Array
    guard_activations: int
    forecasts: Reliability | None = None
    ordering: OrderingStatistics | None = None
    promises: StartPromises | None = None
    baseline_promises: StartPromises | None = None
    never_ran: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
