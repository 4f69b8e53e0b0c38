"""The queue run forward with as many samples as there is time for."""

from __future__ import annotations

import time

from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.forward import usable_cores
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import ForwardForecaster
from foretime_sim.waits.moment import Moment

from foretime_sidecar.forecasts.sample_cache import DrawnOnce

# A scheduler looks at its queue this often at least: a start before then is one at once.
NOW_S = 60
_SAMPLES = (200, 100, 50, 20, 10)
# Seconds of one processor that forecasts of all pending jobs, and of one job, are to take. A queue
# on nodes takes far longer to run forward than on a flat pool.
_ALL_S, _ONE_S = 15.0, 0.4
# Jobs x samples that are run forward before it is known how long that takes.
_SAMPLED_JOBS = 240_000


class ForecastLadder:
    """A `foretime_sim.waits.forecaster.WaitForecaster` of forward runs, if the queue allows them.

    Parameters
    ----------
    most_jobs
        Jobs of a queue that is still run forward; of a longer one there is no answer.

    Attributes
    ----------
    hurried
        Whether a quarter of the work must do, as the machine has other.
    """

    name = "forward"
    oracle = False

    def __init__(self, most_jobs: int) -> None:
        self.hurried = False
        self._most_jobs = most_jobs
        self._s_per_sample = 0.0  # as it was last
        histories = RuntimeHistories()
        self._runtimes = DrawnOnce(histories)
        self._arrivals = ResampledArrivals(histories)

    def samples(self, jobs: int, asked: int = 2) -> int:
        """Give how many samples a queue of so many jobs is run forward with; 0: it is not.

        As many as the last runs say that there is time for: 15 s for all pending jobs, 0.4 s for
        one job on all cores; at least 20 (of one job, 10), at most 200.
        """
        if jobs > self._most_jobs:
            return 0
        most = float(_SAMPLED_JOBS // max(jobs, 1))
        if self._s_per_sample:
            budget_s = _ALL_S
            if asked == 1:
                budget_s = _ONE_S * (1 if self.hurried else usable_cores())
            most = budget_s / self._s_per_sample
        most = min(most, _SAMPLES[0])
        offered = _SAMPLES if asked == 1 else _SAMPLES[:-1]
        if self.hurried:
            most /= 4
        return next((samples for samples in offered if samples <= most), offered[-1])

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        asked = len(moment.asked)
        samples = self.samples(len(moment.snapshot), asked)
        if not samples:
            return WaitForecasts.none(asked)
        # Somebody waits for the answer about one job: on all cores, unless others need them.
        threads = None if asked == 1 and not self.hurried else 1
        forward = ForwardForecaster(
            self.name, self._runtimes, self._arrivals, samples=samples, threads=threads
        )
        began = time.thread_time()
        forecasts = forward.forecast(moment)
        self._note(asked, (time.thread_time() - began) / samples)
        return forecasts

    def _note(self, asked: int, s_per_sample: float) -> None:
        # A run for one job ends when it has started; one that starts at once tells nothing.
        if asked > 1 or s_per_sample > self._s_per_sample:
            self._s_per_sample = s_per_sample

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._arrivals.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Nothing is learned from a start: the policy is known."""

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._runtimes.learn_one(job)
        self._arrivals.finished(job)
