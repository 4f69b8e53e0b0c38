"""The model against live runs of the same jobs: order of starts, and mean wait.

``python -m tests.slurm.runs.compare default --release 26.05`` prints both for the model's
specification; ``--jobs`` adds a line for each job, ``--at SECOND`` the queue at a moment.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_sim.reference.slurm.cluster import simulate_slurm
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload

from tests.slurm.runs.recorded_runs import RecordedRun, model_input, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS
from tests.slurm.runs.slurmctld_log import decisions_of

LEAST_SHARE = 0.97
WAIT_TOLERANCE = 0.05
_SAME_S = 5

Model: TypeAlias = Callable[[Workload, SlurmSite, SiteJobs, RecordedRun], Int64Array]
"""Gives each job's start, -1 of a job that never starts; loops have the phases of the run."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How a model's starts agree with live runs.

    Attributes
    ----------
    pairs
        Pairs of jobs that were pending together in every run and started in one order in all.
    in_order
        Of those, how many the model starts in that order; ``ties`` it starts in one second.
    live_waits
        Mean wait of each run, seconds.
    model_wait
        Of the model, over the same jobs.
    """

    pairs: int
    in_order: int
    ties: int
    live_waits: tuple[float, ...]
    model_wait: float

    @property
    def share(self) -> float:
        """Of the pairs, those in order; ties count as they are: not in order."""
        return self.in_order / self.pairs if self.pairs else 1.0

    @property
    def order_holds(self) -> bool:
        """Whether the order is that of the live runs."""
        return self.share >= LEAST_SHARE

    @property
    def wait_holds(self) -> bool:
        """Whether the mean wait is in the runs' range, or within 5% of their mean."""
        mean = sum(self.live_waits) / len(self.live_waits)
        within = abs(self.model_wait - mean) <= WAIT_TOLERANCE * mean
        return within or min(self.live_waits) <= self.model_wait <= max(self.live_waits)

    def __str__(self) -> str:
        live = ", ".join(f"{wait:.1f}" for wait in self.live_waits)
        return (
            f"{self.share:7.2%} of {self.pairs} pairs in order ({self.ties} ties),"
            f" mean wait {self.model_wait:.1f} s, live {live} s:"
            f" order {'holds' if self.order_holds else 'FAILS'},"
            f" wait {'holds' if self.wait_holds else 'FAILS'}"
        )


def agreement(runs: Sequence[RecordedRun], model_start: Int64Array) -> Agreement:
    """Compare a model's starts (-1: never) with live runs of the same jobs."""
    started = np.all([run.start >= 0 for run in runs], axis=0) & (model_start >= 0)
    before = _one_order(runs, started)
    pairs = np.count_nonzero(before)
    in_order = np.count_nonzero(before & (model_start[:, None] < model_start[None, :]))
    ties = np.count_nonzero(before & (model_start[:, None] == model_start[None, :]))
    submit = runs[0].submit
    return Agreement(
        pairs=int(pairs),
        in_order=int(in_order),
        ties=int(ties),
        live_waits=tuple(float(np.mean((run.start - run.submit)[started])) for run in runs),
        model_wait=float(np.mean((model_start - submit)[started])),
    )


def _one_order(runs: Sequence[RecordedRun], started: BoolArray) -> BoolArray:
    """Give for (i, j) whether both waited together in every run, and i started first in all."""
    size = len(started)
    before = started[:, None] & started[None, :] & ~np.eye(size, dtype=bool)
    for run in runs:
        together = np.maximum(run.submit[:, None], run.submit[None, :]) < np.minimum(
            run.start[:, None], run.start[None, :]
        )
        before &= together & (run.start[:, None] < run.start[None, :])
    return np.asarray(before)


def live_agreement(runs: Sequence[RecordedRun]) -> list[Agreement]:
    """Compare each run with the others: what the best model could reach."""
    return [
        agreement([other for other in runs if other is not run], run.start)
        for run in runs
        if len(runs) > 1
    ]


def specification(
    workload: Workload, site: SlurmSite, site_jobs: SiteJobs, run: RecordedRun
) -> Int64Array:
    """Give the starts of the plain Python specification."""
    found = simulate_slurm(
        workload,
        site,
        site_jobs,
        started_at=run.slurmctld_started(site.parameters.bf_interval),
        fractions=run.fractions,
        looks_at_limits=run.looks_at_limits,
    )
    starts = [-1 if at is None else at for at in found.start_times]
    return np.array(starts, dtype=np.int64)


# For people ---------------------------------------------------------------------------------------


