"""Normal scores of jobs that have something in common: a Gaussian copula by user and campaign.

A job's score is the weighted sum of a draw of its user's, one of its campaign's and one of its own,
so scores of one user's jobs have the correlation ``user``, those of one campaign's ``campaign``,
all others none, and each by itself is standard normal.

How strong the correlation is, is learned from what has finished. When the first job of a campaign
ends, what was expected of its jobs just before is kept, and all jobs of it that had been submitted
by then are judged by that: none of their ends was known. The mean product of their normal scores is
the correlation of a joint forecast made at that moment.
"""

from __future__ import annotations

import math
import zlib
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float32Array, Float64Array, Int64Array
from foretime_estimators.distributions.runtime_quantiles import NORMAL_SCORES
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest

JUDGED_EVERY = 10
"""One in so many campaigns is judged, by its name."""
MOST_ROUNDS = 256
"""Campaigns that are judged at one time."""
PRIOR_PAIRS = 30.0
"""Weight of the correlation that is taken before anything is learned, in pairs of jobs."""
MOST = 0.9
"""Largest correlation that is learned."""
_FADING = math.exp2(-1 / 3_000)
"""Per pair: what was learned weighs half after 3,000 further ones."""
_JUDGED_STEP = 4
_JUDGED_SCORES: list[float] = NORMAL_SCORES[::_JUDGED_STEP].tolist()
CAMPAIGN_PAUSE_S = 86_400
"""Jobs of one user, request and size belong to another campaign after so long a pause."""


@dataclass(frozen=True, slots=True)
class SharedEffects:
    """Correlations of normal scores.

    Attributes
    ----------
    user
        Of jobs of one user, in different campaigns; from 0.
    campaign
        Of jobs of one campaign; from that of the user's to 1.
    """

    user: float
    campaign: float

    def __post_init__(self) -> None:
        if not 0 <= self.user <= self.campaign <= 1:
            raise InputError(
                f"shared effects: user {self.user}, campaign {self.campaign}: give"
                " 0 <= user <= campaign <= 1"
            )

    def scores(
        self, jobs: Sequence[JobRequest], samples: int, rng: np.random.Generator
    ) -> Float32Array:
        """Draw normal scores, shape (samples, jobs)."""
        scores = rng.standard_normal((samples, len(jobs)), dtype=np.float32)
        if not self.campaign:
            return scores
        named = np.array([job.user is not None for job in jobs])
        of_user = np.where(named, self.user, 0.0)
        scores *= np.float32(np.sqrt(1 - self.campaign))
        for groups, share in (
            (_numbered([job.user for job in jobs]), of_user),
            (campaigns(jobs), self.campaign - of_user),
        ):
            drawn = rng.standard_normal((samples, int(groups.max()) + 1), dtype=np.float32)
            scores += np.sqrt(share).astype(np.float32) * drawn[:, groups]
        return scores


@dataclass
class _Round:
    """Jobs of one campaign that are judged by one expectation."""

    begun: int
    log_quantiles: list[float]  # at `_JUDGED_SCORES`
    jobs: int = 0
    total: float = 0.0


