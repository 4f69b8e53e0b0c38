"""The queue run forward as the site's own scheduler does, where that is known and quick enough."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from dataclasses import dataclass, replace
from typing import Protocol

from foretime_estimators.arrays import BoolArray, Float64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import WaitForecasts
from foretime_sim.waits.forward_forecaster import planned_waits
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.turns import Turns

from foretime_sidecar.forecasts.adaptive_forward_runs import (
    FEWEST,
    NOW_S,
    ForecastLadder,
    SampleModels,
)
from foretime_sidecar.forecasts.pbs_moment import under_pbs
from foretime_sidecar.forecasts.slurm_moment import under_slurm

logger = logging.getLogger("foretime")

_TRIED_AGAIN_S = 1800
_SHORTER = 0.7
"""A queue so much shorter than one that took too long is tried before that."""
_ENOUGH = 50
"""Samples that must fit into the time, or the queue is run coarsely."""
_COARSE_S = 0.1
"""A run that takes longer even coarsely is not tried in any other way: that takes ten times as
long."""
COARSELY = (
    "the queue is long, so its simulation plans 30 jobs of each partition at a time, and less often"
    " for later hours"
)


class SiteKnowledge(Protocol):
    """Who knows the site; `foretime_sidecar.site_import.kept_site.KeptSite`."""

    @property
    def site(self) -> SlurmSite | PbsSite | None:
        """As it is known now; ``None``: it is not, or can't be simulated."""
        ...

    @property
    def read_at(self) -> int | None:
        """When that was so, epoch seconds; ``None``: at any time."""
        ...

    def note_runs(self, why_not: str) -> None:
        """Take note why the queue was not run forward as the site schedules; "": it was."""
        ...


@dataclass(frozen=True, slots=True)
class _Trial:
    """How a first run of a queue went.

    Attributes
    ----------
    too_slow
        Why the queue is not run forward so; "": it is.
    planned_s
        What `planned_waits` gives; ``None`` if it is too slow.
    coarse
        Whether runs are to be coarse.
    """

    too_slow: str
    planned_s: Float64Array | None = None
    coarse: bool = False


