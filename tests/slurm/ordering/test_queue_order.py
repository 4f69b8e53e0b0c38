"""The queue put in order on a live Slurm: site factors, who starts first, and giving it back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

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


Start = Callable[..., Sidecar]


@pytest.fixture
def start(slurm: tuple[SlurmCluster, dict[str, str]], tmp_path: Path) -> Iterator[Start]:
    """Start a sidecar that keeps the queue in an order."""
    stores = []

    def start(**order: Any) -> Sidecar:
        settings = Settings.model_validate(
            {"table": {"path": str(tmp_path / "table")}, "queue_order": order}
        )
        stores.append(Store(tmp_path / "store"))
        return Sidecar(settings, client(slurm[0]), stores[-1])

    yield start
    for store in stores:
        store.close()


@pytest.fixture
def sidecar(start: Start) -> Sidecar:
    return start(order="sjf")


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


def test_dynp_switches_the_real_queue(
    slurm: tuple[SlurmCluster, dict[str, str]], start: Start
) -> None:
    """The longest came first: SJF suits them best, and Slurm's own order follows. A restart goes on
    in it, but who has waited for too long goes first."""
    cluster, jobs = slurm
    shortest = [jobs[name] for name in ("b", "c", "array", "a")]
    dynp = {"order": "dynp", "most_user_share": 1.0, "least_time_between_switches_s": 0}
    sidecar = start(**dynp)
    sidecar.look(int(time.time()))
    switched = sidecar.switched_order
    assert switched is not None
    assert switched.last is not None
    assert switched.last.kept == ""
    began, switch = switched.log.since(0, 10)
    assert (began.order, switch.instead_of, switch.order) == ("fcfs", "fcfs", "sjf")
    assert switch.waiting_jobs == 6, "three of them are the array's tasks"
    sjf, fcfs = switch.qualities["sjf"], switch.qualities["fcfs"]
    assert sjf is not None
    assert fcfs is not None
    assert sjf < fcfs
    cluster.wait_for(lambda: _by_priority(cluster) == shortest, "squeue to show the order")
    sidecar.store.close()
    again = start(**dynp, longest_wait_s=1)
    time.sleep(2)
    again.look(int(time.time()))
    assert again.switched_order is not None
    assert again.switched_order.now_in == switch, "a restart goes on in it"
    # The others come as they were eligible, which of an array is not told alike by all releases.
    cluster.wait_for(lambda: _by_priority(cluster)[0] == jobs["a"], "who waits longest first")
    assert again.going_first >= 3
    again.end()
    assert set(client(cluster).site_factors().values()) == {0}
