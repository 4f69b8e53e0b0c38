"""Jobs as PBS's scheduler sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError

FIVE_YEARS_S = 5 * 365 * 86_400
"""What a job without a walltime is planned with (JOB_INFINITY in constant.h)."""

_PLACES = ("free", "pack", "scatter")


@dataclass(frozen=True, slots=True)
class Chunk:
    """``count`` chunks of a select statement that are alike.

    Attributes
    ----------
    count
        How many.
    resources
        What each asks for that is counted; bytes of memory.
    labels
        What its host must have.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.job import Chunk
    >>> Chunk(2, {"ncpus": 4}).count
    2
    """

    count: int
    resources: Mapping[str, int]
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PbsJob:
    """A job, from its submission on.

    Attributes
    ----------
    index
        Its number, ascending in the order of submission.
    submit_time, runtime_s
        When it is submitted, and how long it runs if nothing ends it.
    chunks
        Its select statement.
    user, group, project, queue
        Whose it is, and where it waits.
    walltime_s, soft_walltime_s
        ``None``: it has none.
    place
        ``free``, ``pack`` or ``scatter``.
    exclusive
        ``place=excl``: its hosts are its own.
    priority
        ``qsub -p``.
    kill_delay_s
        How long it holds its hosts past its walltime, where it outlives that, until MoM has killed
        it.
    resources
        Further numbers of its own list (``Resource_List``), which formulas may name.

    Raises
    ------
    InputError
        If it says what is not modelled.

    Examples
    --------
    >>> from foretime_sim.reference.pbs.job import Chunk, PbsJob
    >>> job = PbsJob(0, 0, 60, (Chunk(2, {"ncpus": 4}),), walltime_s=300, soft_walltime_s=100)
    >>> job.list["ncpus"], job.planned_s
    (8, 100)
    """

    index: int
    submit_time: int
    runtime_s: int
    chunks: tuple[Chunk, ...]
    user: str = "user"
    group: str = "group"
    project: str = "_pbs_project_default"
    queue: str = "workq"
    walltime_s: int | None = None
    soft_walltime_s: int | None = None
    place: str = "free"
    exclusive: bool = False
    priority: int = 0
    kill_delay_s: int = 0
    resources: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.place not in _PLACES:
            raise InputError(
                f"job {self.index}: place={self.place} is not modelled: give {', '.join(_PLACES)}"
            )
        if not self.chunks or any(chunk.count < 1 for chunk in self.chunks):
            raise InputError(f"job {self.index} asks for no chunks: give at least one")
        if {"min_walltime", "max_walltime"} & self.resources.keys():
            raise InputError(f"job {self.index}: jobs that shrink to fit are not modelled")
        if self.soft_walltime_s is not None and self.soft_walltime_s < 1:
            raise InputError(
                f"job {self.index}: a soft_walltime of {self.soft_walltime_s} ends PBS's scheduler:"
                " give at least 1"
            )

    @property
    def list(self) -> dict[str, float]:
        """Give its Resource_List: what all chunks ask for together, and its times."""
        found: dict[str, float] = dict(self.resources)
        for chunk in self.chunks:
            for name, amount in chunk.resources.items():
                found[name] = found.get(name, 0) + chunk.count * amount
        if self.walltime_s is not None:
            found["walltime"] = self.walltime_s
        if self.soft_walltime_s is not None:
            found["soft_walltime"] = self.soft_walltime_s
        return found

    @property
    def hard_s(self) -> int:
        """How long it may run at most, as the scheduler counts."""
        return FIVE_YEARS_S if self.walltime_s is None else self.walltime_s

    @property
    def planned_s(self) -> int:
        """What it is planned with until it runs: its soft_walltime, or its walltime."""
        return self.hard_s if self.soft_walltime_s is None else self.soft_walltime_s

    @property
    def held_s(self) -> int:
        """How long it holds its hosts."""
        if self.walltime_s is None:
            return self.runtime_s
        return min(self.runtime_s, self.walltime_s + self.kill_delay_s)

    def planned_end(self, start: int, now: int) -> int:
        """Say when a running job is assumed to end (``set_job_times`` in job_info.cpp).

        Past its soft_walltime it is extended by whole soft_walltimes, up to its walltime. Past its
        walltime it is expected to be killed within a second.
        """
        end = start + self.planned_s
        if end >= now:
            return end
        if self.soft_walltime_s is None:
            return now + 1
        extended = self.soft_walltime_s * (1 + (now - start) // self.soft_walltime_s)
        return start + min(extended, self.hard_s)
