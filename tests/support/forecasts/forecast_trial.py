"""Forecasts made of a run, look by look as the daemon makes them, and how good they were."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sidecar.clients.client import FinishedRecord
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.queue.queue_events import QueueEvents
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.wait_scores import log10_s, pinball_loss

_MOST_JOBS = 20_000
_LIKELY, _BOUND = LEVELS.index(0.5), LEVELS.index(0.95)
_SCORED = 0.8
"""Of the jobs seen waiting: up to there."""
SERVED, PAST = "served", "past waits"
WAYS = {"site": "the site's runs alone", "forward": "runs by `forecast.backfill` alone"}
"""Of those that are tried beside each other, before they are calibrated."""
HEADER = (
    "| forecast | jobs | within the 95% bound | or a minute | median bound, s | loss, s "
    "| loss, log10 |\n"
    "|---|---|---|---|---|---|---|"
)
BESIDE_HEADER = (
    "| likely start by | jobs | mean absolute error, s | median absolute error, s "
    "| jobs that started sooner than said | off in the mean, s |\n"
    "|---|---|---|---|---|---|"
)
WORDS = """\
- **served**: what the daemon says: the best of all ways so far, calibrated.
- **past waits**: QBETS, calibrated in the same way.
- **alone**: before calibration.
- **within the 95% bound**: this share of the jobs waited no longer than that; **or a minute**: or
  started within a minute, which a forecast of "at once" stands for.
- **loss**: mean pinball loss over the levels, of the wait and of its log10 (at least a minute).

The last fifth of the jobs is forecast, but does not count: nobody comes after them, which a
forecaster can't know.

The goal: 93 to 97% of the waits are within the bound, and the loss is 30% below that of past waits.
"""
"""What the tables' words mean."""


@dataclass(frozen=True, slots=True)
class TakenLook:
    """One of a run's looks.

    Attributes
    ----------
    look
        The queue.
    site
        As it was last read.
    """

    look: Look
    site: SlurmSite | PbsSite


@dataclass
class ReadSite:
    """A `foretime_sidecar.forecasts.site_runs.SiteKnowledge`: the site as it was last read."""

    site: SlurmSite | PbsSite | None = None
    why_not: str = ""
    read_at: int | None = None

    def note_runs(self, why_not: str) -> None:
        """Keep why the queue was not run forward."""
        self.why_not = why_not


class Overheard:
    """Keeps what a forecaster said last.

    Parameters
    ----------
    of
        The forecaster.
    """

    def __init__(self, of: WaitForecaster) -> None:
        self.said: WaitForecasts | None = None
        self._forecast = of.forecast
        of.forecast = self.forecast  # type: ignore[method-assign]

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Ask it."""
        self.said = self._forecast(moment)
        return self.said


@dataclass(frozen=True, slots=True)
class BesidePlan:
    """A job's forecast beside the scheduler's own plan, at the first look that has both.

    Attributes
    ----------
    place
        Of the job among those seen waiting.
    wait_s
        From that look to the start, seconds.
    planned_s, likely_s
        What the scheduler planned, and the likely wait that was served.
    """

    place: int
    wait_s: float
    planned_s: float
    likely_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run.

    Attributes
    ----------
    wait_s
        From the forecast to the start, of each job, seconds.
    told
        What each forecaster said, shape (jobs, levels), NaN where nothing.
    trusted
        Share of the looks, once there was something to judge by, at which the site's runs had the
        word.
    failures
        Why the site's runs gave no answer, at how many looks.
    beside
        Of jobs whose start the scheduler planned itself.
    """

    wait_s: Float64Array
    told: Mapping[str, Float64Array]
    trusted: float
    failures: Mapping[str, int]
    beside: Sequence[BesidePlan] = ()

    def scored(self, learned: int) -> Outcome:
        """Give the jobs that count: neither the first, nor the last fifth of those seen waiting.

        From the first is learned. After the last nobody is submitted, of which no forecaster knows.
        """
        some = slice(learned, int(_SCORED * len(self.wait_s)))
        told = {name: rows[some] for name, rows in self.told.items()}
        beside = [each for each in self.beside if some.start <= each.place < some.stop]
        return replace(self, wait_s=self.wait_s[some], told=told, beside=beside)

    def less_loss(self, scale: Callable[[Float64Array], Float64Array]) -> float:
        """Give the share by which the served forecasts lose less than past waits, on their jobs.

        Parameters
        ----------
        scale
            What the loss is of: of seconds, or of their logarithm.
        """
        served, past = (self.told[name] for name in (SERVED, PAST))
        known = ~np.isnan(served[:, 0]) & ~np.isnan(past[:, 0])
        wait = scale(self.wait_s[known])
        lost = [float(pinball_loss(wait, scale(told[known])).mean()) for told in (served, past)]
        return 1 - lost[0] / lost[1]