class SiteRuns:
    """A `foretime_sim.waits.forecaster.WaitForecaster`; without a site it has no answer.

    What goes wrong with a site is said, and costs its answers alone: others forecast beside it.

    Parameters
    ----------
    known
        The site.
    most_jobs
        As for `ForecastLadder`.
    models
        Taught by their owner.
    unhurried
        Whether runs may take as long as they take, as in a replay.

    Attributes
    ----------
    hurried, drawn
        As of `ForecastLadder`.
    ran
        The site by which the last forecast of the queue was made; ``None``: there was none.
    leaves_out
        What of the queue that forecast did not know, in words.
    """

    name = "site"
    oracle = False

    def __init__(
        self,
        known: SiteKnowledge,
        most_jobs: int,
        models: SampleModels,
        *,
        unhurried: bool = False,
    ) -> None:
        self.ran: SlurmSite | PbsSite | None = None
        self.leaves_out: tuple[str, ...] = ()
        self._known = known
        self._ladder = ForecastLadder(most_jobs, models, NOW_S, knows_limits=True)
        self._unhurried = unhurried
        self._slow: tuple[int, int, str] | None = None  # jobs, when, and what was said
        self._coarse = False
        self._said = ""

    @property
    def hurried(self) -> bool:
        """Whether less work must do, as the machine has other."""
        return self._ladder.hurried

    @hurried.setter
    def hurried(self, hurried: bool) -> None:
        self._ladder.hurried = hurried

    @property
    def drawn(self) -> int:
        """Samples that the last forecast of the queue was made of."""
        return self._ladder.drawn

    def starts_at_once(self, moment: Moment) -> BoolArray:
        """As of `ForecastLadder`, if the queue itself was forecast by the site's rules."""
        if self.ran is None:
            raise InputError("the queue is not run forward as this site schedules")
        by_site, _ = as_site(moment, self.ran, self._known.read_at)
        return self._ladder.starts_at_once(coarsely(by_site) if self._coarse else by_site)

    @property
    def is_slow(self) -> bool:
        """Whether a forecast of the queue takes so long that no other run of it has time, too."""
        return self.ran is not None and not self.is_quick_for_one()

    def is_quick_for_one(self) -> bool:
        """As of `ForecastLadder`."""
        return self._ladder.is_quick_for_one()

    @property
    def turns(self) -> Turns:
        """As of `ForecastLadder`."""
        return self._ladder.turns

    @turns.setter
    def turns(self, turns: Turns) -> None:
        self._ladder.turns = turns

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait.

        Until that is done questions are answered as they were before.
        """
        site, ran = self._known.site, None
        why_not, answer = "", WaitForecasts.none(len(moment.asked))
        if site is not None:
            try:
                by_site, leaves_out = as_site(moment, site, self._known.read_at)
                trial = self._tried(by_site)
                why_not = trial.too_slow
                if not why_not:
                    if trial.coarse:
                        by_site, leaves_out = coarsely(by_site), (*leaves_out, COARSELY)
                    answer = self._ladder.forecast(by_site, trial.planned_s)
                    ran, self.leaves_out, self._coarse = site, leaves_out, trial.coarse
            except Exception as error:  # noqa: BLE001 - a mistake must not cost all forecasts
                why_not = f"{error}" if isinstance(error, InputError) else repr(error)
            self._note(why_not)
        self.ran = ran
        return answer

    def consider(self, moment: Moment) -> WaitForecasts:
        """Forecast jobs that are not in the queue, if the queue itself was forecast so."""
        if self.ran is None:
            return WaitForecasts.none(len(moment.asked))
        try:
            by_site, _ = as_site(moment, self.ran, self._known.read_at)
            return self._ladder.consider(coarsely(by_site) if self._coarse else by_site)
        except Exception as error:  # noqa: BLE001 - as above
            self._note(f"a job that is not in the queue: {error}")
            return WaitForecasts.none(len(moment.asked))

    def _tried(self, moment: Moment) -> _Trial:
        """Run the queue with all that jobs ask for, and say how that went.

        Under Slurm coarsely first: that also tells whether the queue is to be run so.
        """
        jobs, now = len(moment.snapshot), moment.now
        if self._slow is not None:
            slow_jobs, since, said = self._slow
            if jobs > _SHORTER * slow_jobs and 0 <= now - since < _TRIED_AGAIN_S:
                return _Trial(said)
        coarse = isinstance(moment.policy.backfill, Slurm)
        longest_s = self._ladder.longest_plan_s(FEWEST)
        try:
            began = time.thread_time()
            most_s = math.inf if self._unhurried else longest_s
            trial = _Trial("", self._plan(coarsely(moment) if coarse else moment, most_s), coarse)
            if coarse and time.thread_time() - began <= _COARSE_S:
                with contextlib.suppress(TimeoutError):
                    planned_s = self._plan(moment, self._ladder.longest_plan_s(_ENOUGH))
                    trial = _Trial("", planned_s)
        except TimeoutError:
            trial = _Trial(f"a run of {jobs:,} jobs takes longer than {longest_s:.2g} s")
        self._slow = (jobs, now, trial.too_slow) if trial.too_slow else None
        return trial

    def _plan(self, moment: Moment, most_cpu_s: float) -> Float64Array:
        with self.turns.aside():
            return planned_waits(moment, most_cpu_s=most_cpu_s)

    def _note(self, why_not: str) -> None:
        self._known.note_runs(why_not)
        if why_not and why_not != self._said:
            logger.warning("the queue is not run forward as this site schedules: %s", why_not)
        self._said = why_not

    def submitted(self, job: JobRequest) -> None:
        """Learn nothing: the models have a teacher."""

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn nothing."""

    def finished(self, job: FinishedJob) -> None:
        """Learn nothing: the models have a teacher."""


def coarsely(moment: Moment) -> Moment:
    """Give a moment under a Slurm whose runs are coarse, as long queues want it."""
    slurm = moment.policy.backfill
    if not isinstance(slurm, Slurm):
        return moment
    return replace(moment, policy=replace(moment.policy, backfill=replace(slurm, coarse=True)))


def as_site(
    moment: Moment, site: SlurmSite | PbsSite, read_at: int | None = None
) -> tuple[Moment, tuple[str, ...]]:
    """Give a moment under the site's own scheduler, and what of the queue that does not know.

    Parameters
    ----------
    moment
        As the scheduler tells of it.
    site
        How the scheduler is set up.
    read_at
        When that was so, epoch seconds; ``None``: now.

    Raises
    ------
    InputError
        If nodes, or what jobs ask of them, are not known.
    """
    if isinstance(site, PbsSite):
        return under_pbs(moment, site, read_at)
    return under_slurm(moment, site), ()
