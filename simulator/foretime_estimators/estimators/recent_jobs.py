"""The last few finished jobs of each user."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob


class RecentJobs:
    """Base of estimators that look at (actual_runtime, requested_time) of a user's last jobs.

    A job counts unless its ending is no evidence at all (`foretime_estimators.jobs.endings`): a
    cancelled job's runtime counts as it is. Jobs without a user are skipped.
    """

    oracle = False

    def __init__(self, length: int) -> None:
        self._length = length
        self._recent: dict[str, deque[tuple[int, int]]] = {}

    def recent(self, user: str | None) -> list[tuple[int, int]]:
        """Give (actual_runtime, requested_time) in seconds, oldest first."""
        return [] if user is None else list(self._recent.get(user, ()))

    def learn_one(self, job: FinishedJob) -> None:
        """Remember the job as its user's latest."""
        user = job.request.user
        if user is None or evidence_of(job) is Evidence.NONE:
            return
        if user not in self._recent:
            self._recent[user] = deque(maxlen=self._length)
        self._recent[user].append((job.actual_runtime, job.request.requested_time))

    def state(self) -> dict[str, Any]:
        """Give each user's last jobs, as JSON can hold them."""
        return {
            "length": self._length,
            "recent": {user: [list(job) for job in jobs] for user, jobs in self._recent.items()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If it was saved by another estimator.
        """
        if state.get("length") != self._length or "recent" not in state:
            raise StateError(
                f"{type(self).__name__} keeps the last {self._length} jobs of each user; the state "
                "given was saved by another estimator"
            )
        self._recent = {
            user: deque(((runtime, request) for runtime, request in jobs), maxlen=self._length)
            for user, jobs in state["recent"].items()
        }
