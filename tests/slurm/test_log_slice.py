"""A slice of a real log, on a live Slurm and on the mock, starts its jobs in the same order.

A hundred jobs of KTH's SP2 (1996), its busiest morning among those without very long jobs. Arrivals
and runtimes run 300 times as fast, and an hour asked for is a minute, Slurm's smallest limit.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_sidecar.table.table import TableRow
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.slurm.hook import LuaHook
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.workloads.workload import Workload

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import USERS
from tests.slurm.harness.slurm_releases import SlurmRelease

LOG = "KTH-SP2-1996-2.1-cln.swf.gz"
FIRST, JOBS = 19_440, 100
SPEED = 300
HOUR_S = 3600
PROCESSORS = 100
ROWS = [TableRow("user", user, 0, 250_000) for user in USERS[:4]]
# Slurm notices an end, and plans, every second or two; a job is launched in about one.
TOLERANCE_S = 5
SAME_ORDER = 0.95
LONGEST_S = 420

Starts = Int64Array


@dataclass(frozen=True)
class Job:
    """A job of the slice, on the test's clock."""

    submit_time: int
    processors: int
    runtime: int
    limit_min: int
    user: str


def traces() -> Path:
    default = Path(__file__).resolve().parents[3] / "shared" / "traces"
    return Path(os.environ.get("FORETIME_TRACES", default))


def slice_of(workload: Workload) -> list[Job]:
    jobs = range(FIRST, FIRST + JOBS)
    assert workload.users is not None
    begin = workload.submit_time[FIRST]
    return [
        Job(
            int(workload.submit_time[job] - begin) // SPEED,
            int(workload.processors[job]),
            max(int(workload.actual_runtime[job]) // SPEED, 1),
            max(-(-int(workload.requested_time[job]) // HOUR_S), 1),
            USERS[int(workload.users.codes[job]) % len(USERS)],
        )
        for job in jobs
    ]


def on_mock(jobs: list[Job], cluster: SlurmCluster, hooked: bool) -> Starts:
    mechanism = Mechanism.SLURM_SOFT_LIMIT
    if not cluster.release.soft_limit:
        mechanism = Mechanism.REWRITE_LIMIT
    begin = int(time.time())
    policy = Policy(backfill=Backfill.CONSERVATIVE, correction=Correction.SLURM)
    hook = LuaHook(table=cluster.table) if hooked else None
    slurm = MockSlurm(SlurmSetup(PROCESSORS, mechanism), policy, hook, begin)
    for job in jobs:
        slurm.advance(begin + job.submit_time)
        slurm.submit(
            Submission(job.user, None, None, job.processors, 60 * job.limit_min, job.runtime)
        )
    slurm.finish()
    return np.asarray(slurm.schedule().start_time) - begin


def all_started(cluster: SlurmCluster) -> bool:
    return all(job["JobState"] not in ("PENDING", "CONFIGURING") for job in cluster.jobs())


def on_cluster(jobs: list[Job], clusters: list[SlurmCluster]) -> list[Starts]:
    """Submit the same jobs at the same times to several clusters; gives their starts."""
    ids: list[list[str]] = [[] for _ in clusters]
    began = time.time()
    for job in jobs:
        time.sleep(max(began + job.submit_time - time.time(), 0))
        for cluster, known in zip(clusters, ids, strict=True):
            options = ("-n", str(job.processors), "-t", str(job.limit_min))
            known.append(cluster.sbatch(*options, user=job.user, script=f"sleep {job.runtime}"))
    starts = []
    until = began + LONGEST_S
    for cluster, known in zip(clusters, ids, strict=True):
        started = partial(all_started, cluster)
        cluster.wait_for(started, "all jobs to start", max(until - time.time(), 1))
        start_of = {job["JobId"]: int(job["StartTime"]) for job in cluster.jobs()}
        starts.append(np.array([start_of[job_id] for job_id in known]) - int(began))
    return starts


def EXPERIMENT(release: SlurmRelease) -> dict[str, tuple[Starts, Starts]]:  # noqa: N802
    """Give for the hooked and the plain cluster the starts on the mock and on the real one."""
    path = traces() / LOG
    if not path.exists():
        return {}
    jobs = slice_of(workload_of_log(read_log(path))[0])
    cpus = PROCESSORS // 4
    with SlurmCluster(release, cpus=cpus) as hooked, SlurmCluster(release, cpus=cpus) as plain:
        hooked.install_hook(ROWS)
        real = on_cluster(jobs, [hooked, plain])
        return {
            "hooked": (on_mock(jobs, hooked, hooked=True), real[0]),
            "plain": (on_mock(jobs, plain, hooked=False), real[1]),
        }


def same_order(mock: Starts, real: Starts) -> float:
    """Share of the pairs, more than the tolerance apart on the mock, in the same order."""
    apart = mock[None, :] - mock[:, None] > TOLERANCE_S
    return float((real[None, :] >= real[:, None])[apart].mean())


@pytest.mark.traces
@pytest.mark.parametrize("cluster", ["hooked", "plain"])
def test_same_order_as_the_mock(experiment: dict[str, tuple[Starts, Starts]], cluster: str) -> None:
    if not experiment:
        pytest.skip(f"no {LOG} in {traces()}; set FORETIME_TRACES to the folder of real logs")
    mock, real = experiment[cluster]
    assert len(real) == JOBS
    assert same_order(mock, real) >= SAME_ORDER


@pytest.mark.traces
def test_the_hook_changes_the_order(experiment: dict[str, tuple[Starts, Starts]]) -> None:
    """Or the test above would say nothing of it."""
    if not experiment:
        pytest.skip(f"no {LOG} in {traces()}; set FORETIME_TRACES to the folder of real logs")
    assert (experiment["hooked"][0] != experiment["plain"][0]).sum() >= JOBS // 10
