"""Forecasts of the waits of a recorded live run, and how good they were.

``python -m tests.slurm.runs.forecast_trial looks-21.jsonl.gz ...`` makes a forecast of each job at
the first look that has it waiting, as the daemon would then: it has learned what ended until then.
It writes docs/live_forecasts.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_sidecar.clients.client import FinishedRecord
from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.queue.forecast_question import QueueMoment
from foretime_sidecar.queue.queue_events import QueueEvents
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.calibration import CalibratedForecaster
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.qbets import Qbets
from foretime_sim.waits.wait_scores import log10_s, pinball_loss

from tests.slurm.runs.recorded_looks import TakenLook, looks_of

_MOST_JOBS = 20_000
_BOUND = LEVELS.index(0.95)
WAYS = {"site": "the site's runs alone", "forward": "runs by `forecast.backfill` alone"}
"""Of those that are tried beside each other, before they are calibrated."""
LEARNED = 60
"""Jobs at the beginning of a run that are only learned from."""
PAGE = Path(__file__).resolve().parents[3] / "docs/live_forecasts.md"


@dataclass
class ReadSite:
    """A `foretime_sidecar.forecasts.site_runs.SiteKnowledge`: the site as it was last read."""

    site: SlurmSite | None = None
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
    """

    wait_s: Float64Array
    told: Mapping[str, Float64Array]
    trusted: float
    failures: Mapping[str, int]


def trial(looks: Sequence[TakenLook], records: Sequence[FinishedRecord]) -> Outcome:
    """Forecast each job of a run when it is first seen waiting."""
    known = ReadSite()
    served = CalibratedBest(_MOST_JOBS, known, math.inf)
    served.hurried = True  # a quarter of the samples
    past = CalibratedForecaster(Qbets(NOW_S), "past", now_within_s=NOW_S)
    overheard = {
        WAYS[way.name]: Overheard(way) for way in served._best._forecasters if way.name in WAYS
    }
    started = {
        record.job.request.job_id: record.job.start_time
        for record in records
        if record.job.start_time is not None
    }
    events, seen, left = QueueEvents(), set[str](), list(records)
    waits: list[int] = []
    told: dict[str, list[Float64Array]] = {
        name: [] for name in ("served", "past waits", *overheard)
    }
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
        answers = {"served": served.forecast(everybody), "past waits": past.forecast(everybody)}
        answers |= {name: way.said for name, way in overheard.items() if way.said is not None}
        spoke = served.basis(len(moment.requests)).site is not None
        trusted.append(spoke)
        if known.why_not:
            failures[known.why_not] = failures.get(known.why_not, 0) + 1
        for row, job_id in new:
            seen.add(job_id)
            waits.append(max(int(started[job_id] or 0) - now, 0))
            for name, answer in answers.items():
                told[name].append(answer.wait_s[row])
    judged = trusted[len(trusted) // 4 :]
    return Outcome(
        np.array(waits, dtype=np.float64),
        {name: np.array(rows) for name, rows in told.items()},
        float(np.mean(judged)) if judged else math.nan,
        failures,
    )


def rows_of(outcome: Outcome) -> Iterator[str]:
    """Give a row of the page's table for each way of forecasting."""
    wait = outcome.wait_s[LEARNED:]
    for name, all_told in outcome.told.items():
        told = all_told[LEARNED:]
        known = ~np.isnan(told[:, 0])
        held = np.mean(wait[known] <= told[known, _BOUND])
        seconds = pinball_loss(wait[known], told[known])
        log = pinball_loss(log10_s(wait[known]), log10_s(told[known]))
        yield (
            f"| {name} | {known.sum()} | {held:.1%} | {np.median(told[known, _BOUND]):.0f} "
            f"| {seconds.mean():.1f} | {log.mean():.4f} |"
        )


def _less(outcome: Outcome, scale: Callable[[Float64Array], Float64Array]) -> float:
    """Give the share by which the served forecasts lose less than past waits, on their jobs."""
    served, past = (outcome.told[name][LEARNED:] for name in ("served", "past waits"))
    known = ~np.isnan(served[:, 0]) & ~np.isnan(past[:, 0])
    wait = scale(outcome.wait_s[LEARNED:][known])
    lost = [float(pinball_loss(wait, scale(told[known])).mean()) for told in (served, past)]
    return 1 - lost[0] / lost[1]


def section(name: str, jobs: int, outcome: Outcome) -> Iterator[str]:
    """Give what came of a run as a part of the page."""
    yield f"## {name}"
    yield ""
    yield (
        f"{jobs} jobs, of which {len(outcome.wait_s)} were seen waiting,"
        f" {outcome.wait_s.mean():.0f} s in the mean. The site's runs had the word at"
        f" {outcome.trusted:.0%} of the looks."
        f" The served forecasts lose {_less(outcome, np.asarray):.0%} less than past waits in"
        f" seconds, {_less(outcome, log10_s):.0%} less in log10."
    )
    yield ""
    yield "| forecast | jobs | within the 95% bound | median bound, s | loss, s | loss, log10 |"
    yield "|---|---|---|---|---|---|"
    yield from rows_of(outcome)
    for why, count in outcome.failures.items():
        yield f"\nNot by the site at {count} looks: {why}."
    yield ""


_INTRODUCTION = f"""\
# Forecasts beside a live Slurm

`python -m tests.slurm.runs.recorded_looks FOLDER SEED` records a live Slurm 26.05 for half an hour;
`python -m tests.slurm.runs.forecast_trial FOLDER/*.jsonl.gz` makes the forecasts, and this page.

The cluster has ten nodes of ten CPUs, five users in three accounts, priorities of fair share
(half-life of 20 min), age, QOS and size, and limits: MaxJobsPU of a QOS, MaxTRESPU of another,
GrpJobs of a third, GrpTRES and GrpJobs of two accounts. Jobs of 10 s to 5 min come for 20 to 25
minutes, 1.2 times what the machine does. The queue is looked at every 10 s; the forecasters are
told what ended until then, and the site as it was read up to 2 min before. Each job is forecast at
the first look that has it waiting. The first {LEARNED} jobs of a run are only learned from.

- **served**: what the daemon says while the machine is busy: the best of all ways so far,
  calibrated.
- **past waits**: QBETS, calibrated in the same way.
- **alone**: before calibration. Nobody comes later in these runs, as two hours of submissions must
  be known for that; so they are too hopeful by themselves.
- **loss**: mean pinball loss over the levels, of the wait and of its log10 (at least a minute).

The goal: 93 to 97% of the waits are within the bound, and the loss is 30% below that of past waits.

"""


def main(paths: list[str]) -> None:
    """Write the page."""
    parts = []
    for path in paths:
        looks, records = looks_of(Path(path))
        name = Path(path).name.removesuffix(".jsonl.gz").replace("looks-", "Run ")
        parts += list(section(name, len(records), trial(looks, records)))
    PAGE.write_text(_INTRODUCTION + "\n".join(parts).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
