"""Live runs as they were recorded, and the same jobs for the model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array
from foretime_sim.reference.slurm.cluster import WAKES_WITH_SECONDS_VERSION
from foretime_sim.reference.slurm.fractions import START_S, Fractions
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload

from tests.slurm.runs.run_configurations import RunConfiguration
from tests.slurm.runs.run_job import RunJob, nodes_of_job, parts_of, workload_of

SBATCH_COUNTS_NODES_VERSION = (24, 11)
"""Some release between 22.05 and 26.05."""
RESULTS = Path(__file__).resolve().parents[2] / "assets/slurm/runs"


@dataclass(frozen=True)
class RecordedRun:
    """One run; arrays have a value for each job, tasks of arrays one by one (`parts_of`).

    Attributes
    ----------
    name
        Such as ``26.05-1``.
    submit, start, end
        Seconds after the beginning; -1 of jobs that were refused or never started.
    scheduler
        ``Main`` or ``Backfill``: which loop started it.
    nodes
        As Slurm writes them.
    state
        At the end; of refused jobs the reason.
    outcome
        All of it.
    """

    name: str
    submit: Int64Array
    start: Int64Array
    end: Int64Array
    scheduler: list[str | None]
    nodes: list[str | None]
    state: list[str]
    outcome: dict[str, Any]

    @property
    def wait(self) -> Int64Array:
        """Seconds from submission to start, of jobs that started."""
        started = self.start >= 0
        return (self.start - self.submit)[started]

    @property
    def began(self) -> Int64Array:
        """When each job began: of one that the main loop started, the second of that run.

        As a second begins slurmctld may take the one before for now, and write that down.
        """
        main_runs = {int(at) for at, _ in self.outcome["main_loops"]}
        early = [
            loop == "Main" and start >= 0 and start not in main_runs and start + 1 in main_runs
            for start, loop in zip(self.start.tolist(), self.scheduler, strict=True)
        ]
        return self.start + np.array(early, dtype=np.int64)

    @property
    def fractions(self) -> Fractions:
        """At which fractions of a second its loops ran, and jobs came and went."""
        main_runs = [float(at) for at, _ in self.outcome["main_loops"]]
        fulls = [float(at) for at, kind in self.outcome["main_loops"] if kind == "f"]
        version = tuple(map(int, self.outcome["version"].split(".")))
        return Fractions(
            main=0.0,
            # The decay thread has the fraction that the background thread began with.
            tick=fulls[0] % 1 if fulls else 0.0,
            submission=START_S,
            main_runs=() if version >= WAKES_WITH_SECONDS_VERSION else main_runs,
            backfill_runs=[float(begin) for begin, _, _ in self.outcome["backfill_cycles"]],
        )

    @property
    def looks_at_limits(self) -> list[int]:
        """When slurmctld found jobs over their limits, as far as there were any."""
        ended = zip(self.end.tolist(), self.state, strict=True)
        return sorted({end for end, state in ended if state == "TIMEOUT"})

    def slurmctld_started(self, bf_interval: int) -> int:
        """Give a second at or before the beginning from which the loops' periods count.

        Both count from slurmctld's start: backfill by ``bf_interval``, the full queue by a minute.
        """
        first_cycle = int(self.outcome["backfill_cycles"][0][0])
        fulls = [at for at, kind in self.outcome["main_loops"] if kind == "f"]
        starts = range(first_cycle % bf_interval - bf_interval - 60, 1, bf_interval)
        if not fulls:
            return starts[-1]

        def off(start: int) -> float:
            return round(abs((float(fulls[0]) - start + 30) % 60 - 30), 3)

        # Of those that the loops do not tell apart the latest: PriorityCalcPeriod counts from it.
        return min(reversed(starts), key=off)


def read_run(path: Path) -> RecordedRun:
    """Read the outcome of one run."""
    outcome = json.loads(path.read_text(encoding="utf-8"))
    columns = dict(zip(outcome["columns"], zip(*outcome["jobs"], strict=True), strict=True))

    def seconds(name: str) -> Int64Array:
        return np.array([-1 if at is None else at for at in columns[name]], dtype=np.int64)

    return RecordedRun(
        name=path.stem,
        submit=seconds("submit"),
        start=seconds("start"),
        end=seconds("end"),
        scheduler=list(columns["scheduler"]),
        nodes=list(columns["nodes"]),
        state=list(columns["state"]),
        outcome=outcome,
    )


def recorded_runs(configuration: str, release: str) -> list[RecordedRun]:
    """Give the runs of a configuration on a release; empty if none is recorded."""
    paths = sorted((RESULTS / configuration).glob(f"{release}-[0-9]*.json"))
    return [read_run(path) for path in paths]


def samples_of(configuration: str, run: str) -> dict[str, Any]:
    """Give what was sampled during a run: ``samples`` and ``site``."""
    packed = (RESULTS / configuration / f"{run}.samples.json.gz").read_bytes()
    found: dict[str, Any] = json.loads(gzip.decompress(packed))
    return found


def model_input(
    configuration: RunConfiguration, runs: Sequence[RecordedRun]
) -> tuple[Workload, SlurmSite, SiteJobs]:
    """Give what the model needs to live these runs.

    Submissions and runtimes are those of the first run: sbatch and starting a job take their time.
    The clock is its clock, as backfill's minutes begin with the clock's. Jobs that it refused, or
    killed at their limits, keep their runtimes as asked.
    """
    first = runs[0]
    jobs = configuration.jobs()
    asked, site_jobs = workload_of(
        configuration.name,
        configuration.site.machine,
        jobs,
        unix_start_time=int(first.outcome["zero"]),
    )
    ran = (first.start >= 0) & (first.end >= first.began)
    ran &= np.array([state != "TIMEOUT" for state in first.state])
    submitted = np.where(first.submit >= 0, first.submit, asked.submit_time)
    runtime = np.where(ran, first.end - first.began, asked.actual_runtime)
    version = first.outcome["version"].split(".")
    site = replace(configuration.site, version=(int(version[0]), int(version[1])))
    site_jobs = replace(site_jobs, site_factor=less_for_nodes(site, jobs))
    return replace(asked, submit_time=submitted, actual_runtime=runtime), site, site_jobs


def less_for_nodes(site: SlurmSite, jobs: Sequence[RunJob]) -> MaskedInt64Array | None:
    """Take off what 22.05 leaves out of a job's size, as a workload can't say it.

    A job with ``--ntasks-per-node`` and without ``--nodes`` counts as one of a single node there
    (its min_nodes); so said 22.05's log of all such jobs of ubccr-micro. sbatch of 26.05 works the
    nodes out.
    """
    each = site.priority.weight_job_size / 2 / sum(one.nodes for one in site.machine.node_groups)
    parts = [jobs[number] for number, _ in parts_of(jobs)]
    less = [
        -round(each * ((nodes_of_job(job) or 1) - 1)) if job.nodes is None else 0 for job in parts
    ]
    if site.version >= SBATCH_COUNTS_NODES_VERSION or not any(less):
        return None
    return np.ma.array(less, dtype=np.int64)
