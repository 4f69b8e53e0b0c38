"""How good models of later arrivals are, on a log, told of nothing but its past.

At moments drawn from a log's time every model draws what will be submitted in the next hours; how
many jobs came, and the work that they brought, is compared with that. Ours is measured by
independent arrivals, a Poisson process.

    python -m foretime_studies.waits.arrival_scores LOG --jobs 50000
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, HOUR_S
from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.waits.arrival_model import ArrivalSettings, ResampledArrivals
from foretime_sim.waits.forward_forecaster import LaterArrivals
from foretime_sim.waits.scores.wait_sources import LoggedWaits
from foretime_sim.waits.submission_history import NEVER_RAN, SubmissionHistory

from foretime_studies.frame.tables import Rows, study_table
from foretime_studies.waits.runtime_scores import Score, crps, logged_waits

_WEEK = 168  # hours


class PoissonArrivals:
    """Arrivals at the mean rate of their hour of the week, each like a past job that has ended."""

    def __init__(
        self,
        window_s: int,  # how far back is looked, seconds
    ) -> None:
        self._history = SubmissionHistory(window_s)

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission."""
        self._history.submitted(job)

    def finished(self, job: FinishedJob) -> None:
        """Learn from an end."""
        self._history.finished(job)

    def sample(
        self, now: int, until: int, samples: int, rng: np.random.Generator
    ) -> SampledArrivals:
        """Draw the jobs submitted after ``now``, and not after ``until``, in each sample."""
        none = np.zeros(0, dtype=np.int64)
        ended = np.flatnonzero(self._history.runtime > 0)
        if not len(ended) or until <= now:
            return SampledArrivals(none, none, none, none, none)
        hours = np.arange(now // HOUR_S, (until - 1) // HOUR_S + 1)
        begin = np.maximum(hours * HOUR_S, now)
        length = np.minimum((hours + 1) * HOUR_S, until) - begin
        expected = self._hourly(now)[hours % _WEEK] * length / HOUR_S
        count = rng.poisson(np.tile(expected, samples))
        sample = np.repeat(np.repeat(np.arange(samples), len(hours)), count)
        within = np.floor(rng.random(len(sample)) * np.repeat(np.tile(length, samples), count))
        submission = np.repeat(np.tile(begin, samples), count) + within.astype(np.int64) + 1
        job = rng.choice(ended, len(sample))
        return SampledArrivals(
            sample=sample,
            submit_time=submission,
            processors=self._history.processors[job],
            requested_time=self._history.requested_time[job],
            actual_runtime=self._history.runtime[job],
        )

    def _hourly(self, now: int) -> Float64Array:
        """Give the mean submissions in each hour of the week, shape (168,)."""
        ran = self._history.submit_time[self._history.runtime != NEVER_RAN]
        first = int(ran[0]) // HOUR_S
        seen = np.bincount(np.arange(first, now // HOUR_S + 1) % _WEEK, minlength=_WEEK)
        submitted = np.bincount(ran // HOUR_S % _WEEK, minlength=_WEEK)
        if not seen.all():  # less than a week is known
            return np.full(_WEEK, submitted.sum() / seen.sum())
        mean: Float64Array = submitted / seen
        return mean


HORIZONS_S = (HOUR_S, 6 * HOUR_S, 24 * HOUR_S)
MEASURES = ("jobs", "processor-seconds")


@dataclass
class ArrivalScore(Score):
    """How good one model was for one horizon and measure."""

    covered: int = 0  # outcomes in the central 90%


ArrivalScores = dict[tuple[int, str], ArrivalScore]
"""By horizon in seconds and measure."""


def score_arrivals(
    source: LoggedWaits,  # a fresh one
    models: Mapping[str, LaterArrivals],  # fresh ones, by name
    runtimes: RuntimeHistories,  # what they draw runtimes from; it is taught here
    *,
    moments: int = 500,  # at how many moments they are asked, drawn evenly from the log's time
    samples: int = 200,  # draws at each
    seed: int = 1,  # of moments and draws
    # Nothing is asked in so large a part of the log's time, the first one.
    settled_share: float = 0.15,
) -> dict[str, ArrivalScores]:
    """Go through a log once and score models of arrivals."""
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
    score: ArrivalScore, drawn: Float64Array, outcome: float, rng: np.random.Generator
) -> None:
    column, outcomes = drawn[:, np.newaxis], np.array([outcome])
    score.add_levels(column, outcomes, rng)
    low, high = np.quantile(drawn, [0.05, 0.95])
    score.covered += bool(low <= outcome <= high)
    score.crps += float(crps(column, outcomes)[0])
    score.outcomes += 1


@study_table("arrivals", "Later arrivals")
def arrival_table(scores: Mapping[str, ArrivalScores]) -> Rows:
    """Give the scores, shares in percent."""
    for measure, horizon in itertools.product(MEASURES, HORIZONS_S):
        for name, model in scores.items():
            score = model[horizon, measure]
            yield [
                ("within", f"{horizon // HOUR_S} h"),
                ("of", measure),
                ("model", name),
                *score.told(),
                ("90% interval covers", 100 * (score.covered / score.outcomes), ".0f"),
                ("CRPS", score.crps / score.outcomes, ",.3g"),
            ]


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the models on a log and print the table."""
    source, moments = logged_waits(arguments, "later arrivals", 500)
    runtimes = RuntimeHistories()
    models: dict[str, LaterArrivals] = {
        "poisson": PoissonArrivals(84 * DAY_S),
        "resampled": ResampledArrivals(runtimes, ArrivalSettings()),
    }
    scores = score_arrivals(source, models, runtimes, moments=moments)
    print(arrival_table(scores).to_markdown())


if __name__ == "__main__":
    main()
