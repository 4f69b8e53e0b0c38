"""How good models of later arrivals are, on a log, told of nothing but its past.

At moments drawn from a log's time every model draws what will be submitted in the next hours; how
many jobs came, and the work that they brought, is compared with that.

    python -m foretime_studies.waits.arrival_scores LOG --jobs 50000
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.time_units import DAY_S, HOUR_S
from foretime_sim.waits.arrival_model import ArrivalSettings, ResampledArrivals
from foretime_sim.waits.forward_forecaster import LaterArrivals
from foretime_sim.waits.scores.wait_sources import LoggedWaits

from foretime_studies.frame.tables import Row, StudyTable
from foretime_studies.waits.plain_arrivals import PoissonArrivals
from foretime_studies.waits.runtime_scores import Levels, crps, logged_waits

HORIZONS_S = (HOUR_S, 6 * HOUR_S, 24 * HOUR_S)
MEASURES = ("jobs", "processor-seconds")


@dataclass
class ArrivalScore:
    """How good one model was for one horizon and measure.

    Attributes
    ----------
    levels
        Where outcomes lay in their forecasts.
    covered
        Whether each lay in the central 90%.
    crps
        Sum of the continuous ranked probability scores.
    """

    levels: Levels = field(default_factory=Levels)
    covered: list[bool] = field(default_factory=list)
    crps: float = 0.0


ArrivalScores = dict[tuple[int, str], ArrivalScore]
"""By horizon in seconds and measure."""


def score_arrivals(
    source: LoggedWaits,
    models: Mapping[str, LaterArrivals],
    runtimes: RuntimeHistories,
    *,
    moments: int = 500,
    samples: int = 200,
    seed: int = 1,
    settled_share: float = 0.15,
) -> dict[str, ArrivalScores]:
    """Go through a log once and score models of arrivals.

    Parameters
    ----------
    source
        A fresh one.
    models
        Fresh ones, by name.
    runtimes
        What they draw runtimes from; it is taught here.
    moments
        At how many moments they are asked, drawn evenly from the log's time.
    samples
        Draws at each.
    seed
        Of moments and draws.
    settled_share
        Nothing is asked in so large a part of the log's time, the first one.
    """
    workload = source.workload
    rng = np.random.default_rng(seed)
    submit = workload.submit_time
    first, last = int(submit[0]), int(submit[-1]) - max(HORIZONS_S)
    asked = np.sort(rng.integers(first + int((last - first) * settled_share), last, moments))
    work = workload.processors * workload.actual_runtime
    scores: dict[str, ArrivalScores] = {
        name: {(horizon, measure): ArrivalScore() for horizon in HORIZONS_S for measure in MEASURES}
        for name in models
    }
    submitted = 0
    for now in asked.tolist():
        while submitted < len(workload) and submit[submitted] <= now:
            _tell(source, int(submit[submitted]), models, runtimes)
            source.submit(submitted)
            for model in models.values():
                model.submitted(source.requests[submitted])
            submitted += 1
        _tell(source, now, models, runtimes)
        for name, model in models.items():
            drawn = model.sample(now, now + max(HORIZONS_S), samples, rng)
            brought = drawn.processors * drawn.actual_runtime
            for horizon in HORIZONS_S:
                within = drawn.submit_time <= now + horizon
                end = np.searchsorted(submit, now + horizon, side="right")
                for measure, each, outcome in (
                    (MEASURES[0], None, end - submitted),
                    (MEASURES[1], brought[within], work[submitted:end].sum()),
                ):
                    total = np.bincount(drawn.sample[within], each, samples).astype(np.float64)
                    _score(scores[name][horizon, measure], total, float(outcome), rng)
    return scores


def _tell(
    source: LoggedWaits, now: int, models: Mapping[str, LaterArrivals], runtimes: RuntimeHistories
) -> None:
    for event in source.advance(now):
        if not event.is_start:
            job = source.finished(event.job)
            runtimes.learn_one(job)
            for model in models.values():
                model.finished(job)


def _score(
    score: ArrivalScore,
    drawn: np.ndarray[tuple[int], np.dtype[np.float64]],
    outcome: float,
    rng: np.random.Generator,
) -> None:
    column, outcomes = drawn[:, np.newaxis], np.array([outcome])
    score.levels.add(column, outcomes, rng)
    low, high = np.quantile(drawn, [0.05, 0.95])
    score.covered.append(bool(low <= outcome <= high))
    score.crps += float(crps(column, outcomes)[0])


def arrival_table(scores: Mapping[str, ArrivalScores]) -> str:
    """Write scores as Markdown, shares in percent."""
    rows: list[Row] = []
    for measure, horizon in itertools.product(MEASURES, HORIZONS_S):
        for name, model in scores.items():
            score = model[horizon, measure]
            rows.append(
                [
                    ("within", f"{horizon // HOUR_S} h"),
                    ("of", measure),
                    ("model", name),
                    *score.levels.told(),
                    ("90% interval covers", 100 * float(np.mean(score.covered)), ".0f"),
                    ("CRPS", score.crps / len(score.covered), ",.3g"),
                ]
            )
    return StudyTable.of("arrivals", "Later arrivals", rows).to_markdown()


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the models on a log and print the table."""
    source, moments = logged_waits(arguments, "later arrivals", 500)
    runtimes = RuntimeHistories()
    models: dict[str, LaterArrivals] = {
        "poisson": PoissonArrivals(84 * DAY_S),
        "resampled": ResampledArrivals(runtimes, ArrivalSettings()),
    }
    print(arrival_table(score_arrivals(source, models, runtimes, moments=moments)))


if __name__ == "__main__":
    main()
