"""Jobs submitted lately, in columns: what later arrivals are resampled from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest

_SUBMIT, _PROCESSORS, _REQUESTED, _RUNTIME = range(4)
UNKNOWN = -1
"""In place of a runtime: the job has not ended yet."""
NEVER_RAN = -2
"""In place of a runtime: the job was withdrawn before it started."""


class SubmissionHistory:
    """Submissions of the last weeks, with runtimes as far as they are known.

    Parameters
    ----------
    window_s
        Submissions older than this are forgotten, seconds.
    """

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        self._columns = np.zeros((4, 1_024), dtype=np.int64)
        self._begin = self._end = 0  # of the columns that are in use
        self._place: dict[str, int] = {}  # of jobs that have not ended
        self._request: dict[int, JobRequest] = {}

    def __len__(self) -> int:
        return self._end - self._begin

    @property
    def submit_time(self) -> Int64Array:
        """Seconds, never falling; shape (jobs,)."""
        return self._columns[_SUBMIT, self._begin : self._end]

    @property
    def processors(self) -> Int64Array:
        """Processors, shape (jobs,)."""
        return self._columns[_PROCESSORS, self._begin : self._end]

    @property
    def requested_time(self) -> Int64Array:
        """Seconds, shape (jobs,)."""
        return self._columns[_REQUESTED, self._begin : self._end]

    @property
    def runtime(self) -> Int64Array:
        """Seconds, or `UNKNOWN` or `NEVER_RAN`; shape (jobs,)."""
        return self._columns[_RUNTIME, self._begin : self._end]

    def request(self, job: int) -> JobRequest:
        """Give a job that has not ended, by its place in the columns."""
        return self._request[job + self._begin]

    def submitted(self, job: JobRequest) -> None:
        """Remember a submission; one that comes late counts as made with the one before."""
        if self._end == self._columns.shape[1]:
            self._make_room()
        submit = job.submit_time
        if len(self):
            submit = max(submit, int(self._columns[_SUBMIT, self._end - 1]))
        self._columns[:, self._end] = submit, job.processors, job.requested_time, UNKNOWN
        self._place[job.job_id] = self._end
        self._request[self._end] = job
        self._end += 1
        while self._columns[_SUBMIT, self._begin] < submit - self._window_s:
            forgotten = self._request.pop(self._begin, None)
            if forgotten is not None:
                self._place.pop(forgotten.job_id, None)
            self._begin += 1

    def finished(self, job: FinishedJob) -> None:
        """Note how long a job ran; one whose submission was not told is left out."""
        place = self._place.pop(job.request.job_id, None)
        if place is None:
            return
        del self._request[place]
        ran = job.start_time is not None and job.ending is not Ending.NEVER_STARTED
        runtime = min(job.actual_runtime, job.request.requested_time)
        self._columns[_RUNTIME, place] = max(1, runtime) if ran else NEVER_RAN

    def _make_room(self) -> None:
        kept = self._columns[:, self._begin : self._end]
        columns = np.zeros((4, max(1_024, 2 * kept.shape[1])), dtype=np.int64)
        columns[:, : kept.shape[1]] = kept
        self._columns = columns
        self._place = {name: place - self._begin for name, place in self._place.items()}
        self._request = {place - self._begin: job for place, job in self._request.items()}
        self._begin, self._end = 0, kept.shape[1]

    def state(self) -> dict[str, Any]:
        """Everything remembered, as JSON can hold it."""
        return {
            "submission_history": 1,
            "window_s": self._window_s,
            "columns": self._columns[:, self._begin : self._end].tolist(),
            "requests": [
                [place - self._begin, asdict(job)] for place, job in self._request.items()
            ],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was remembered.

        Raises
        ------
        StateError
            If something else saved it, or it was learned with another window.
        """
        if state.get("submission_history") != 1 or state["window_s"] != self._window_s:
            raise StateError(
                "submission history: the state given was saved by something else, or with another"
                " window: learn the submissions anew"
            )
        self._columns = np.array(state["columns"], dtype=np.int64).reshape(4, -1)
        self._begin, self._end = 0, self._columns.shape[1]
        self._request = {place: JobRequest(**job) for place, job in state["requests"]}
        self._place = {job.job_id: place for place, job in self._request.items()}
