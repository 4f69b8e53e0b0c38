"""The runs that are there: one CSV file each, small enough to be kept in a repository."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.files.whole_files import write_whole

from foretime_studies.live_slurm.arms import ARMS

_COLUMNS = ("submit_s", "start_s", "end_s")
_TAU_S = 10
"""Shorter jobs count so long in slowdowns (Feitelson 1998)."""


@dataclass(frozen=True, slots=True, order=True)
class RunName:
    """Which run: the number tells the runs of an arm apart, from 1 on."""

    workload: str
    release: str
    arm: str
    number: int

    def __str__(self) -> str:
        return f"{self.workload} on {self.release}, {self.arm} {self.number}"

    def path(self, folder: Path) -> Path:
        """Give where its file is."""
        return folder / self.workload / self.release / f"{self.arm}-{self.number}.csv"

    @classmethod
    def of(cls, path: Path) -> Self:
        """Read it off the file's path.

        Raises
        ------
        InputError
            If no run has such a path.
        """
        arm, _, number = path.stem.rpartition("-")
        if arm not in ARMS or not number.isdecimal():
            raise InputError(f"{path}: is not the file of a run, such as plain-1.csv")
        return cls(path.parts[-3], path.parts[-2], arm, int(number))


@dataclass(frozen=True, slots=True)
class Circumstances:
    """How a run went besides.

    Attributes
    ----------
    version
        Of Slurm.
    latest_s
        How much later than planned a job was submitted at most, seconds.
    longest_over_s
        How much longer than its script sleeps a job took at most, seconds.
    load
        The machine's mean load while it ran.
    raised, missed
        How often a job was raised, and how often it had not started by the next look.
    """

    version: str
    latest_s: float
    longest_over_s: int
    load: float
    raised: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class LiveRun:
    """What came of a run: of each job, in the workload's order.

    Attributes
    ----------
    name
        Which.
    submit_s, start_s, end_s
        Seconds after the beginning.
    circumstances
        How it went.
    """

    name: RunName
    submit_s: Int64Array
    start_s: Int64Array
    end_s: Int64Array
    circumstances: Circumstances

    @property
    def wait(self) -> Int64Array:
        """Of each job, seconds."""
        return self.start_s - self.submit_s

    @property
    def slowdown(self) -> Float64Array:
        """Bounded slowdown of each job."""
        runtime = self.end_s - self.start_s
        bounded: Float64Array = np.maximum((self.wait + runtime) / np.maximum(runtime, _TAU_S), 1)
        return bounded

    def write(self, path: Path) -> None:
        """Write it as CSV, with how it went in a remark."""
        text = io.StringIO()
        text.write(f"# {json.dumps(asdict(self.circumstances))}\n")
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(_COLUMNS)
        rows.writerows(np.column_stack((self.submit_s, self.start_s, self.end_s)).tolist())
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text.getvalue().encode())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read what `write` wrote.

        Raises
        ------
        InputError
            If it is no such file.
        """
        name = RunName.of(path)
        try:
            first, *rest = path.read_text(encoding="utf-8").splitlines()
            circumstances = Circumstances(**json.loads(first.removeprefix("# ")))
            rows = [[int(row[column]) for column in _COLUMNS] for row in csv.DictReader(rest)]
            submit_s, start_s, end_s = np.array(rows, dtype=np.int64).T
            return cls(name, submit_s, start_s, end_s, circumstances)
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"{path}: is not a run of live-slurm: {error}") from error


def kept_runs(folder: Path) -> list[LiveRun]:
    """Read all runs of a folder, in order."""
    return sorted((LiveRun.read(path) for path in folder.glob("*/*/*.csv")), key=lambda r: r.name)
