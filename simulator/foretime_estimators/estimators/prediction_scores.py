"""How good a predicted runtime was, once the job has ended: what scores are made of.

Only endings that are evidence count (`foretime_estimators.jobs.endings`). A job cut at its limit
counts as if it had taken its requested time, as no prediction exceeds that; so does one that the
scheduler let run a little longer. A cancelled job would have run longer: all that it can tell is
that a prediction was too short.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.jobs import Ending, FinishedJob

PINBALL_LEVEL = 0.9
"""Share of jobs that a prediction of the least pinball loss covers."""

MEASURES = ("jobs", "ratio", "under", "log_error", "error_s", "pinball_s", "cancelled_under")
"""What one job adds for one estimator, in this order; scores are ratios of sums of these.

========================  =====================================================================
``jobs``                  1 if how long it takes is known
``ratio``                 min(f, p) / max(f, p): f the prediction, p the runtime (accuracy, as in
                          Tsafrir, Etsion and Feitelson 2007, section 3)
``under``                 1 if f < p
``log_error``             abs(ln f - ln p)
``error_s``               abs(f - p), seconds
``pinball_s``             q (p - f) if p > f, else (1 - q) (f - p), seconds; q is `PINBALL_LEVEL`
                          (Koenker and Bassett 1978)
``cancelled_under``       1 if it was cancelled, and had run longer than f by then
========================  =====================================================================
"""

_JOBS, _RATIO, _UNDER, _LOG, _ERROR, _PINBALL, _CANCELLED = range(len(MEASURES))


def measured(predicted: Int64Array, job: FinishedJob) -> Float64Array:
    """Give what a job adds to the sums of several estimators.

    Parameters
    ----------
    predicted
        Seconds, from 1 to the requested time, by estimator; below 1: it had predicted nothing, and
        nothing is added.
    job
        The job as it ended.

    Returns
    -------
    Shape (estimators, len(MEASURES)).
    """
    found = np.zeros((len(predicted), len(MEASURES)))
    evidence = evidence_of(job)
    if evidence is Evidence.NONE:
        return found
    said = predicted >= 1
    limit = job.request.requested_time
    runtime = limit if job.ending is Ending.TIMED_OUT else min(job.actual_runtime, limit)
    runtime = max(runtime, 1)
    under = said & (predicted < runtime)
    if evidence is Evidence.LOWER_BOUND:
        found[:, _CANCELLED] = under
        return found
    forecast = np.where(said, predicted, runtime).astype(np.float64)
    off = runtime - forecast
    found[:, _JOBS] = said
    found[:, _RATIO] = np.where(
        said, np.minimum(forecast, runtime) / np.maximum(forecast, runtime), 0
    )
    found[:, _UNDER] = under
    found[:, _LOG] = np.abs(np.log(forecast) - math.log(runtime))
    found[:, _ERROR] = np.abs(off)
    found[:, _PINBALL] = np.maximum(PINBALL_LEVEL * off, (PINBALL_LEVEL - 1) * off)
    return found


def _share(of: Float64Array, among: Float64Array) -> Float64Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        share: Float64Array = of / among
        return share


def _per_job(of: int) -> Callable[[Float64Array], Float64Array]:
    return lambda sums: _share(sums[..., of], sums[..., _JOBS])


def _covered(sums: Float64Array) -> Float64Array:
    jobs = sums[..., _JOBS]
    return _share(jobs - sums[..., _UNDER], jobs + sums[..., _CANCELLED])


SCORES: dict[str, Callable[[Float64Array], Float64Array]] = {
    "accuracy": _per_job(_RATIO),
    "under_predicted": _per_job(_UNDER),
    "covered": _covered,
    "log_error": _per_job(_LOG),
    "error_s": _per_job(_ERROR),
    "pinball_s": _per_job(_PINBALL),
}
"""Scores by name, each of sums of `MEASURES` (their last axis); NaN without jobs.

``accuracy`` is the mean of the ratios, 1 the best; ``under_predicted`` the share of jobs that ran
longer than predicted; ``covered`` the share that did not, where cancelled jobs that had outlived
their prediction count as not covered and other cancelled ones say nothing; the others are means.
"""
