"""Mean share of their requests that similar jobs took, and an order that short jobs do not turn.

Where short jobs are started first, it pays to make long jobs look short. In the order of `expected`
that costs next to nothing: jobs of a second, of the same user and request, put them far ahead. Here
a job counts for the order by the time for which it held its processors, so they would have to hold
them for as long as the long ones do.
"""

from __future__ import annotations

import math

from foretime_estimators.estimators.estimator import RolePrediction, clamped
from foretime_estimators.estimators.expected_runtime import ExpectedRuntime
from foretime_estimators.jobs.jobs import JobRequest


class WeightedRuntime(ExpectedRuntime):
    """Mean R of similar jobs for backfilling; for the order their mean R, each weighed by R.

    That is the sum of R^2 over the sum of R, over kinds as in `ExpectedRuntime`. Of jobs that are
    alike it is their mean; of others it is nearer to the longer ones.
    """

    _name = "weighted_runtime"

    def predict_roles(self, job: JobRequest, now: int) -> RolePrediction:
        """Give each role's time, seconds; the request where nothing has finished."""
        asked = job.requested_time
        means = self._sums.mean(job, (1.0, 1.0))
        if means is None:
            return RolePrediction(asked, asked, asked)
        share, square = means
        return RolePrediction(
            clamped(math.ceil(square / share * asked), job),
            clamped(math.ceil(share * asked), job),
            asked,
        )

    def _figures(self, share: float) -> tuple[float, float]:
        return share, share * share
