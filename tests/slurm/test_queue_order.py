"""The queue put in order on a live Slurm: site factors, who starts first, and giving it back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foretime_sidecar.clients.slurm_commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.settings import Settings
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store

from tests.slurm.slurm_cluster import SlurmCluster
from tests.slurm.slurm_releases import SlurmRelease

MINUTES = {"a": 50, "b": 10, "array": 30, "c": 20}


@pytest.fixture
def slurm(
    release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]
) -> tuple[SlurmCluster, dict[str, str]]:
    """A cluster that is full, and jobs that wait by name."""
    cluster = new_cluster(release, nodes=2, conf={"PriorityType": "priority/multifactor"})
    cluster.wait_for_state(cluster.sbatch("-n8", "-t60"), "RUNNING")
    jobs = {}
    for name, minutes in MINUTES.items():
        array = ("--array=1-3",) if name == "array" else ()
        jobs[name] = cluster.sbatch("-n8", f"-t{minutes}", *array, script="sleep 1")
    cluster.wait_for(lambda: len(client(cluster).site_factors()) == 4, "priorities")
    return cluster, jobs


def client(slurm: SlurmCluster) -> SlurmCommands:
    return SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1), 0)


@pytest.fixture
def sidecar(slurm: tuple[SlurmCluster, dict[str, str]], tmp_path: Path) -> Iterator[Sidecar]:
    settings = Settings.model_validate(
        {"table": {"path": str(tmp_path / "table")}, "queue_order": {"order": "sjf"}}
    )
    store = Store(tmp_path / "store")
    yield Sidecar(settings, client(slurm[0]), store)
    store.close()


def test_the_queue_is_put_in_order_and_given_back(
    slurm: tuple[SlurmCluster, dict[str, str]], sidecar: Sidecar
) -> None:
    cluster, jobs = slurm
    in_order = [jobs[name] for name in ("b", "c", "array", "a")]
    sidecar.look(int(time.time()))
    factors = dict(client(cluster).site_factors())
    assert sorted(factors, key=lambda name: -factors[name]) == in_order
    assert set(sidecar.store.site_factors()) == set(in_order), "the array, not its tasks"
    cluster.wait_for(lambda: _by_priority(cluster) == in_order, "squeue to show the order")
    cluster.restart_slurmctld()
    assert dict(client(cluster).site_factors()) == factors, "they outlast slurmctld"
    sidecar.look(int(time.time()))
    assert dict(client(cluster).site_factors()) == factors
    cluster.checked(["scontrol", "hold", jobs["c"]])
    sidecar.end()
    cluster.checked(["scontrol", "release", jobs["c"]])
    cluster.wait_for(lambda: len(client(cluster).site_factors()) == 4, "priorities")
    assert set(client(cluster).site_factors().values()) == {0}


def _by_priority(slurm: SlurmCluster) -> list[str]:
    text = slurm.checked(["squeue", "-h", "-t", "PD", "-S", "-p", "-o", "%F"])
    return list(dict.fromkeys(text.split()))


def test_the_shortest_starts_first(
    slurm: tuple[SlurmCluster, dict[str, str]], sidecar: Sidecar
) -> None:
    cluster, jobs = slurm
    sidecar.look(int(time.time()))
    cluster.checked(["scancel", "-t", "RUNNING", "-u", "alice"])
    for job_id in jobs.values():
        cluster.wait_for_end(job_id)
    starts = {name: int(cluster.job(job_id)["StartTime"]) for name, job_id in jobs.items()}
    assert sorted(starts, key=lambda name: starts[name]) == ["b", "c", "array", "a"]
