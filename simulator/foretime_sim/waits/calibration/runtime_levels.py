"""Which quantiles of runtime forecasts come true as often as they say, by the jobs that ended.

What is expected of a job is made of the few jobs most like it, and these are more alike than the
next one is: one job in ten runs longer than its 95% quantile. So it is noted below which of the
quantiles jobs really ended, and a level is read off where that share of them did (V. Kuleshov,
N. Fenner and S. Ermon, "Accurate uncertainties for deep learning using calibrated regression",
2018, section 3.2). For forecasts of ends only: samples of runs have their own calibration, of the
waits that come of them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import FinishedJob

_SCORES = np.arange(-12, 13) / 4
JUDGED_LEVELS = tuple(NormalDist().cdf(score) for score in _SCORES.tolist())
"""Between these ends are counted."""
JUDGED_EVERY = 8
"""One job in so many is judged, by its id: a forecast costs ten times what learning does."""
_EDGES = np.array([0.0, *JUDGED_LEVELS, 1.0])
_SAME_S = 0.5


@dataclass(frozen=True, slots=True)
class RuntimeLevelsSettings:
    """Settings of `RuntimeLevels`; see docs/studies/waits.md for what they were chosen on.

    Attributes
    ----------
    half_life
        After so many further jobs that are judged one counts half.
    prior
        For how many jobs it counts that the quantiles are right.
    """

    half_life: float = 1_000.0
    prior: float = 20.0

    def __post_init__(self) -> None:
        for name in ("half_life", "prior"):
            if getattr(self, name) <= 0:
                raise InputError(
                    f"runtime levels: {name} is {getattr(self, name)}: give more than 0"
                )


class RuntimeLevels:
    """Learns from ends which level of a runtime forecast to take for another.

    Parameters
    ----------
    settings
        The defaults if not given.

    Examples
    --------
    >>> from foretime_sim.waits.calibration.runtime_levels import RuntimeLevels
    >>> [round(level, 6) for level in RuntimeLevels().calibrated([0.5, 0.95])]  # nothing is known
    [0.5, 0.95]
    """

    def __init__(self, settings: RuntimeLevelsSettings | None = None) -> None:
        self._settings = settings or RuntimeLevelsSettings()
        self._ended = np.zeros(len(_EDGES) - 1)

    def judge(self, job: FinishedJob, histories: RuntimeHistories) -> None:
        """Note where a job's runtime lies in what was expected of it; call before that is learned.

        A cancelled job counts with the end it came to. What the machine ended does not count.
        """
        if evidence_of(job) is Evidence.NONE or zlib.crc32(job.request.job_id.encode()) % (
            JUDGED_EVERY
        ):
            return
        told_s = histories.quantiles([job.request], np.zeros(1, dtype=np.int64), JUDGED_LEVELS)[0]
        runtime_s = max(1, min(job.actual_runtime, job.request.requested_time))
        first = int(np.searchsorted(told_s, runtime_s - _SAME_S))
        last = int(np.searchsorted(told_s, runtime_s + _SAME_S))
        # An end at many levels alike, such as the limit, is shared out over all of them.
        cells = np.diff(_EDGES)[first : last + 1]
        self._ended *= 0.5 ** (1 / self._settings.half_life)
        self._ended[first : last + 1] += cells / cells.sum()

    def calibrated(self, levels: Sequence[float]) -> list[float]:
        """Give for each level the one that has come true as often.

        Parameters
        ----------
        levels
            Probabilities, above 0 and below 1, rising.
        """
        mass = self._ended + self._settings.prior * np.diff(_EDGES)
        share: Float64Array = np.append(0.0, np.cumsum(mass)) / mass.sum()
        found = np.interp(levels, share, _EDGES)
        return [float(level) for level in found.clip(JUDGED_LEVELS[0], JUDGED_LEVELS[-1])]
