"""Kinds of jobs, from those most like one to all; what is remembered of each, and how they share.

A finished job is remembered under every kind that it is of: its user's jobs with the same request
and size, its user's jobs, its project's, those of its queue, request and size class, all. What is
expected of a new job is a mixture over its kinds, from fine to coarse: a kind of aged weight c
takes the share c / (c + enough) of what the finer ones left open. So a thin history falls back on
a wider one by itself, where Tang 2010 (section V) has a threshold; ageing is what its section VI
asks for.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

Kind: TypeAlias = tuple[str | int, ...]
"""What jobs have in common: the name of the kind, then values of those fields."""
What = TypeVar("What")

LEFT_OPEN = 0.01
"""Share below which `BackOff.shares` looks at no coarser kinds any more."""


def kinds_of(job: JobRequest) -> list[Kind]:
    """Give the kinds of a job, from fine to coarse; those that need a name it lacks are left out.

    Classes of requested time and of size double from one to the next.
    """
    user, project, request, size = job.user, job.project, job.requested_time, job.processors
    request_class, size_class = request.bit_length(), size.bit_length()
    kinds: list[Kind] = []
    if user is not None:
        if job.executable is not None:
            kinds.append(("executable", user, job.executable, request, size))
        kinds += [
            ("user-request-size", user, request, size),
            ("user-request", user, request),
            ("user-class", user, request_class),
            ("user", user),
        ]
    if project is not None:
        kinds += [("project-request", project, request), ("project", project)]
    if job.queue is not None:
        kinds.append(("queue-classes", job.queue, request_class, size_class))
    kinds += [("classes", request_class, size_class), ("all",)]
    return kinds


@dataclass(frozen=True, slots=True)
class Ageing:
    """One way to weigh history.

    Attributes
    ----------
    half_life_jobs
        A job weighs half as much as one of its kind that ended so many jobs later.
    enough_jobs
        With so much weight a kind of jobs decides half of what the kinds before left open.
    """

    half_life_jobs: float
    enough_jobs: float

    def __post_init__(self) -> None:
        if not 0 < self.half_life_jobs < float("inf"):
            raise InputError(f"ageing: half_life_jobs {self.half_life_jobs} must be above 0")
        if not 0 < self.enough_jobs < float("inf"):
            raise InputError(f"ageing: enough_jobs {self.enough_jobs} must be above 0")


class BackOff:
    """How kinds share what is expected of a job, under one ageing.

    Parameters
    ----------
    ageing
        How history is weighed.
    remembered_jobs
        The most that a kind remembers.

    Attributes
    ----------
    weights
        Of so many jobs of a kind, oldest first; the newest has 1.
    """

    def __init__(self, ageing: Ageing, remembered_jobs: int) -> None:
        age = np.arange(remembered_jobs, dtype=np.float64)[::-1]
        self.weights = np.exp2(-age / ageing.half_life_jobs)
        # Total weight of the newest 1, 2, 3, ... jobs.
        self._totals: list[float] = self.weights[::-1].cumsum().tolist()
        self._enough = ageing.enough_jobs

    def shares(self, lengths: Sequence[int]) -> tuple[list[Float64Array], float]:
        """Give the weight of each job of each kind, and what is left open after the coarsest.

        Parameters
        ----------
        lengths
            How many jobs are remembered of each kind, at least one, from fine to coarse.

        Returns
        -------
        tuple
            Weights by kind, oldest job first, for the kinds that are looked at (the first ones);
            then what they leave open: all together sum to 1.
        """
        left_open = 1.0
        parts: list[Float64Array] = []
        for length in lengths:
            each = left_open / (self._totals[length - 1] + self._enough)
            parts.append(self.weights[-length:] * each)
            left_open = each * self._enough
            if left_open < LEFT_OPEN:
                break
        return parts, left_open

    def share_out(self, evidence: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Do the same for many jobs, whatever is left open.

        Parameters
        ----------
        evidence
            Total weight of each kind, from fine to coarse, shape (jobs, kinds); 0 for none.

        Returns
        -------
        tuple
            Share of a weight of 1 in each kind, shape (jobs, kinds); what is left open, (jobs,).
        """
        shares = np.empty_like(evidence)
        left_open = np.ones(len(evidence))
        for kind in range(evidence.shape[1]):
            shares[:, kind] = left_open / (evidence[:, kind] + self._enough)
            left_open = shares[:, kind] * self._enough
        return shares, left_open


class KindHistories(Generic[What]):
    """Something of the last finished jobs of each kind.

    Parameters
    ----------
    remembered_jobs
        How many of each kind are kept.
    window_s
        A kind of which no job has ended for so long is forgotten, seconds.
    """

    def __init__(self, remembered_jobs: int, window_s: int) -> None:
        self._remembered_jobs = remembered_jobs
        self._window_s = window_s
        # By kind, latest used last.
        self._known: OrderedDict[Kind, deque[What]] = OrderedDict()
        self._latest_end: dict[Kind, int] = {}

    def __len__(self) -> int:
        """Count the kinds remembered."""
        return len(self._known)

    def remember(self, job: JobRequest, what: What, end_time: int) -> list[Kind]:
        """Take it in under each of the job's kinds; call in order of end times.

        Gives the kinds whose history is another now: the job's own, and those forgotten.
        """
        changed = kinds_of(job)
        for kind in changed:
            known = self._known.get(kind)
            if known is None:
                known = self._known[kind] = deque(maxlen=self._remembered_jobs)
            else:
                self._known.move_to_end(kind)
            known.append(what)
            self._latest_end[kind] = end_time
        while self._latest_end[oldest := next(iter(self._known))] < end_time - self._window_s:
            del self._known[oldest], self._latest_end[oldest]
            changed.append(oldest)
        return changed

    def of(self, job: JobRequest) -> Iterator[tuple[Kind, deque[What]]]:
        """Give the job's kinds of which there is a history, from fine to coarse."""
        for kind in kinds_of(job):
            known = self._known.get(kind)
            if known is not None:
                yield kind, known

    def get(self, kind: Kind) -> deque[What] | None:
        """Give what is remembered of a kind, oldest first."""
        return self._known.get(kind)

    def state(self) -> list[list[Any]]:
        """Give kinds, their latest ends and what is remembered, as JSON can hold them."""
        return [
            [list(kind), self._latest_end[kind], list(known)] for kind, known in self._known.items()
        ]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Take over what `state` gave, replacing all that was remembered."""
        self._known = OrderedDict(
            (tuple(kind), deque(known, maxlen=self._remembered_jobs)) for kind, _, known in state
        )
        self._latest_end = {tuple(kind): end_time for kind, end_time, _ in state}
