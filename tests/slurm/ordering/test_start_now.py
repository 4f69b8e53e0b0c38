"""Jobs started at once on a live Slurm: raised, started by Slurm, and no more."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from tests.slurm.harness.raising_site import LIMIT_MIN, RaisingSite, leave_two_cpus_idle, look
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease


@pytest.fixture
def slurm(release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]) -> SlurmCluster:
    """Two of eight CPUs are idle for an hour, until the job at the head can start."""
    cluster = new_cluster(release, nodes=2, conf={"PriorityType": "priority/multifactor"})
    leave_two_cpus_idle(cluster)
    return cluster


@pytest.fixture
def site(slurm: SlurmCluster) -> Iterator[RaisingSite]:
    site = RaisingSite(slurm, "start-now")
    yield site
    site.kill()


@pytest.mark.every_release
def test_slurm_starts_what_is_expected_to_end_in_time(
    slurm: SlurmCluster, site: RaisingSite
) -> None:
    """Two hours are asked for, a minute is expected; bob's job takes all of its five hours."""
    sidecar = site.start()
    other = slurm.sbatch("-n1", "-t300", user="bob")
    job = site.submit()
    time.sleep(5)  # backfill has looked at them
    states = {slurm.job(each)["JobState"] for each in (job, other)}
    assert states == {"PENDING"}, "by itself Slurm starts neither"
    look(sidecar)
    slurm.wait_for_state(job, "RUNNING")
    shown = slurm.job(job)
    assert shown["TimeLimit"] == "02:00:00"
    assert slurm.job(other)["JobState"] == "PENDING"
    look(sidecar)
    starts = sidecar.scheduler.starts
    assert starts is not None
    assert (starts.raised, starts.missed, starts.refused) == (1, 0, "")
    assert set(site.factors().values()) == {0}


def test_of_an_array_a_task_is_started_at_each_look(slurm: SlurmCluster, site: RaisingSite) -> None:
    sidecar = site.start()
    array = slurm.sbatch("-n1", f"-t{LIMIT_MIN}", "--array=1-4", user="alice")
    slurm.wait_for(lambda: len(site.factors()) == 2, "priorities")

    def running() -> list[str]:
        shown = slurm.checked(["squeue", "-h", "-r", "-t", "R", "-u", "alice", "-o", "%i"])
        return sorted(shown.split())

    look(sidecar)
    slurm.wait_for(lambda: running() == [f"{array}_1"], "the first task to run")
    look(sidecar)
    slurm.wait_for(lambda: running() == [f"{array}_1", f"{array}_2"], "two tasks to run")
    look(sidecar)
    time.sleep(3)
    assert len(running()) == 2, "no CPU is left"
    assert set(site.factors().values()) == {0}
    starts = sidecar.scheduler.starts
    assert starts is not None
    assert (starts.raised, starts.missed) == (2, 0)
