"""A mixture of actual and requested runtime, to see how good estimates must be."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from foretime_estimators.estimators.actual import Actual
from foretime_estimators.estimators.estimator import clamped
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest


class Blend(Actual):
    """t_sched = a * t_act + (1 - a) * t_req (Tang 2010, section IV, eq. 3): an oracle.

    Rounded up to whole seconds; ``a`` is taken as the decimal number written, not its binary
    neighbour.

    Parameters
    ----------
    actual_runtimes
        Seconds, by job id.
    a
        Synthetic accuracy, from 0 (the request) to 1 (the actual runtime).
    """

    def __init__(self, actual_runtimes: Mapping[str, int], a: float) -> None:
        if not 0 <= a <= 1:
            raise InputError(f"blend: a = {a} must be from 0 (the request) to 1 (actual runtime)")
        super().__init__(actual_runtimes)
        self._a = Fraction(str(a))

    def predict_one(self, job: JobRequest, now: int) -> int:
        """Give the mixture, seconds, at most the requested time."""
        known, whole = self._a.numerator, self._a.denominator
        mixed = known * self.actual_runtime(job) + (whole - known) * job.requested_time
        return clamped(-(-mixed // whole), job)
