"""Requests multiplied or randomised: the old baselines that made estimates worse on purpose."""

from __future__ import annotations

import hashlib
from fractions import Fraction

from foretime_estimators.estimators.estimator import Memoryless, clamped
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

_DRAWS = 1 << 53


class ScaledRequest(Memoryless):
    """The request times a fixed factor.

    Doubling requests slightly improved slowdown in early studies (Tang 2010, section III, on its
    references 20 and 31). There requests above what the user asked for were planned with:
    `predicted_runtime` gives that. `predict_one` is cut to the request like every estimator's, so
    there a factor of 1 or more is the request itself.

    Parameters
    ----------
    factor
        Above 0.
    """

    oracle = False

    def __init__(self, factor: float = 2.0) -> None:
        if not 0 < factor < float("inf"):
            raise InputError(f"scaled request: factor {factor} must be a finite number above 0")
        self._factor = Fraction(str(factor))

    def predicted_runtime(self, job: JobRequest) -> int:
        """Give factor * t_req, seconds rounded up, which may exceed the request."""
        return -(-self._factor.numerator * job.requested_time // self._factor.denominator)

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give factor * t_req, seconds, at most the requested time."""
        return clamped(self.predicted_runtime(job), job)


class RandomisedRequest(Memoryless):
    """The request times a random factor, uniform above 0 and up to ``highest``.

    Randomised estimates were proposed to make schedules less rigid (Tang 2010, section III, on its
    reference 21). The factor is drawn from the seed and the job's id, so that the same job always
    gets the same, whatever was asked before. `predicted_runtime` may exceed the request;
    `predict_one` is cut to it.

    Parameters
    ----------
    highest
        Upper end of the factor, above 0.
    seed
        Another seed gives another draw.
    """

    oracle = False

    def __init__(self, highest: float = 1.0, seed: int = 0) -> None:
        if not 0 < highest < float("inf"):
            raise InputError(f"randomised request: highest factor {highest} must be above 0")
        self._highest = Fraction(str(highest))
        self._seed = seed

    def predicted_runtime(self, job: JobRequest) -> int:
        """Give the randomised request, seconds rounded up, which may exceed the request."""
        text = f"{self._seed}/{job.job_id}".encode()
        draw = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest()) % _DRAWS + 1
        scaled = job.requested_time * self._highest.numerator * draw
        return -(-scaled // (self._highest.denominator * _DRAWS))

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the randomised request, seconds, at most the requested time."""
        return clamped(self.predicted_runtime(job), job)
