"""A question answered by the waiting jobs most like it, where the queue is too deep to run anew.

All of them come from the same futures of the queue, so questions, the map and the list of waiting
jobs agree.
"""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.waits.forecaster import LEVELS

from foretime_sidecar.forecasts.forecast_board import Board

MOST = 20
"""Jobs that a question is answered by."""
_PLACES = 20.0
"""A twentieth of the queue counts as much as twice the size, or twice the time limit."""


class AlikeWaits:
    """The forecasts of a board's waiting jobs, to be found by what the jobs are.

    Parameters
    ----------
    board
        Of the queue.
    """

    def __init__(self, board: Board) -> None:
        rows = [
            (row.request, row.ahead, row.waits.wait_s)
            for row in board.rows
            if row.waits is not None and row.ahead is not None and row.kept_back is None
        ]
        self.board = board
        self._jobs = max((ahead for _, ahead, _ in rows), default=0) + 1
        self._queues = np.array([request.queue or "" for request, _, _ in rows], dtype=object)
        self._features = np.array(
            [self._described(request, ahead) for request, ahead, _ in rows]
        ).reshape(len(rows), 3)
        self._wait_s = np.array([wait_s for _, _, wait_s in rows], dtype=np.float64)

    def _described(self, request: JobRequest, ahead: int) -> tuple[float, float, float]:
        return (
            float(np.log2(request.processors)),
            float(np.log2(request.requested_time)),
            _PLACES * ahead / self._jobs,
        )

    def wait_s(self, request: JobRequest, ahead: int) -> Float64Array | None:
        """Give the mean quantiles of those most alike; ``None``: none waits in its queue.

        Parameters
        ----------
        request
            What is asked about.
        ahead
            Jobs that would go before it.

        Returns
        -------
        Float64Array
            Seconds at each of `foretime_sim.waits.forecaster.LEVELS`.
        """
        rows = np.flatnonzero(self._queues == (request.queue or ""))
        if request.queue is None:  # of nobody's in particular
            rows = np.arange(len(self._queues))
        if not len(rows):
            return None
        apart = self._features[rows] - np.array(self._described(request, ahead))
        distance = (apart**2).sum(axis=1)
        nearest = rows[np.argsort(distance, kind="stable")[:MOST]]
        mean: Float64Array = self._wait_s[nearest].mean(axis=0)
        return mean.reshape(len(LEVELS))