def table_of_jobs(
    workload: Workload, runs: Sequence[RecordedRun], model_start: Int64Array
) -> list[str]:
    """Give a line for each job: what it asked for, its live starts and loops, and the model's."""
    lines = [" job  user  submit cpus  limit runtime | live starts (loop) | model  difference"]
    for job in range(len(workload)):
        live = " ".join(f"{run.start[job]:5d}{(run.scheduler[job] or '?')[0]}" for run in runs)
        middle = int(np.median([run.start[job] for run in runs]))
        user = workload.users.get(job) if workload.users else ""
        lines.append(
            f"{job:4d} {user or '':>6} {workload.submit_time[job]:6d} {workload.processors[job]:4d}"
            f" {workload.requested_time[job]:6d} {workload.actual_runtime[job]:7d} | {live} |"
            f" {model_start[job]:5d} {model_start[job] - middle:+6d}"
        )
    return lines


def first_difference(
    runs: Sequence[RecordedRun], model_start: Int64Array, tolerance_s: int = 5
) -> int | None:
    """Give the job that differs first: outside the runs' range by more than some seconds."""
    earliest = np.min([run.start for run in runs], axis=0) - tolerance_s
    latest = np.max([run.start for run in runs], axis=0) + tolerance_s
    different = (model_start < earliest) | (model_start > latest)
    if not different.any():
        return None
    when = np.minimum(model_start, np.min([run.start for run in runs], axis=0))
    return int(np.flatnonzero(different)[np.argmin(when[different])])


def queue_at(
    workload: Workload, submit: Int64Array, start: Int64Array, end: Int64Array, moment: int
) -> list[str]:
    """Give who runs (with the seconds left of limit and runtime) and who waits at a moment."""
    lines = []
    for job in range(len(workload)):
        what = f"{job:4d}: {workload.processors[job]:3d} CPUs, limit {workload.requested_time[job]}"
        if start[job] <= moment < end[job]:
            limit = start[job] + workload.requested_time[job]
            lines.append(f"runs  {what}, since {start[job]}, limit at {limit}, ends {end[job]}")
    for job in range(len(workload)):
        what = f"{job:4d}: {workload.processors[job]:3d} CPUs, limit {workload.requested_time[job]}"
        if submit[job] <= moment < start[job]:
            lines.append(f"waits {what}, since {submit[job]}, starts {start[job]}")
    return lines


def _print(name: str, release: str, model: Model, arguments: argparse.Namespace) -> None:
    runs = recorded_runs(name, release)
    if not runs:
        return
    starts = [_model_of(name, run, model) for run in runs]
    for run, start in zip(runs, starts, strict=True):
        first = first_difference([run], start)
        same = np.count_nonzero(np.abs(start - run.start) <= _SAME_S)
        print(
            f"{name} {release}: model with the submissions and runtimes of {run.name}\n"
            f"  all runs: {agreement(runs, start)}\n"
            f"  this run: {agreement([run], start)}\n"
            f"  {same} of {len(start)} jobs start within {_SAME_S} s of it; first to differ: "
            + (
                "none"
                if first is None
                else f"job {first}, live {run.start[first]}, model {start[first]}"
            )
        )
    for run, found in zip(runs, live_agreement(runs), strict=False):
        print(f"  {run.name} held against the others: {found}")
    workload, _, _ = model_input(CONFIGURATIONS[name], runs)
    if arguments.jobs:
        print("\n".join(table_of_jobs(workload, runs, starts[0])))
    if arguments.at is not None:
        _print_moment(name, workload, runs[0], starts[0], arguments)


def _print_moment(
    name: str,
    workload: Workload,
    run: RecordedRun,
    start: Int64Array,
    arguments: argparse.Namespace,
) -> None:
    if arguments.logs is not None:
        log = (arguments.logs / name / run.name / "slurmctld.log").read_text(errors="replace")
        zero = int(run.outcome["zero"])
        print(*decisions_of(log, zero, arguments.at - 35, arguments.at + 5), sep="\n")
    print("live:", *queue_at(workload, run.submit, run.start, run.end, arguments.at), sep="\n ")
    end = start + np.minimum(workload.actual_runtime, workload.requested_time)
    print("model:", *queue_at(workload, run.submit, start, end, arguments.at), sep="\n ")


def _model_of(name: str, run: RecordedRun, model: Model) -> Int64Array:
    workload, site, site_jobs = model_input(CONFIGURATIONS[name], [run])
    return model(workload, site, site_jobs, run)


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("configurations", nargs="*", help="all, unless named")
    parser.add_argument("--release", nargs="+", default=["26.05", "22.05"])
    parser.add_argument("--jobs", action="store_true", help="a line for each job")
    parser.add_argument("--at", type=int, help="the queue at this second")
    parser.add_argument("--logs", type=Path, help="FORETIME_RUN_LOGS: tell the live decisions")
    arguments = parser.parse_args()
    for name in arguments.configurations or CONFIGURATIONS:
        for release in arguments.release:
            _print(name, release, specification, arguments)


if __name__ == "__main__":
    main()
