"""What jobs of a queue wait for, and throttles of arrays, by their columns in a snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from foretime_sim.engine.admission import After, Dependencies, GroupLimit

from foretime_sidecar.clients.client import QueuedJob

_MINUTES = re.compile(r"\d{1,9}", re.ASCII)  # more are no delay of Slurm's
_CONDITION = re.compile(r"([a-z]+)((?::[^:(]+)+)?(?:\(.*\))?", re.ASCII)
# That a job ends well is taken for granted; which task waits for which is not looked at.
EVENTS = {
    "after": After.START,
    "afterany": After.END,
    "afterok": After.END,
    "aftercorr": After.END,
    "afterburstbuffer": After.END,
}
SINGLETON = "singleton"


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that a job waits for.

    Attributes
    ----------
    kind
        Slurm's word, such as "afterany".
    job_id
        Of the job that it waits for, as Slurm writes it; "" for a singleton.
    delay_s
        After the event, seconds.
    """

    kind: str
    job_id: str
    delay_s: int = 0


def conditions_of(dependency: str) -> tuple[tuple[Condition, ...], bool]:
    """Read what a job waits for as Slurm writes it; and whether one of it is enough.

    Such as ``afterok:13(unfulfilled),after:14+5``: minutes after the plus sign.
    """
    any_suffices = "?" in dependency
    found: list[Condition] = []
    for part in re.split(r"[,?]", dependency):
        match = _CONDITION.fullmatch(part.strip())
        if match is None:
            continue
        if match[2] is None:
            found.append(Condition(match[1], ""))
            continue
        for job_id in match[2].removeprefix(":").split(":"):
            number, _, minutes = job_id.partition("+")
            delay_s = int(minutes) * 60 if _MINUTES.fullmatch(minutes) else 0
            found.append(Condition(match[1], number.removesuffix("_*"), delay_s))
    return tuple(found), any_suffices


def why_not_released(job: QueuedJob, left_out: Mapping[str, str]) -> str | None:
    """Say why a job can't be said to be released ever; ``None`` if it can.

    Parameters
    ----------
    job
        That waits for others.
    left_out
        Identifiers of jobs that are left out, and why.
    """
    if not job.dependent:
        return None
    conditions, any_suffices = conditions_of(job.dependency)
    obstacles = []
    for each in conditions:
        obstacle = None
        if each.kind not in EVENTS and each.kind != SINGLETON:
            obstacle = f"waits for what is not foreseen ({each.kind})"
        for job_id in (each.job_id, each.job_id.partition("_")[0]):
            if job_id in left_out:
                obstacle = f"waits for job {each.job_id}, which does not take part"
        obstacles.append(obstacle)
    hindered = [obstacle for obstacle in obstacles if obstacle]
    if not conditions:
        return "dependent"
    return (
        hindered[0] if hindered and not (any_suffices and len(hindered) < len(obstacles)) else None
    )


@dataclass(frozen=True, slots=True)
class JobColumns:
    """Running jobs, then pending ones, each task of an array in a column of its own.

    Attributes
    ----------
    running, pending
        The scheduler's records; one of the pending may stand for several tasks.
    first
        First column of each pending record.
    columns
        By identifier of a job, a task or a whole array.

    Both are empty where no job waits for another and no array has a limit.
    """

    running: Sequence[QueuedJob]
    pending: Sequence[QueuedJob]
    first: Sequence[int]
    columns: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, running: Sequence[QueuedJob], pending: Sequence[QueuedJob]) -> JobColumns:
        """Give jobs their columns."""
        columns: dict[str, list[int]] = {}
        first: list[int] = []
        column = 0
        if not any(job.dependent or job.array_limit for job in (*running, *pending)):
            return cls(running, pending, first, columns)  # nobody looks one up
        for job in (*running, *pending):
            first.append(column)
            for task in job.task_ids:
                array = job.request.array_id
                for name in dict.fromkeys((task, job.request.job_id, array or task)):
                    columns.setdefault(name, []).append(column)
                column += 1
        return cls(running, pending, first[len(running) :], columns)

    def dependencies(self) -> Dependencies | None:
        """Give what the pending jobs wait for of these jobs; of others, it has happened."""
        rows = []
        for place, job in enumerate(self.pending):
            if not job.dependent:
                continue
            conditions, any_suffices = conditions_of(job.dependency)
            events = [event for each in conditions for event in self._events(place, each)]
            own = self.first[place] - len(self.running)
            rows += [
                (own + task, on, event, delay_s, int(any_suffices))
                for task in range(job.tasks)
                for on, event, delay_s in events
            ]
        return Dependencies.of_rows(rows) if rows else None

    def _events(self, place: int, condition: Condition) -> Iterator[tuple[int, After, int]]:
        if condition.kind != SINGLETON:
            if (event := EVENTS.get(condition.kind)) is not None:
                for column in self.columns.get(condition.job_id, ()):
                    yield column, event, condition.delay_s
            return
        job = self.pending[place]

        def is_like(other: QueuedJob) -> bool:
            return (other.name, other.request.user) == (job.name, job.request.user)

        for column, other in enumerate(self.running):
            if is_like(other):
                yield column, After.END, 0
        for before, other in enumerate(self.pending[:place]):
            if is_like(other):
                for task in range(other.tasks):
                    yield self.first[before] + task, After.END, 0

    def array_limits(self) -> tuple[GroupLimit, ...]:
        """Give how many tasks of an array may run at once (``--array=...%N``)."""
        limits: dict[str, int] = {}
        for job in (*self.running, *self.pending):
            if job.array_limit is not None and job.request.array_id is not None:
                limits[job.request.array_id] = job.array_limit
        return tuple(
            GroupLimit(np.array(self.columns[array], dtype=np.int64), limit)
            for array, limit in limits.items()
        )
