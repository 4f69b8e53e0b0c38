"""How a schedule uses the machine over time: utilization and loss of capacity, exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int64Array, IntpArray
from foretime_estimators.jobs.errors import InputError

from foretime_sim.workloads.workload import Workload

_NOBODY_WAITS = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class MachineUse:
    """The machine between each two moments at which a job is submitted, starts or ends.

    All jobs count, scored or not: what warmed up still uses the machine. Within one second only the
    state at its end counts, so a job that starts when it is submitted never waited.

    Attributes
    ----------
    machine_processors
        Size of the flat pool.
    times
        Shape (moments,), seconds on the workload's clock, increasing.
    used
        Shape (moments,), processors in use from that moment to the next.
    narrowest_waiting
        Shape (moments,), fewest processors that a job waiting from then to the next moment asks
        for; the largest int64 where no job waits.
    """

    machine_processors: int
    times: Int64Array
    used: Int64Array
    narrowest_waiting: Int64Array

    @classmethod
    def of(cls, workload: Workload, start_time: Int64Array, end_time: Int64Array) -> MachineUse:
        """Work it out from the jobs' times, each of shape (jobs,).

        Raises
        ------
        InputError
            When more processors are in use at some time than the machine has.
        """
        jobs = len(workload)
        times, moment = np.unique(
            np.concatenate((workload.submit_time, start_time, end_time)), return_inverse=True
        )
        submitted, started, ended = moment[:jobs], moment[jobs : 2 * jobs], moment[2 * jobs :]
        change = np.zeros(len(times), dtype=np.int64)
        np.add.at(change, started, workload.processors)
        np.subtract.at(change, ended, workload.processors)
        used = np.cumsum(change)
        if jobs and used.max() > workload.machine_processors:
            most = int(np.argmax(used))
            raise InputError(
                f"{workload.name}: {used[most]} processors in use at {times[most]} s on a machine "
                f"of {workload.machine_processors}: not a schedule of this machine"
            )
        return cls(
            machine_processors=workload.machine_processors,
            times=times,
            used=used,
            narrowest_waiting=_narrowest(submitted, started, workload.processors, len(times)),
        )

    def utilization(self, since: int, until: int) -> float | None:
        """Processor-seconds used / (processors x span); ``None`` for an empty span.

        Jobs count with the part of them that lies in [since, until).
        """
        return self._share(self.used, since, until)

    def loss_of_capacity(self, since: int, until: int) -> float | None:
        """Processor-seconds idle while any job waited / (processors x span).

        Zhang et al. 2000, as Streit 2002, section 5.2: equals 1 - utilization when saturated.
        """
        return self._share(self._idle * (self.narrowest_waiting < _NOBODY_WAITS), since, until)

    def avoidable_loss_of_capacity(self, since: int, until: int) -> float | None:
        """Processor-seconds idle while a waiting job would have fitted / (processors x span).

        Tang et al. 2011: the part that the scheduler chose, to keep a reservation.
        """
        return self._share(self._idle * (self.narrowest_waiting <= self._idle), since, until)

    @property
    def _idle(self) -> Int64Array:
        return self.machine_processors - self.used

    def _share(self, processors: Int64Array, since: int, until: int) -> float | None:
        if until <= since:
            return None
        length = np.diff(np.clip(np.append(self.times, until), since, until))
        return int(processors @ length) / (self.machine_processors * (until - since))


def _narrowest(
    submitted: IntpArray,
    started: IntpArray,
    processors: Int64Array,
    moments: int,
) -> Int64Array:
    """Minimum of ``processors`` over the jobs that wait from each moment to the next.

    A sparse table filled backwards: a job's moments [submitted, started) are covered by two spans
    of one power of two; the minimum of a span is then handed down to its two halves.
    """
    waited = np.flatnonzero(started > submitted)
    first, last, width = submitted[waited], started[waited], processors[waited]
    power = np.frexp((last - first).astype(np.float64))[1] - 1
    lowest = np.full(moments, _NOBODY_WAITS)
    for level in range(int(power.max(initial=0)), -1, -1):
        span = 1 << level
        # What the level above said of 2 * span moments from i on holds at i and at i + span.
        lowest[span:] = np.minimum(lowest[span:], lowest[:-span])
        here = power == level
        np.minimum.at(lowest, first[here], width[here])
        np.minimum.at(lowest, last[here] - span, width[here])
    return lowest
