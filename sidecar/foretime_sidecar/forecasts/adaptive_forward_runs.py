"""The queue run forward with as many samples as there is time for."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.forward import usable_cores
from foretime_sim.engine.queue_places import kept_by_limits
from foretime_sim.waits.arrival_model import ResampledArrivals
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import ForwardForecaster, planned_waits
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.newcomers import Newcomers
from foretime_sim.waits.turns import NOBODY_WAITS, Turns

from foretime_sidecar.forecasts.sample_cache import DrawnOnce

# A scheduler looks at its queue this often at least: a start before then is one at once.
NOW_S = 60
_SAMPLES = (200, 100, 50, 20, 10)
FEWEST = 10  # of all pending jobs
# A sample takes about half as long as a plan, in which jobs take all that they ask for.
_OF_A_PLAN = 0.5
# Seconds that forecasts of all pending jobs, of several as if they were let go, and of one job are
# to take. A queue on nodes takes far longer to run forward than on a flat pool.
_ALL_S, _LET_GO_S, _ONE_S = 10.0, 2.5, 0.4
# Somebody waits no longer for the answer about one job.
_PATIENCE_S = 1.0
# Jobs x samples that are run forward before it is known how long that takes.
_SAMPLED_JOBS = 240_000
# Jobs x samples that are drawn in some 20 ms: for one job no fewer, if there is time to run them.
_DRAWN_FOR_ONE = 60_000
# A forecast of one job stands on as many samples at least.
_FEWEST_OF_ONE = 10
# The plan, and the runs that tell until when arrivals matter, take as long as so many samples.
_BEFORE_SAMPLES = 3
_OVER_S = 10 * 365 * 86_400


class _Budget:
    """A `foretime_sim.waits.forward_forecaster.Pace` that runs what fits into a time.

    It begins with one sample a thread, and goes on as these have told how long they take.

    Parameters
    ----------
    budget_s
        Of the thread that asks, from now on.
    threads
        That run samples.
    fewest
        Samples that are run however long they take.
    turns
        Of those who wait meanwhile.

    Attributes
    ----------
    run
        Samples that were run.
    """

    def __init__(
        self,
        budget_s: float,
        threads: int,
        fewest: int = 1,
        turns: Turns = NOBODY_WAITS,
    ) -> None:
        self.run = 0
        self._fewest = fewest
        self._turns = turns
        self._budget_s = budget_s
        self._threads = threads
        self._began = self._sampling_since = time.thread_time()

    def spent_s(self) -> float:
        """Give how long it has taken so far."""
        return time.thread_time() - self._began

    def few(self, samples: int) -> int:
        """Take a tenth, if they take no more than a tenth of the time: one has been run by now."""
        fit = self._budget_s / 10 / max(self.spent_s(), 1e-9)
        return int(max(1, min(samples // 10, fit)))

    def more(self, done: int, samples: int) -> int:
        """Go on with what fits, and at most three times as many as have been run."""
        if not done:
            self._sampling_since = time.thread_time()
            more = min(self._threads, samples)
        else:
            took_s = max(time.thread_time() - self._sampling_since, 1e-9)
            fit = int((self._budget_s - self.spent_s()) * done / took_s)
            fit = max(fit, self._fewest - done)
            more = max(min(fit, samples - done, 3 * done), 0)
        self.run = done + more
        return more

    def aside(self) -> AbstractContextManager[None]:
        """Let those go who wait."""
        return self._turns.aside()


class SampleModels:
    """What samples are drawn from: learned once, for all who run the queue forward.

    Attributes
    ----------
    histories
        How long jobs run, as distributions.
    runtimes, arrivals, newcomers
        The same, drawn; who comes later, and where they belong.
    """

    def __init__(self) -> None:
        self.histories = RuntimeHistories()
        self.runtimes = DrawnOnce(self.histories)
        self.arrivals = ResampledArrivals(self.histories)
        self.newcomers = Newcomers()

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self.newcomers.submitted(job)
        self.arrivals.submitted(job)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self.runtimes.learn_one(job)
        self.arrivals.finished(job)


def _without_kept(moment: Moment, kept: BoolArray, free: BoolArray) -> Moment:
    """Give a moment whose pending jobs at a limit come when all is over; asked are the others."""
    pending = moment.snapshot.pending
    joins = np.where(kept, moment.now + _OVER_S, pending.joins_at())
    return replace(
        moment,
        snapshot=replace(moment.snapshot, pending=replace(pending, eligible_time=joins)),
        asked=moment.asked[free],
        since=None if moment.since is None else moment.since[free],
    )


class ForecastLadder:
    """A `foretime_sim.waits.forecaster.WaitForecaster` of forward runs, if the queue allows them.

    Parameters
    ----------
    most_jobs
        Jobs of a queue that is still run forward; of a longer one there is no answer.
    models
        Which learn with it; fresh ones if not given.
    now_within_s
        As for `foretime_sim.waits.forward_forecaster.ForwardForecaster`.
    knows_limits
        Whether the policy lets go who is at a limit; otherwise there is no answer on those, and the
        others start as if they were not there.

    Attributes
    ----------
    hurried
        Whether a quarter of the work must do, as the machine has other.
    drawn
        Samples that the last forecast of the queue was made of.
    turns
        Of those who wait while the queue is forecast.
    is_spared
        Says whether there is no time to forecast the queue; ``None``: there is.
    """

    name = "forward"
    oracle = False
    turns: Turns = NOBODY_WAITS
    is_spared: Callable[[], bool] | None = None

    def __init__(
        self,
        most_jobs: int,
        models: SampleModels | None = None,
        now_within_s: int = 0,
        *,
        knows_limits: bool = False,
    ) -> None:
        self.hurried = False
        self.drawn = 0
        self._most_jobs = most_jobs
        self._models = models or SampleModels()
        self._now_within_s = now_within_s
        self._knows_limits = knows_limits
        self._s_per_sample = 0.0  # as it was last

    def longest_plan_s(self, samples: int) -> float:
        """Give how long the plan may take for so many samples to fit into the time, seconds."""
        return _ALL_S / (_OF_A_PLAN * samples)

    def samples(self, jobs: int) -> int:
        """Give how many samples of a queue of so many jobs are drawn; 0: it is not run forward.

        As many as the last runs say that there is time for: 10 s for all pending jobs; at least 10,
        at most 200. Those are run for which there proves to be time, of one job 0.4 s: its run ends
        when it starts, in a fiftieth of the time if that is soon.
        """
        if jobs > self._most_jobs:
            return 0
        most = float(_SAMPLED_JOBS // max(jobs, 1))
        if self._s_per_sample:
            most = _ALL_S / self._s_per_sample
        most = min(most, _SAMPLES[0])
        if self.hurried:
            most /= 4
        return next((samples for samples in _SAMPLES if samples <= most), FEWEST)

    def is_quick_for_one(self) -> bool:
        """Say whether somebody can wait for the forecast of one job, by how long samples took."""
        fewest = _FEWEST_OF_ONE / (1 if self.hurried else usable_cores())
        return self._s_per_sample * (fewest + _BEFORE_SAMPLES) <= _PATIENCE_S

    def forecast(self, moment: Moment, planned_s: Float64Array | None = None) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait; `planned_waits` if they are known."""
        if self.is_spared is not None and self.is_spared():
            return WaitForecasts.none(len(moment.asked))
        forecasts, pace = self._forecast(moment, _ALL_S, self.turns, planned_s)
        self.drawn = 0 if pace is None else pace.run
        # A run for one job ends when it has started, and tells little.
        if pace is not None and pace.run and len(moment.asked) > 1:
            self._s_per_sample = pace.spent_s() / pace.run
        return forecasts

    def starts_at_once(self, moment: Moment) -> BoolArray:
        """Say which of the jobs asked about start by the scheduler's plan at once."""
        return np.asarray(~np.isnan(planned_waits(moment, NOW_S)))

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that are not in the queue, in less time."""
        return self._forecast(moment, _LET_GO_S)[0]

    def _forecast(
        self,
        moment: Moment,
        all_s: float,
        turns: Turns = NOBODY_WAITS,
        planned_s: Float64Array | None = None,
    ) -> tuple[WaitForecasts, _Budget | None]:
        kept = kept_by_limits(moment.snapshot)
        if self._knows_limits or not kept.any():
            return self._forecast_all(moment, all_s, turns, planned_s)
        free = ~kept[moment.asked - len(moment.snapshot.running)]
        some, pace = self._forecast_all(_without_kept(moment, kept, free), all_s, turns, None)
        answer = WaitForecasts.none(len(free))
        answer.wait_s[free], answer.starts_now[free] = some.wait_s, some.starts_now
        plans_s = np.full(len(free), np.nan)
        plans_s[free] = np.nan if some.planned_s is None else some.planned_s
        return replace(answer, planned_s=plans_s), pace

    def _forecast_all(
        self,
        moment: Moment,
        all_s: float,
        turns: Turns,
        planned_s: Float64Array | None,
    ) -> tuple[WaitForecasts, _Budget | None]:
        asked = len(moment.asked)
        samples = self.samples(len(moment.snapshot))
        if not samples:
            return WaitForecasts.none(asked), None
        if asked == 1:
            cheap = _DRAWN_FOR_ONE // len(moment.snapshot)
            samples = max(samples, min(cheap, _SAMPLES[0]))
        # Somebody waits for the answer about one job: on all cores, unless others need them.
        threads = usable_cores() if asked == 1 and not self.hurried else 1
        budget_s = _ONE_S if asked == 1 else all_s
        fewest = _FEWEST_OF_ONE if asked == 1 else 1
        pace = _Budget(budget_s / 4 if self.hurried else budget_s, threads, fewest, turns)
        forward = ForwardForecaster(
            self.name,
            self._models.runtimes,
            self._models.arrivals,
            samples=samples,
            threads=threads,
            pace=pace,
            newcomers=self._models.newcomers,
            now_within_s=self._now_within_s,
        )
        if planned_s is None:
            with turns.aside():
                planned_s = planned_waits(moment)
        return forward.beside_plan(moment, planned_s), pace

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._models.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Nothing is learned from a start: the policy is known."""

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._models.finished(job)