class CampaignCorrelation:
    """Learns how far jobs of a campaign are off together.

    Parameters
    ----------
    prior
        What is taken for it before anything is learned, and given the weight of `PRIOR_PAIRS`.
    """

    def __init__(self, prior: float) -> None:
        self._prior = prior
        self._weight = 0.0
        self._product = 0.0
        self._square = 0.0
        self._rounds: OrderedDict[str, _Round] = OrderedDict()

    @property
    def correlation(self) -> float:
        """As learned so far, from 0 to `MOST`."""
        # Where many runtimes are tied (at the limit), scores vary less than they might.
        variance = min(1.0, (self._square + PRIOR_PAIRS) / (self._weight + PRIOR_PAIRS))
        product = (self._product + PRIOR_PAIRS * self._prior) / (self._weight + PRIOR_PAIRS)
        return min(MOST, max(0.0, product / variance))

    def judge(
        self, job: FinishedJob, log_runtime: float, expected: Callable[[], Float64Array]
    ) -> None:
        """Judge a job that has ended, before it is learned, if its campaign is one of the judged.

        Parameters
        ----------
        job
            The job.
        log_runtime
            Natural logarithm of its runtime, seconds, at most of its request.
        expected
            Gives the quantiles of log runtime at `NORMAL_SCORES` that are expected of such a job at
            its submission, by what has been learned.
        """
        request = job.request
        name = "\0".join(map(str, (request.user, request.requested_time, request.processors)))
        if zlib.crc32(name.encode()) % JUDGED_EVERY:
            return
        judged = self._rounds.get(name)
        if judged is None or request.submit_time > judged.begun:
            quantiles = expected()[::_JUDGED_STEP]
            judged = _Round(job.end_time, [round(value, 4) for value in quantiles.tolist()])
            self._rounds[name] = judged
            if len(self._rounds) > MOST_ROUNDS:
                self._rounds.popitem(last=False)
        self._rounds.move_to_end(name)
        score = _score_of(round(log_runtime, 4), judged.log_quantiles)
        if judged.jobs:
            # Each further job is one pair, with the mean of those before.
            self._weight = self._weight * _FADING + 1
            self._product = self._product * _FADING + score * judged.total / judged.jobs
            self._square = self._square * _FADING + score * score
        judged.jobs += 1
        judged.total += score

    def state(self) -> dict[str, Any]:
        """Everything learned, as JSON can hold it."""
        return {
            "sums": [self._weight, self._product, self._square],
            "rounds": [
                [name, judged.begun, judged.log_quantiles, judged.jobs, judged.total]
                for name, judged in self._rounds.items()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned."""
        self._weight, self._product, self._square = state["sums"]
        self._rounds = OrderedDict(
            (name, _Round(begun, list(quantiles), jobs, total))
            for name, begun, quantiles, jobs, total in state["rounds"]
        )


def _score_of(log_runtime: float, log_quantiles: list[float]) -> float:
    """Give the normal score of a runtime, in the middle of those that share it."""
    low = bisect_left(log_quantiles, log_runtime)
    high = bisect_right(log_quantiles, log_runtime)
    if low < high:
        return (_JUDGED_SCORES[low] + _JUDGED_SCORES[high - 1]) / 2
    if low in (0, len(log_quantiles)):
        return _JUDGED_SCORES[min(low, len(log_quantiles) - 1)]
    before, after = log_quantiles[low - 1], log_quantiles[low]
    part = (log_runtime - before) / (after - before)
    return _JUDGED_SCORES[low - 1] + part * (_JUDGED_SCORES[low] - _JUDGED_SCORES[low - 1])


def campaigns(jobs: Sequence[JobRequest]) -> Int64Array:
    """Say which campaign each job belongs to, as numbers from 0, shape (jobs,).

    A campaign is a user's jobs with one request and size, submitted without a pause of
    `CAMPAIGN_PAUSE_S`; the tasks of one array are always one.
    """
    group = _numbered(
        [(job.user, job.array_id, job.requested_time, job.processors) for job in jobs]
    )
    submitted = np.array([job.submit_time for job in jobs], dtype=np.int64)
    in_array = np.array([job.array_id is not None for job in jobs])
    order = np.lexsort((submitted, group))
    paused = np.diff(submitted[order]) > CAMPAIGN_PAUSE_S
    anew = (np.diff(group[order]) > 0) | (paused & ~in_array[order][1:])
    campaign = np.empty(len(jobs), dtype=np.int64)
    campaign[order] = np.concatenate(([0], np.cumsum(anew)))
    return campaign


def _numbered(names: Sequence[object]) -> Int64Array:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(name, len(numbers)) for name in names], dtype=np.int64)
