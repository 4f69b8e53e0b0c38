"""Normal scores of jobs that have something in common: a Gaussian copula by user and campaign.

A job's score is the weighted sum of a draw of its user's, one of its campaign's and one of its own,
so scores of one user's jobs have the correlation ``user``, those of one campaign's ``campaign``,
all others none, and each by itself is standard normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from foretime_estimators.errors import InputError
from foretime_estimators.jobs import JobRequest

Float32Array: TypeAlias = npt.NDArray[np.float32]
Int64Array: TypeAlias = npt.NDArray[np.int64]

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
        user = _numbered([job.user for job in jobs])
        campaign = campaigns(jobs)
        own = np.where(named, np.sqrt(1 - self.campaign), 1.0).astype(np.float32)
        scores *= own
        for groups, share in (
            (user, self.user),
            (campaign, self.campaign - self.user),
        ):
            weight = np.where(named, np.sqrt(share), 0.0).astype(np.float32)
            drawn = rng.standard_normal((samples, int(groups.max()) + 1), dtype=np.float32)
            scores += weight * drawn[:, groups]
        return scores


def campaigns(jobs: Sequence[JobRequest]) -> Int64Array:
    """Say which campaign each job belongs to, as numbers from 0, shape (jobs,).

    A campaign is a user's jobs with one request and size, submitted without a pause of
    `CAMPAIGN_PAUSE_S`; the tasks of one array are always one.
    """
    group = _numbered(
        [
            (job.user, job.array_id or "", job.requested_time, job.processors, job.executable)
            for job in jobs
        ]
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
