"""Which size to run on, and where: the least predicted turnaround.

Downey 1997, section 1.1: a malleable job that knows its run time on a range of sizes takes the one
with the least sum of predicted wait and run time (internal resource selection); with the
predictions of several clusters it chooses the cluster, too (external). At the head of the queue the
waits are those of `foretime_sim.waits.downey`, for a job not yet submitted those of any
`WaitForecaster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.lifetimes import RunningLives
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sim.waits.downey import SMALL_NEED, combined_wait
from foretime_sim.waits.forecaster import MEDIAN, WaitForecaster
from foretime_sim.waits.moment import Moment


@dataclass(frozen=True, slots=True)
class SizeChoice:
    """Sizes that a job could have, and what is predicted of each.

    Attributes
    ----------
    processors
        The sizes, shape (sizes,).
    wait_s, runtime_s
        Predicted wait, NaN where there is no answer, and run time, seconds.
    """

    processors: Int64Array
    wait_s: Float64Array
    runtime_s: Float64Array

    def __post_init__(self) -> None:
        if not len(self.processors) == len(self.wait_s) == len(self.runtime_s) > 0:
            raise InputError("give a wait and a run time for each of at least one size")

    @property
    def turnaround_s(self) -> Float64Array:
        """Wait and run time together."""
        return self.wait_s + self.runtime_s

    @property
    def best(self) -> int | None:
        """Place of the size of least turnaround, the smallest of equals; ``None``: no answer."""
        turnaround = np.where(np.isnan(self.turnaround_s), np.inf, self.turnaround_s)
        place = int(np.lexsort((self.processors, turnaround))[0])
        return place if np.isfinite(turnaround[place]) else None


def choose_at_head(
    processors: Int64Array,
    runtime_s: Float64Array,
    free: int,
    held: Int64Array,
    lives: RunningLives,
    small_need: float = SMALL_NEED,
) -> SizeChoice:
    """Predict every size's turnaround for the job at the head of an FCFS queue.

    Parameters
    ----------
    processors, runtime_s
        Sizes that it could have, and its run time on each, seconds.
    free
        Free processors.
    held, lives
        Of the running jobs: processors, and conditional lifetimes.
    small_need
        n' below which predictor A is used.
    """
    waits = [
        combined_wait(needed, held, lives, small_need) for needed in (processors - free).tolist()
    ]
    return SizeChoice(processors, np.array(waits, dtype=np.float64), runtime_s)


def choose_at_submission(
    job: JobRequest,
    processors: Int64Array,
    runtime_s: Float64Array,
    requested_time: Int64Array,
    moment: Moment,
    forecaster: WaitForecaster,
) -> SizeChoice:
    """Predict every size's turnaround for a job not yet submitted, by a forecaster's medians.

    Parameters
    ----------
    job
        As it would be submitted, but for size and requested time.
    processors, runtime_s, requested_time
        Sizes that it could have, its run time on each, and what it would ask for, seconds.
    moment
        The cluster now; who is asked about there does not matter.
    forecaster
        That of the cluster.
    """
    waits = []
    for size, requested in zip(processors.tolist(), requested_time.tolist(), strict=True):
        if size > moment.snapshot.machine_processors:
            waits.append(np.nan)
            continue
        request = replace(job, processors=size, requested_time=requested, submit_time=moment.now)
        snapshot = moment.snapshot.with_job(size, requested)
        asked = np.array([len(snapshot) - 1], dtype=np.int64)
        with_job = Moment(snapshot, moment.policy, [*moment.requests, request], asked)
        waits.append(float(forecaster.forecast(with_job).wait_s[0, MEDIAN]))
    return SizeChoice(processors, np.array(waits, dtype=np.float64), runtime_s)


def choose_cluster(choices: Mapping[str, SizeChoice]) -> tuple[str, int] | None:
    """Choose cluster and size with the least predicted turnaround (external resource selection).

    Parameters
    ----------
    choices
        What is predicted on each cluster, by its name.

    Returns
    -------
    tuple[str, int] | None
        The cluster's name and the number of processors; the first of equals, ``None`` where no
        cluster has an answer.
    """
    found: tuple[float, str, int] | None = None
    for name, choice in choices.items():
        if (place := choice.best) is not None:
            turnaround = float(choice.turnaround_s[place])
            if found is None or turnaround < found[0]:
                found = turnaround, name, int(choice.processors[place])
    return None if found is None else found[1:]
