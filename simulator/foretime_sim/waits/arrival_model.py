"""Later arrivals, sampled: what came in past hours like those to come comes again.

People submit in sessions and campaigns, so independent arrivals (a Poisson process) would vary far
too little from one day to the next. A sample is therefore a stretch of the past as it was, with its
bursts, its users' sizes, requests and runtimes: a moment about a whole number of days ago is taken
for now, the likelier the more recent it is, the more alike its place in the week, and the more
alike what had been submitted in the hours before it. Days further on continue with other stretches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S, HOUR_S

from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.waits.submission_history import NEVER_RAN, UNKNOWN, SubmissionHistory

_MANY_JOBS = 100
"""Submissions that tell something of those to come although they are of less than two hours."""
_SHORTEST_S = 5 * 60
"""Such a stretch lasts so long at least, seconds."""
_SHORT_ONES = 100
"""So many of them are drawn at most, one after another."""


@dataclass(frozen=True, slots=True)
class ArrivalSettings:
    """Settings of `ResampledArrivals`; the defaults were found on Mira, COARE and Theta.

    Attributes
    ----------
    window_s
        How far back is looked, seconds.
    half_life_s
        A past moment is taken half as often as one that is so much later, seconds.
    shift_s
        How far a past moment may lie from the same time of day, seconds.
    other_weekday
        How often another day of the week is taken, beside the same one.
    recent_s
        The hours before a moment that are compared, seconds.
    likeness
        A moment before which e^likeness times as much, or as little, was submitted is taken 0.6
        times as often (a Gaussian kernel's width, of log jobs); 0 compares nothing.
    stretch_s
        How long a stretch lasts, seconds.
    longest_s
        Nothing is drawn beyond this, seconds from now.
    """

    window_s: int = 84 * DAY_S
    half_life_s: int = 28 * DAY_S
    shift_s: int = 2 * HOUR_S
    other_weekday: float = 0.5
    recent_s: int = 6 * HOUR_S
    likeness: float = 1.0
    stretch_s: int = DAY_S
    longest_s: int = 60 * DAY_S

    def __post_init__(self) -> None:
        for name in ("window_s", "half_life_s", "recent_s", "stretch_s", "longest_s"):
            if getattr(self, name) < 1:
                raise InputError(f"arrivals: {name} {getattr(self, name)}: give 1 s or more")
        for name in ("shift_s", "other_weekday", "likeness"):
            if getattr(self, name) < 0:
                raise InputError(f"arrivals: {name} {getattr(self, name)}: give 0 or more")


class ResampledArrivals:
    """Draws the jobs that will be submitted, and learns from those that were.

    Parameters
    ----------
    runtimes
        Draws the runtimes of past jobs that have not ended yet; it is taught by its owner.
    settings
        The defaults if ``None``.
    """

    def __init__(
        self, runtimes: RuntimeDistribution, settings: ArrivalSettings | None = None
    ) -> None:
        self.settings = settings if settings is not None else ArrivalSettings()
        self._runtimes = runtimes
        self._history = SubmissionHistory(self.settings.window_s)

    def submitted(self, job: JobRequest) -> None:
        """Learn from a submission; call in order of submit times."""
        self._history.submitted(job)

    def finished(self, job: FinishedJob) -> None:
        """Learn how long a job ran; one that never started is not drawn any more."""
        self._history.finished(job)

    def sample(
        self, now: int, until: int, samples: int, rng: np.random.Generator
    ) -> SampledArrivals:
        """Draw the jobs submitted after ``now``, and not after ``until``, in each sample.

        None before submissions of two hours are known, or a hundred of at least ten minutes; by
        these nothing is drawn further on than a hundred times half their span.

        Parameters
        ----------
        now, until
            Seconds; what was submitted and what had ended by ``now`` has been learned.
        samples
            How many to draw.
        rng
            What decides them.
        """
        past = self._history.submit_time
        until = min(until, now + self.settings.longest_s)
        drawn: list[tuple[Int64Array, Int64Array, Int64Array]] = []  # sample, submission, job
        begin = now
        # With less than two days known, shorter stretches: what lies before must be known, too.
        known_s = now - int(past[0]) if len(past) else 0
        length = min(self.settings.stretch_s, known_s // 2)
        if length < min(HOUR_S, self.settings.stretch_s):
            # A few jobs of less than two hours tell nothing of those to come.
            known = len(past) >= _MANY_JOBS and length >= _SHORTEST_S
            until = min(until, now + _SHORT_ONES * length) if known else now
        while begin < until:
            end = min(begin + length, until)
            offsets, chance = self._stretches(begin, end, now)
            offset = rng.choice(offsets, samples, p=chance)
            first = np.searchsorted(past, begin - offset, side="right")
            count = np.searchsorted(past, end - offset, side="right") - first
            sample = np.repeat(np.arange(samples), count)
            job = np.arange(len(sample)) + np.repeat(first - count.cumsum() + count, count)
            drawn.append((sample, past[job] + offset[sample], job))
            begin = end
        none = np.zeros(0, dtype=np.int64)
        sample, submission, job = (
            np.concatenate([none, *column])
            for column in (zip(*drawn, strict=True) if drawn else ((), (), ()))
        )
        runtime = self._history.runtime[job]
        ran = runtime != NEVER_RAN
        sample, submission, job, runtime = sample[ran], submission[ran], job[ran], runtime[ran]
        open_ones = runtime == UNKNOWN
        if open_ones.any():
            runtime[open_ones] = self._drawn(job[open_ones], sample[open_ones], now, samples, rng)
        return SampledArrivals(
            sample=sample,
            submit_time=submission,
            processors=self._history.processors[job],
            requested_time=self._history.requested_time[job],
            actual_runtime=runtime,
        )

    def _drawn(
        self,
        job: Int64Array,
        sample: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        """Draw runtimes of past jobs that have not ended."""
        different, which = np.unique(job, return_inverse=True)
        requests = [self._history.request(each) for each in different.tolist()]
        age = np.zeros(len(requests), dtype=np.int64)
        runtimes = self._runtimes.sample(requests, age, now, samples, rng)
        drawn: Int64Array = runtimes[sample, which]
        return drawn

    def _stretches(self, begin: int, end: int, now: int) -> tuple[Int64Array, Float64Array]:
        """Give how far back stretches may lie in place of one to come, and how likely each is.

        Returns
        -------
        tuple
            Seconds, shape (stretches,), at least one; their probabilities, of that shape.
        """
        past, rules = self._history.submit_time, self.settings
        least, most = end - now, begin - int(past[0])
        shifts = np.arange(-(rules.shift_s // HOUR_S), rules.shift_s // HOUR_S + 1) * HOUR_S
        days = np.arange(least // DAY_S, (least + rules.window_s) // DAY_S + 1) * DAY_S
        offsets = (days[:, np.newaxis] + shifts).ravel()
        offsets = offsets[(offsets >= least) & (offsets <= most)]
        if not len(offsets):  # so little is known: whenever that was
            offsets = np.linspace(least, most, 24).astype(np.int64)
        days_back = (offsets + DAY_S // 2) // DAY_S
        log_weight = -offsets / rules.half_life_s * np.log(2)
        weight = np.where(days_back % 7 == 0, 1.0, rules.other_weekday)
        if begin == now and rules.likeness > 0:  # of later stretches nothing before is known
            recent = self._jobs_before(np.append(now - offsets, now))
            unlike = np.log1p(recent[:-1]) - np.log1p(recent[-1])
            log_weight -= 0.5 * (unlike / rules.likeness) ** 2
        weight = weight * np.exp(log_weight - log_weight.max()) + 1e-12
        return offsets, weight / weight.sum()

    def _jobs_before(self, moment: Int64Array) -> Int64Array:
        past = self._history.submit_time
        upto = np.searchsorted(past, moment, side="right")
        return upto - np.searchsorted(past, moment - self.settings.recent_s, side="right")

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return self._history.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` of a like model gave; `StateError` if it can't be used."""
        self._history.restore(state)