def trial(
    looks: Iterable[TakenLook], records: Sequence[FinishedRecord], *, hurried: bool = False
) -> Outcome:
    """Forecast each job of a run when it is first seen waiting.

    Parameters
    ----------
    looks
        In the order of time.
    records
        The run's jobs, as accounting had them in the end. A look knows of those that had ended.
    hurried
        Whether with a quarter of the samples, as on a busy machine.
    """
    known = ReadSite()
    served = CalibratedBest(_MOST_JOBS, known, unhurried=True)
    served.hurried = hurried
    past = CalibratedForecaster(Qbets(NOW_S), "past", now_within_s=NOW_S)
    overheard = {
        WAYS[way.name]: Overheard(way) for way in served._best._forecasters if way.name in WAYS
    }
    started = {
        record.job.request.job_id: record.job.start_time
        for record in records
        if record.job.start_time is not None
    }
    events, seen, left = QueueEvents(), dict[str, int](), list(records)
    beside: dict[str, BesidePlan] = {}
    waits: list[int] = []
    told: dict[str, list[Float64Array]] = {name: [] for name in (SERVED, PAST, *overheard)}
    trusted: list[bool] = []
    failures: dict[str, int] = {}
    for taken in looks:
        now, known.site = taken.look.taken_at, taken.site
        ended = [record.job for record in left if record.job.end_time < now]
        left = [record for record in left if record.job.end_time >= now]
        for event in events.since_last(taken.look, ended):
            event.tell_waits(served)
            event.tell_waits(past)
        moment = QueueMoment.of(taken.look, ForecastSettings(), knows_limits=True)
        everybody = moment.everybody()
        new = [
            (row, job_id)
            for row, column in enumerate(everybody.asked.tolist())
            if (job_id := everybody.requests[column].job_id) not in seen and job_id in started
        ]
        if not new:
            continue
        answers = {SERVED: served.forecast(everybody), PAST: past.forecast(everybody)}
        answers |= {name: way.said for name, way in overheard.items() if way.said is not None}
        trusted.append(served.basis(len(moment.requests)).site is not None)
        if known.why_not:
            failures[known.why_not] = failures.get(known.why_not, 0) + 1
        for row, job_id in new:
            seen[job_id] = len(seen)
            waits.append(max(int(started[job_id] or 0) - now, 0))
            for name, answer in answers.items():
                told[name].append(answer.wait_s[row])
        for row, column in enumerate(everybody.asked.tolist()):
            job_id, planned_at = everybody.requests[column].job_id, _planned_start(moment, column)
            likely_s = answers[SERVED].wait_s[row, _LIKELY]
            if planned_at is None or job_id in beside or job_id not in seen or np.isnan(likely_s):
                continue
            wait_s = max(int(started[job_id] or 0) - now, 0)
            beside[job_id] = BesidePlan(seen[job_id], wait_s, planned_at - now, float(likely_s))
    judged = trusted[len(trusted) // 4 :]
    return Outcome(
        np.array(waits, dtype=np.float64),
        {name: np.array(rows) for name, rows in told.items()},
        float(np.mean(judged)) if judged else math.nan,
        failures,
        list(beside.values()),
    )


def _planned_start(moment: QueueMoment, column: int) -> int | None:
    """Give when the scheduler itself plans to start a job; of an array it plans the next task."""
    job = moment.taken.jobs[column]
    is_next = column == moment.first_pending or moment.taken.jobs[column - 1] is not job
    if not is_next or job.planned_start is None:
        return None
    return max(job.planned_start, moment.look.taken_at)


def rows_of(outcome: Outcome) -> Iterator[str]:
    """Give a row of a page's table for each way of forecasting."""
    wait = outcome.wait_s
    for name, told in outcome.told.items():
        known = ~np.isnan(told[:, 0])
        bound = told[known, _BOUND]
        held, nearly = (
            np.mean(wait[known] <= np.maximum(bound, at_once)) for at_once in (0, NOW_S)
        )
        seconds = pinball_loss(wait[known], told[known])
        log = pinball_loss(log10_s(wait[known]), log10_s(told[known]))
        yield (
            f"| {name} | {known.sum()} | {held:.1%} | {nearly:.1%} | {np.median(bound):.0f} "
            f"| {seconds.mean():.1f} | {log.mean():.4f} |"
        )


def beside_rows(beside: Sequence[BesidePlan]) -> Iterator[str]:
    """Give a row for the scheduler's own plan, and one for the likely wait that was served."""
    wait = np.array([each.wait_s for each in beside])
    for name, said in (
        ("`squeue --start`", np.array([each.planned_s for each in beside])),
        (SERVED, np.array([each.likely_s for each in beside])),
    ):
        error = said - wait
        yield (
            f"| {name} | {len(wait)} | {np.abs(error).mean():.0f} | {np.median(np.abs(error)):.0f} "
            f"| {np.mean(error > 0):.0%} | {error.mean():+.0f} |"
        )


def section(name: str, jobs: int, outcome: Outcome, learned: int) -> Iterator[str]:
    """Give what came of a run of so many jobs as a part of a page; from the first is learned."""
    scored = outcome.scored(learned)
    yield f"## {name}"
    yield ""
    yield (
        f"{jobs} jobs, of which {len(outcome.wait_s)} were seen waiting,"
        f" {outcome.wait_s.mean():.0f} s in the mean.\n"
        f"The site's runs had the word at {outcome.trusted:.0%} of the looks.\n"
        f"The served forecasts lose {scored.less_loss(np.asarray):.0%} less than past waits in"
        f" seconds, {scored.less_loss(log10_s):.0%} less in log10."
    )
    yield ""
    yield HEADER
    yield from rows_of(scored)
    if scored.beside:
        yield f"\n{BESIDE_HEADER}"
        yield from beside_rows(scored.beside)
    for why, count in outcome.failures.items():
        yield f"\nNot by the site at {count} looks: {why}."
    yield ""
