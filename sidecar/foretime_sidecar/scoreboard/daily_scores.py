"""Scores of estimators, kept as sums by day, so that old jobs fade and days can be drawn anew.

A job counts on the day (UTC) on which it ended. A day's jobs lose half their weight in a half-life,
and are dropped when hardly any is left. Jobs of one day depend on each other, so intervals come
from a bootstrap that draws whole days (Künsch 1989), and estimators are compared on the same draws.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.estimators.prediction_scores import MEASURES, measured
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.wording.durations import format_duration

LEAST_WEIGHT = 0.01
"""Of a day, below which it is dropped."""
SIZES = (1, 16, 128)
"""Upper bounds of the classes of processors; one more lies above."""
EXPERIENCES = (10, 100)
"""Finished jobs that a user must have for the second and the third class of users."""
FEWEST_DAYS = 14
"""Days that a bootstrap needs; with fewer no interval is given."""
_RESAMPLES = 2_000


@dataclass(frozen=True, slots=True)
class JobClass:
    """A class of jobs.

    Attributes
    ----------
    kind
        ``all``, ``requested_time``, ``processors`` or ``user`` (how many of the user's jobs had
        ended at the submission).
    label
        Which jobs are in it, in words.
    """

    kind: str
    label: str


class JobClasses:
    """The classes that scores are told for; a job is in one of each kind.

    Parameters
    ----------
    time_bounds_s
        Ascending upper bounds of the classes of requested time, seconds; one more lies above.
    """

    def __init__(self, time_bounds_s: Sequence[int]) -> None:
        self.time_bounds_s = tuple(time_bounds_s)
        times = [format_duration(bound) for bound in self.time_bounds_s]
        sizes = [str(bound) for bound in SIZES]
        users = [str(bound - 1) for bound in EXPERIENCES]
        self._kinds = (
            ("requested_time", self.time_bounds_s, times, ""),
            ("processors", SIZES, sizes, ""),
            ("user", tuple(bound - 1 for bound in EXPERIENCES), users, " finished jobs"),
        )
        found = [JobClass("all", "all jobs")]
        for kind, bounds, words, unit in self._kinds:
            found += [JobClass(kind, f"up to {word}{unit}") for word in words]
            found.append(JobClass(kind, f"more than {words[-1]}{unit}" if bounds else "any"))
        self.classes = tuple(found)

    def of(self, job: JobRequest, finished_before: int) -> Int64Array:
        """Give in which classes a job is, as places in ``classes``.

        ``finished_before``: how many of its user's jobs had ended at its submission.
        """
        places, first = [0], 1
        values = job.requested_time, job.processors, finished_before
        for value, (_, bounds, _, _) in zip(values, self._kinds, strict=True):
            places.append(first + bisect_left(bounds, value))
            first += len(bounds) + 1
        return np.array(places)


class DailyScores:
    """Sums of `foretime_estimators.estimators.prediction_scores.MEASURES` for several estimators.

    Parameters
    ----------
    estimators
        How many.
    classes
        Of jobs.
    half_life_s
        In which jobs lose half their weight, seconds.
    """

    def __init__(self, estimators: int, classes: JobClasses, half_life_s: int) -> None:
        self.classes = classes
        self.half_life_s = half_life_s
        self._shape = len(classes.classes), estimators, len(MEASURES)
        self._days: dict[int, Float64Array] = {}

    def add(self, job: FinishedJob, predicted: Int64Array, finished_before: int) -> None:
        """Score a job that has ended.

        Parameters
        ----------
        job
            As it ended.
        predicted
            Seconds, by estimator; 0 where it had predicted nothing.
        finished_before
            As for `JobClasses.of`.
        """
        added = measured(predicted, job)
        if not added.any():
            return
        day = job.end_time // DAY_S
        if day not in self._days:
            self._days[day] = np.zeros(self._shape)
        self._days[day][self.classes.of(job.request, finished_before)] += added

    def drop_old(self, now: int) -> None:
        """Drop the days that count for hardly anything as of ``now``, epoch seconds."""
        weights = self._weights(list(self._days), now)
        kept = zip(list(self._days.items()), weights.tolist(), strict=True)
        self._days = {day: sums for (day, sums), weight in kept if weight >= LEAST_WEIGHT}

    def clear(self) -> None:
        """Begin anew."""
        self._days.clear()

    def sums(self, now: int) -> DecayedSums:
        """Give the sums of each day, weighted as of ``now``, epoch seconds."""
        days = sorted(self._days)
        by_day = np.zeros((len(days), *self._shape))
        for place, day in enumerate(days):
            by_day[place] = self._days[day]
        weighted = by_day * self._weights(days, now)[:, np.newaxis, np.newaxis, np.newaxis]
        return DecayedSums(by_day.sum(axis=0), weighted)

    def _weights(self, days: Sequence[int], now: int) -> Float64Array:
        age_s = np.maximum(now - (np.array(days, dtype=np.int64) + 1) * DAY_S, 0)
        weights: Float64Array = 0.5 ** (age_s / self.half_life_s)
        return weights

    def state(self) -> dict[str, Any]:
        """Give the sums, as JSON can hold them: of each day a text, so that none takes long."""
        days = {str(day): json.dumps(sums.tolist()) for day, sums in self._days.items()}
        return {"time_bounds_s": list(self.classes.time_bounds_s), "days": days}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave.

        Raises
        ------
        StateError
            If it can't be used, or is of other classes; then nothing has changed.
        """
        try:
            if state["time_bounds_s"] != list(self.classes.time_bounds_s):
                raise StateError("accuracy.class_bounds_s has changed")
            found = {
                int(day): np.array(json.loads(text), dtype=np.float64)
                for day, text in state["days"].items()
            }
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise StateError(f"the saved sums can't be used: {error}") from error
        for sums in found.values():
            if sums.shape != self._shape or not np.isfinite(sums).all():
                raise StateError(f"the saved sums can't be used: they are of shape {sums.shape}")
        self._days = found


@dataclass(frozen=True, slots=True)
class DecayedSums:
    """Sums as of one moment.

    Attributes
    ----------
    plain
        Shape (classes, estimators, measures): every job the same.
    weighted
        Shape (days, classes, estimators, measures): with the weight of its day.
    """

    plain: Float64Array
    weighted: Float64Array

    def resampled(self, seed: int = 1) -> Float64Array | None:
        """Draw days with replacement, over all jobs; ``None`` with too few of them.

        Returns
        -------
        Shape (resamples, estimators, measures).
        """
        days = len(self.weighted)
        if days < FEWEST_DAYS:
            return None
        rng = np.random.default_rng([seed, days])
        draws = rng.multinomial(days, np.full(days, 1 / days), size=_RESAMPLES)
        drawn: Float64Array = np.tensordot(draws.astype(np.float64), self.weighted[:, 0], 1)
        return drawn
