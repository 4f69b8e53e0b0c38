"""Forecasts that were made, and what is known by now of what came of them.

Of a job that still waits it is known that its wait is longer than it has waited so far: a lower
bound (a censored observation), which counts at once, not from the start on. Were only starts
learned from, long waits would be learned of too late, and a growing queue not at all.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.jobs.errors import StateError

from foretime_sim.waits.calibration.forecast_scale import ForecastScale
from foretime_sim.waits.forecaster import LEVELS

Rows: TypeAlias = npt.NDArray[Any]
"""Structured, with the fields of `ROW`."""

ROW = np.dtype(
    [
        ("made_at", np.int64),  # seconds
        ("waits_from", np.int64),  # when the job can start, from which its wait counts
        ("state", np.int8),  # a `State`
        ("stands_for", np.float64),  # forecasts: itself, and forgotten ones
        ("starts_now", np.float64),  # probability, as the wrapped forecaster said
        ("started_now", np.bool_),
        ("wait_s", np.int64),  # until the start; so far, while the job waits
        ("score", np.float64),  # of that wait
        ("features", np.float64, (3,)),  # log wait, its spread, and age, by which rows are alike
        ("queue", np.int64),
        ("knots", np.float64, (len(LEVELS),)),  # of the wrapped forecaster's scale
        ("below", np.float64),
        ("above", np.float64),
    ]
)


class State(enum.IntEnum):
    """What has become of a job."""

    WAITS = 0
    STARTED = 1
    WITHDRAWN = 2


class RememberedForecasts:
    """The latest forecasts, in the order in which they were made.

    Where there is no room left, every second one of the older half whose outcome is known is
    forgotten, and the one before it stands for both.

    Parameters
    ----------
    capacity
        Rows kept.
    """

    def __init__(self, capacity: int) -> None:
        self._rows: Rows = np.zeros(capacity, dtype=ROW)
        self._count = 0
        self._of_job: dict[str, list[int]] = {}  # rows of jobs that wait

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Rows:
        """All of them; a view, in which values may be changed."""
        return self._rows[: self._count]

    def state(self) -> dict[str, Any]:
        """All of them, as JSON can hold it."""
        return {
            "fields": repr(ROW.descr),
            "rows": base64.b64encode(self.rows.tobytes()).decode("ascii"),
            "of_job": self._of_job,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all others.

        Raises
        ------
        StateError
            If its rows have other fields, or there is no room for them.
        """
        if state["fields"] != repr(ROW.descr):
            raise StateError("remembered forecasts: other fields were saved: begin anew")
        rows = np.frombuffer(base64.b64decode(state["rows"]), dtype=ROW)
        if len(rows) > len(self._rows):
            raise StateError(f"remembered forecasts: no room for the {len(rows)} saved: begin anew")
        self._count = len(rows)
        self._rows[: self._count] = rows
        self._of_job = {job_id: list(found) for job_id, found in state["of_job"].items()}

    def add(self, job_ids: list[str], fresh: Rows) -> None:
        """Remember forecasts, a row each, of jobs that wait."""
        if self._count + len(fresh) > len(self._rows):
            self._thin(len(fresh))
        fresh = fresh[: len(self._rows) - self._count]  # more jobs wait than there is room for
        first = self._count
        self._count += len(fresh)
        self._rows[first : self._count] = fresh
        for row, job_id in enumerate(job_ids[: len(fresh)], start=first):
            self._of_job.setdefault(job_id, []).append(row)

    def look(self, now: int) -> None:
        """Note how long the jobs that wait have waited since."""
        waiting = np.flatnonzero(self.rows["state"] == State.WAITS)
        self._note(waiting.astype(np.int64), now)

    def resolve(self, job_id: str, time: int, state: State) -> Int64Array:
        """Note that a job no longer waits; give the indices of its forecasts.

        Those made later are of the job requeued, which waits.
        """
        of_job = np.array(self._of_job.pop(job_id, []), dtype=np.int64)
        if not len(of_job):  # as of all jobs of the past that a daemon begins with
            return of_job
        later = self.rows["made_at"][of_job] > time
        if later.any():
            self._of_job[job_id] = of_job[later].tolist()
        found = of_job[~later]
        self._note(found, time)
        self.rows["state"][found] = state
        return found

    def _note(self, found: Int64Array, time: int) -> None:
        rows = self.rows
        wait_s = np.maximum(time - rows["waits_from"][found], 0)
        rows["wait_s"][found] = wait_s
        scale = ForecastScale(rows["knots"][found], rows["below"][found], rows["above"][found])
        rows["score"][found] = scale.scores(wait_s)

    def _thin(self, room: int) -> None:
        """Forget some of those whose outcome is known, until there is as much room or none left."""
        while self._count + room > len(self._rows):
            known = self.rows["state"] != State.WAITS
            older = np.flatnonzero(known)[: max(int(known.sum()) // 2, 2)]
            forgotten = older[1::2]
            if not len(forgotten):
                return
            self.rows["stands_for"][older[::2][: len(forgotten)]] += self.rows["stands_for"][
                forgotten
            ]
            kept = np.ones(self._count, dtype=np.bool_)
            kept[forgotten] = False
            self._keep(kept)

    def _keep(self, kept: BoolArray) -> None:
        place = np.cumsum(kept) - 1
        left = self.rows[kept]
        self._count = len(left)
        self._rows[: self._count] = left
        self._of_job = {
            job_id: [int(place[row]) for row in rows] for job_id, rows in self._of_job.items()
        }
