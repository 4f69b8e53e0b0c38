"""Kinds of jobs that the table of the scheme ``learned`` has rows of, and the order to look in.

A kind says what its jobs have in common: their user or their project or neither, then the time
that they ask for or its class, then the class of their processors or not; such as
``user+request+size``. A hook takes the first row that it finds (plugin/TABLE.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest

NOBODY = "-"
"""Stands in rows for the name where a kind has none."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What jobs have in common.

    Attributes
    ----------
    word
        As the table has it.
    who
        Whose they are; ``None``: anybody's.
    exact
        Whether they ask for the same time; else for times of one class.
    sized
        Whether they ask for processors of one class.
    """

    word: str
    who: Literal["user", "project"] | None
    exact: bool
    sized: bool

    @property
    def description(self) -> str:
        """Say which jobs those are, as seen from one of them."""
        whose = {"user": "its user's jobs", "project": "its account's jobs", None: "all jobs"}
        time = "the same time" if self.exact else "about as much time"
        size = " and about as many processors" if self.sized else ""
        return f"{whose[self.who]} that ask for {time}{size}"

    def name(self, job: JobRequest) -> str | None:
        """Give the name in a job's row; ``None`` if the job can't be of this kind."""
        if self.who is None:
            return NOBODY
        return job.user if self.who == "user" else job.project

    def values(
        self, job: JobRequest, time_bounds_s: Sequence[int], size_bounds: Sequence[int]
    ) -> tuple[int, ...]:
        """Give the numbers in a job's row: requested time or its class, then that of its size."""
        time = job.requested_time if self.exact else class_of(job.requested_time, time_bounds_s)
        return (time, class_of(job.processors, size_bounds)) if self.sized else (time,)


def class_of(value: int, bounds: Sequence[int]) -> int:
    """Give how many of the ascending bounds lie below a value."""
    return bisect_left(bounds, value)


def _kinds() -> dict[str, Kind]:
    found = {}
    owners: tuple[Literal["user", "project"] | None, ...] = ("user", "project", None)
    for who in owners:
        for time in ("request", "class"):
            for size in ("size", None):
                word = "+".join(filter(None, (who, time, size)))
                found[word] = Kind(word, who, time == "request", size is not None)
    return found


KINDS = _kinds()
"""All kinds, by their words."""

DEFAULT_BACK_OFF = (
    "user+request+size",
    "user+request",
    "user+class+size",
    "user+class",
    "project+class+size",
    "project+class",
    "class+size",
    "class",
)


@dataclass(frozen=True, slots=True)
class BackOff:
    """Where to look for a job's row.

    Attributes
    ----------
    size_bounds
        Ascending upper ends of the classes of processors, each part of its class.
    kinds
        Words of `KINDS`, in the order to look in, each once.
    """

    size_bounds: tuple[int, ...]
    kinds: tuple[str, ...] = DEFAULT_BACK_OFF

    def __post_init__(self) -> None:
        if any(bound < 1 for bound in self.size_bounds) or list(self.size_bounds) != sorted(
            set(self.size_bounds)
        ):
            raise InputError(f"classes of processors: {self.size_bounds} must ascend from 1")
        for word in self.kinds:
            if word not in KINDS:
                raise InputError(
                    f"back-off: {word!r} is no kind of jobs. Valid: {', '.join(KINDS)}"
                )
        if not self.kinds or len(set(self.kinds)) < len(self.kinds):
            raise InputError(f"back-off: {self.kinds} must name kinds, at least one, each once")


@dataclass(frozen=True, slots=True)
class LearnedRow:
    """What jobs of one kind are planned with, as a share of what they ask for.

    Attributes
    ----------
    kind
        A word of `KINDS`.
    name
        Whose they are, as the scheduler knows them; `NOBODY` where the kind has no name.
    values
        Numbers of the kind (`Kind.values`).
    adjustment_micro
        A in whole millionths, 0 to 1,000,000.
    largest_processor_seconds
        Largest processors x requested_time that the row applies to; ``None``: any.
    """

    kind: str
    name: str
    values: tuple[int, ...]
    adjustment_micro: int
    largest_processor_seconds: int | None = None

    @property
    def key(self) -> tuple[str, str, tuple[int, ...]]:
        """What tells rows apart."""
        return self.kind, self.name, self.values
