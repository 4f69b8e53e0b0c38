"""Draws the workloads of ``foretime study live-slurm``, once and for all.

``python -m tests.slurm.runs.arm_workloads`` writes their files, which a test compares.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path

import foretime_studies.live_slurm
from foretime_studies.live_slurm.arms import MACHINE

from tests.slurm.runs.job_generator import JobRecipe, jobs_of
from tests.slurm.runs.run_job import RunJob

FOLDER = Path(foretime_studies.live_slurm.__file__).parent / "workloads"
_COLUMNS = ("submit_s", "user", "tasks", "time_limit_min", "runtime_s")
_BEFORE = 500
_DAYS_AGO_S = 3 * 86_400


@dataclass(frozen=True, slots=True)
class Draw:
    """How a workload is drawn: its jobs, and others of the same users, three days before."""

    seed: int
    load: float
    median_runtime_s: float
    jobs: int = 400

    def jobs_and_before(self) -> tuple[list[RunJob], list[RunJob]]:
        """Draw them."""
        recipe = JobRecipe(
            jobs=self.jobs,
            load=self.load,
            median_runtime_s=self.median_runtime_s,
            longest_runtime_s=600,
            longest_limit_min=60,
        )
        jobs = jobs_of(recipe, MACHINE.cpus, self.seed)
        more = jobs_of(replace(recipe, jobs=self.jobs + _BEFORE), MACHINE.cpus, self.seed)
        before = [replace(job, submit_s=job.submit_s - _DAYS_AGO_S) for job in more[self.jobs :]]
        return jobs, before


DRAWS = {
    "heavy-1": Draw(seed=11, load=1.3, median_runtime_s=60.0),
    "heavy-2": Draw(seed=12, load=1.3, median_runtime_s=60.0),
    "light": Draw(seed=13, load=0.7, median_runtime_s=40.0),
}


def short() -> tuple[list[RunJob], list[RunJob]]:
    """Give a workload of three minutes for a test: who waits in it does not hang on seconds.

    Half of the cluster is taken, the first job that waits needs all of it, and jobs that ask for
    an hour and take ten seconds stand behind it.
    """
    last = RunJob(0, "bob", 2, 100, 50)
    head = RunJob(2, "bob", 2, 20, 100)
    quick = [RunJob(5 + 2 * place, "alice", 60, 10, 10) for place in range(38)]
    before = [
        RunJob(60 * place - _DAYS_AGO_S, user, limit, runtime, 10)
        for place in range(20)
        for user, limit, runtime in (("alice", 60, 10), ("bob", 2, 100))
    ]
    return [last, head, *quick], before


def text_of(jobs: list[RunJob], before: list[RunJob]) -> str:
    """Give the file of a workload."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(_COLUMNS)
    rows.writerows([getattr(job, column) for column in _COLUMNS] for job in (*before, *jobs))
    return text.getvalue()


def files() -> dict[str, str]:
    """Give the text of each workload's file by its name."""
    drawn = {name: draw.jobs_and_before() for name, draw in DRAWS.items()}
    return {name: text_of(*jobs) for name, jobs in (*drawn.items(), ("short", short()))}


def main() -> None:
    """Write the files."""
    for name, text in files().items():
        (FOLDER / f"{name}.csv").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
