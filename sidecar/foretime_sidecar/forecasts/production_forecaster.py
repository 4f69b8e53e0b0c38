"""The forecaster that the daemon serves: the best of several of late, calibrated, never silent.

The queue is run forward as the site's own Slurm or PBS schedules, where that is known, and by the
settings' policy. Beside that stand what waits have been lately (QBETS), what can be learned of them
if the extra ``learn`` is installed, and, before there is anything else, how long the work before a
job lasts. The daemon learns whose word has come true.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.best_of import BestOf, ChoiceSettings
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.calibration.runtime_levels import RuntimeLevels
from foretime_sim.waits.forecaster import WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.turns import NOBODY_WAITS, Turns

from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S, ForecastLadder, SampleModels
from foretime_sidecar.forecasts.dependent_waits import DependentWaits
from foretime_sidecar.forecasts.fallback_forecaster import Backlog
from foretime_sidecar.forecasts.learned_waits import LearnedWaits, can_learn_waits
from foretime_sidecar.forecasts.site_runs import SiteKnowledge, SiteRuns
from foretime_sidecar.wording.counts import counted


@dataclass(frozen=True, slots=True)
class Basis:
    """What forecasts stand on.

    Attributes
    ----------
    texts
        In words.
    runs_queue
        Whether the queue was run forward by the settings' policy, so that it matters what is
        assumed of the scheduler.
    site
        The site as whose scheduler it was run forward; ``None``: it was not.
    leaves_out
        What of the queue that did not know, in words.
    """

    texts: tuple[str, ...]
    runs_queue: bool
    site: SlurmSite | PbsSite | None = None
    leaves_out: tuple[str, ...] = ()


_WORDS = {
    Qbets.name: "the forecast is made from recent waits of jobs of similar size and time limit",
    LearnedWaits.name: "the forecast is made from this site's waits at similar moments",
    Backlog.name: "no waits are known yet, so the forecast counts what runs and what is ahead in "
    "the queue",
}


_CHOICE = ChoiceSettings(fewest=100)
_SITE_KNOWN = ChoiceSettings(fewest=100, fewest_days=5, sureness=2)
"""Running the queue forward as its scheduler does has the word unless another is surely better."""


class CalibratedBest:
    """A `foretime_sidecar.forecasts.wait_forecasting.ServedForecaster`.

    Parameters
    ----------
    most_jobs
        As for `ForecastLadder`.
    known
        Who knows the site that the scheduler is set up as; ``None``: nobody does.
    unhurried
        As for `SiteRuns`.
    """

    name = "foretime"
    oracle = False

    def __init__(
        self, most_jobs: int, known: SiteKnowledge | None = None, *, unhurried: bool = False
    ) -> None:
        self._most_jobs = most_jobs
        self._known = known
        self._unhurried = unhurried
        self._turns: Turns = NOBODY_WAITS
        self.forget()

    def forget(self) -> None:
        """Begin anew, as at a start."""
        models = self._models = SampleModels()
        self._runtime_levels = RuntimeLevels()
        self._ladder = ForecastLadder(self._most_jobs, models)
        self._site_runs: SiteRuns | None = None
        past_waits: list[WaitForecaster] = [Qbets(NOW_S)]
        if can_learn_waits():
            past_waits.append(LearnedWaits(NOW_S))
        forecasters: list[WaitForecaster] = [
            self._ladder,
            *(DependentWaits(each, self.runtimes) for each in past_waits),
        ]
        if self._known is not None:
            self._site_runs = SiteRuns(
                self._known, self._most_jobs, models, unhurried=self._unhurried
            )
            forecasters.insert(0, self._site_runs)
            runs = self._site_runs
            self._ladder.is_spared = lambda: runs.is_slow
        self._best = BestOf(
            [*forecasters, Backlog()], "best", _CHOICE if self._known is None else _SITE_KNOWN
        )
        self._calibrated = CalibratedForecaster(self._best, self.name, now_within_s=NOW_S)
        self.turns = self._turns

    @property
    def hurried(self) -> bool:
        """Whether less work must do, as the machine has other."""
        return self._ladder.hurried

    @hurried.setter
    def hurried(self, hurried: bool) -> None:
        self._ladder.hurried = hurried
        if self._site_runs is not None:
            self._site_runs.hurried = hurried

    @property
    def turns(self) -> Turns:
        """Of those who wait while the whole queue is forecast."""
        return self._turns

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._turns = self._ladder.turns = turns
        self._best.turns = self._calibrated.turns = turns
        if self._site_runs is not None:
            self._site_runs.turns = turns

    @property
    def knows_limits(self) -> bool:
        """Whether it can say when limits let jobs start: the site is known."""
        return self._known is not None and self._known.site is not None

    def basis(self, jobs: int) -> Basis:
        """Say what the last forecasts stand on, which were of a queue of so many jobs."""
        spoke = self._best.spoke or (self._best.ranked()[0].name,)  # nobody waits: what ifs
        runs_queue = self._ladder.name in spoke
        site: SlurmSite | PbsSite | None = None
        leaves_out: tuple[str, ...] = ()
        if self._site_runs is not None and self._site_runs.name in spoke:
            site, leaves_out = self._site_runs.ran, self._site_runs.leaves_out
        texts = list(dict.fromkeys(self._words(name, jobs) for name in spoke))
        if not self._ladder.samples(jobs):
            texts.append(
                f"the queue has {jobs:,} jobs, more than are simulated (forecast.most_jobs = "
                f"{self._most_jobs:,})"
            )
        elif not runs_queue and site is None:
            texts.append("this has lately been better here than a simulation of the queue")
        return Basis(tuple(texts), runs_queue, site, leaves_out)

    def _words(self, name: str, jobs: int) -> str:
        runs = self._site_runs
        if name == self._ladder.name or (runs is not None and name == runs.name):
            drawn = self._ladder.drawn if runs is None or name != runs.name else runs.drawn
            drawn = drawn or self._ladder.samples(jobs)  # of what ifs, nobody waiting
            return (
                "jobs are expected to run as long as similar jobs have, and new jobs to come as in "
                f"past weeks (up to {counted(drawn, 'random draw')})"
            )
        return _WORDS[name]

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        return self._calibrated.forecast(moment)

    def consider(self, moment: Moment) -> WaitForecasts:
        """Forecast jobs that are not in the queue as the moment has it; nothing is kept of it."""
        return self._calibrated.consider(moment)

    @property
    def _runs(self) -> SiteRuns | ForecastLadder:
        """What runs the queue forward."""
        if self._site_runs is not None and self._site_runs.ran is not None:
            return self._site_runs
        return self._ladder

    @property
    def is_quick_for_one(self) -> bool:
        """Whether a question about one job is answered while somebody waits."""
        runs_the_queue = self._best.spoke[:1] == (self._runs.name,)
        return not runs_the_queue or self._runs.is_quick_for_one()

    def starts_at_once(self, moment: Moment) -> bool:
        """Say whether the job asked about starts at once by the scheduler's plan."""
        return bool(self._runs.starts_at_once(moment).all())

    def runtimes(
        self, jobs: Sequence[JobRequest], age: Int64Array, levels: Sequence[float]
    ) -> Float64Array:
        """Give quantiles of how long jobs run in all, of levels that have come true as often."""
        levels = self._runtime_levels.calibrated(levels)
        return self._models.histories.quantiles(jobs, age, levels)

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._calibrated.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn from a start."""
        self._calibrated.started(job, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._runtime_levels.judge(job, self._models.histories)
        self._calibrated.finished(job)

    def state(self) -> dict[str, Any]:
        """Give what was learned of forecasts, as JSON can hold it; the rest is learned again."""
        return {"calibration": self._calibrated.state(), "choice": self._best.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; what can't be used begins anew.

        Raises
        ------
        StateError
            Saying what begins anew, and why.
        """
        failed = []
        for part, model in (("calibration", self._calibrated), ("choice", self._best)):
            try:
                model.restore(state[part])
            except (StateError, LookupError, TypeError, ValueError) as error:
                failed.append(
                    f"{part}: {error!r}" if isinstance(error, LookupError) else f"{error}"
                )
        if failed:
            raise StateError("; ".join(failed))
