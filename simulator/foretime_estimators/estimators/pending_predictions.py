"""What was said of jobs when they were first asked about, until they end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

What = TypeVar("What")


class AskedJobs(Generic[What]):
    """Something of each job that was asked about; of very many the oldest is forgotten.

    Parameters
    ----------
    most
        Of how many jobs it is remembered.
    """

    def __init__(self, most: int = 200_000) -> None:
        self._most = most
        self._said: dict[str, What] = {}

    def remember(self, job_id: str, what: What) -> None:
        """Keep what was said first: that of later is not taken."""
        if job_id in self._said:
            return
        if len(self._said) >= self._most:
            del self._said[next(iter(self._said))]
        self._said[job_id] = what

    def take(self, job_id: str) -> What | None:
        """Give what was said of a job that has ended, and forget it; ``None`` if nothing was."""
        return self._said.pop(job_id, None)

    def state(self) -> dict[str, What]:
        """Give what is remembered by job, oldest first."""
        return self._said.copy()

    def restore(self, state: Mapping[str, What]) -> None:
        """Take over what `state` gave, replacing all."""
        self._said = dict(state)
