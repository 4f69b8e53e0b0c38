"""The jobs that are run, and those that the daemon knows of from before: files in ``workloads``."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Self

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import Workload

from foretime_studies.live_slurm.arms import ACCOUNT, MACHINE, SLURM_PARTITION

EPOCH = 1_800_000_000
"""Epoch seconds of a replay's beginning."""
_FOLDER = "workloads"


@dataclass(frozen=True, slots=True)
class LiveJob:
    """One submission.

    Attributes
    ----------
    submit_s
        Seconds after the run's beginning; below 0 for jobs of before, which nobody runs.
    user
        Whose it is.
    tasks
        CPUs, wherever they are.
    time_limit_min
        What it asks for, minutes.
    runtime_s
        How long it takes.
    """

    submit_s: int
    user: str
    tasks: int
    time_limit_min: int
    runtime_s: int


@dataclass(frozen=True, slots=True)
class LiveWorkload:
    """Jobs that are run, by their submissions.

    Attributes
    ----------
    name
        Of the file.
    jobs, before
        Those that are run, and those that had ended before.
    """

    name: str
    jobs: tuple[LiveJob, ...]
    before: tuple[LiveJob, ...]

    @classmethod
    def named(cls, name: str) -> Self:
        """Read one of `workload_names`.

        Raises
        ------
        InputError
            If there is none of this name.
        """
        if name not in workload_names():
            raise InputError(f"no workload {name!r}; there are {', '.join(workload_names())}")
        text = (files(__package__) / _FOLDER / f"{name}.csv").read_text(encoding="utf-8")
        rows = [
            LiveJob(
                *(int(row["submit_s"]), row["user"], int(row["tasks"])),
                *(int(row["time_limit_min"]), int(row["runtime_s"])),
            )
            for row in csv.DictReader(text.splitlines())
        ]
        before = tuple(job for job in rows if job.submit_s < 0)
        return cls(name, tuple(job for job in rows if job.submit_s >= 0), before)

    @property
    def users(self) -> list[str]:
        """Whose jobs there are."""
        return sorted({job.user for job in (*self.jobs, *self.before)})

    @property
    def load(self) -> float:
        """CPU seconds of the jobs, over those of the cluster until the last submission."""
        return _area(self.jobs) / MACHINE.cpus / max(self.jobs[-1].submit_s, 1)

    @property
    def heavy(self) -> bool:
        """Whether more comes than the cluster can do."""
        return self.load > 1

    def columns(self) -> Workload:
        """Give the jobs that are run, for a replay."""
        return _columns(self.name, self.jobs)

    def columns_before(self) -> Workload:
        """Give the jobs of before, for a replay."""
        return _columns(f"{self.name}, before", self.before)


def workload_names() -> list[str]:
    """Give the names of all workloads."""
    folder = files(__package__) / _FOLDER
    return sorted(path.name.removesuffix(".csv") for path in folder.iterdir())


def _area(jobs: Sequence[LiveJob]) -> int:
    return sum(job.tasks * job.runtime_s for job in jobs)


def _columns(name: str, jobs: Sequence[LiveJob]) -> Workload:
    def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array(values, dtype=np.int64)

    users = tuple(sorted({job.user for job in jobs}))
    same = np.zeros(len(jobs), dtype=np.int32)
    tasks = column([job.tasks for job in jobs])
    first = min(min((job.submit_s for job in jobs), default=0), 0)
    return Workload(
        name=name,
        machine_processors=MACHINE.cpus,
        unix_start_time=EPOCH + first,
        job_id=column(list(range(1, len(jobs) + 1))),
        submit_time=column([job.submit_s - first for job in jobs]),
        processors=tasks,
        actual_runtime=column([job.runtime_s for job in jobs]),
        requested_time=column([60 * job.time_limit_min for job in jobs]),
        users=Labels(np.array([users.index(job.user) for job in jobs], dtype=np.int32), users),
        projects=Labels(same, (ACCOUNT,)),
        queues=Labels(same, (SLURM_PARTITION,)),
        requests=ResourceRequests(tasks=np.ma.array(tasks, mask=False)),
        machine=MACHINE,
    )
