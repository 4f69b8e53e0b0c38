"""An answer for every job, however long the queue: as many samples as there is time for.

The queue is run forward with as many samples as its length allows; beyond ``forecast.most_jobs`` it
is told what waits have been lately (QBETS), and failing that how long the work before a job lasts.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.jobs import FinishedJob, JobRequest
from foretime_estimators.runtime_histories import RuntimeHistories
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets

from foretime_sidecar.drawn_once import DrawnOnce
from foretime_sidecar.queue_places import backlog_waits

# A scheduler looks at its queue this often at least: a start before then is one at once.
NOW_S = 60
_SAMPLES = (200, 100, 50, 20)
# Jobs x samples that are run forward at a time; a second of one processor, more or less.
_SAMPLED_JOBS = 240_000


class ForecastLadder:
    """A `foretime_sim.waits.forecaster.WaitForecaster` that always answers.

    Parameters
    ----------
    most_jobs
        Jobs of a queue that is still run forward.

    Attributes
    ----------
    hurried
        Whether a quarter of the work must do, as the machine has other.
    """

    name = "foretime"
    oracle = False

    def __init__(self, most_jobs: int) -> None:
        self.hurried = False
        self._most_jobs = most_jobs
        histories = RuntimeHistories()
        self._runtimes = DrawnOnce(histories)
        self._arrivals = ResampledArrivals(histories)
        self._past_waits = Qbets(now_within_s=NOW_S)

    def samples(self, jobs: int) -> int:
        """Give how many samples a queue of so many jobs is run forward with; 0: it is not."""
        if jobs > self._most_jobs:
            return 0
        most = min(_SAMPLED_JOBS // max(jobs, 1), _SAMPLES[0])
        if self.hurried:
            most //= 4
        return next((samples for samples in _SAMPLES if samples <= most), _SAMPLES[-1])

    def basis(self, jobs: int) -> str:
        """Say in words what forecasts of a queue of so many jobs stand on."""
        samples = self.samples(jobs)
        if samples:
            return (
                f"jobs run as long as those most like them have, and others come as they came in "
                f"weeks past, drawn {samples} times"
            )
        return (
            f"the queue has {jobs:,} jobs and is not run forward beyond {self._most_jobs:,} "
            "(forecast.most_jobs): waits are as they were lately"
        )

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        samples = self.samples(len(moment.snapshot))
        if samples:
            return ForwardForecaster(
                self.name, self._runtimes, self._arrivals, samples=samples
            ).forecast(moment)
        lately, worked_off = self._past_waits.forecast(moment), backlog_waits(moment)
        known = lately.answered
        return WaitForecasts(
            np.where(known[:, np.newaxis], lately.wait_s, worked_off.wait_s),
            np.where(known, lately.starts_now, worked_off.starts_now),
        )

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._arrivals.submitted(job)
        self._past_waits.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn from a start."""
        self._past_waits.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._runtimes.learn_one(job)
        self._arrivals.finished(job)
        self._past_waits.finished(job)
