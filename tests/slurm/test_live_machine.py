"""Forecasts are made on the machine that Slurm has, and jobs start there as told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.clients.cluster import HeldNode
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of
from foretime_sim.engine.forward import forward_runs
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

SLURM_PARTITIONS = (
    "main Nodes=ALL Default=YES MaxTime=INFINITE DefMemPerCPU=10",
    "odd Nodes=n[1,3] MaxTime=2:00:00 PriorityTier=5",
)


@pytest.fixture
def cluster(release: SlurmRelease) -> Iterator[SlurmCluster]:
    cluster = SlurmCluster(release, nodes=4, slurm_partitions=SLURM_PARTITIONS)
    try:
        cluster.set_conf({"SelectTypeParameters": "CR_Core_Memory"}, restart=True)
        yield cluster
    finally:
        cluster.stop()


def look(cluster: SlurmCluster) -> tuple[QueueSnapshot, dict[str, QueuedJob]]:
    client = SlurmCommands(lambda argv, stdin=None: _reply(cluster, argv))
    queue, found = client.queue(), client.cluster()
    taken = snapshot_of(queue, found, taken_at=int(time.time()), reservations=client.reservations())
    return taken, {job.request.job_id: job for job in queue.jobs}


def _reply(cluster: SlurmCluster, argv: Sequence[str]) -> object:
    text = cluster.checked(argv)
    return json.loads(text) if "--json" in argv else text


def test_what_jobs_have_and_ask(cluster: SlurmCluster) -> None:
    cluster.scontrol("update", "NodeName=n4", "State=DRAIN", "Reason=test")
    ran = {
        "n1": cluster.sbatch("-w", "n1", "-n", "4", "--mem=200", "-t", "10"),
        "n2": cluster.sbatch("-w", "n2", "-n", "3", "--mem-per-cpu=50", "-t", "20"),
        "n3": cluster.sbatch("-w", "n3", "-n", "4", "-t", "30", "-p", "odd"),
    }
    for job in ran.values():
        cluster.wait_for_state(job, "RUNNING")
    waits = {
        "wide": cluster.sbatch("-N", "2", "-n", "8", "-t", "5"),
        "here": cluster.sbatch("-w", "n2", "-n", "4", "-t", "5"),
        "not": cluster.sbatch("-x", "n[1-2]", "-n", "2", "-c", "2", "-t", "5"),
        "alone": cluster.sbatch("--exclusive", "-N", "1", "-t", "5", "-p", "odd"),
        "memory": cluster.sbatch("-n", "1", "--mem=900", "-t", "5"),
        "after": cluster.sbatch("-n", "1", "-t", "5", f"--dependency=afterok:{ran['n2']}"),
        "array": cluster.sbatch("-n", "4", "-t", "5", "--array=1-3%1"),
        "drained": cluster.sbatch("-w", "n4", "-n", "1", "-t", "5"),
    }
    time.sleep(3)
    taken, jobs = look(cluster)
    assert jobs[ran["n1"]].has_nodes == (HeldNode("n1", 4, 200),)
    assert jobs[ran["n2"]].has_nodes == (HeldNode("n2", 3, 150),)
    assert jobs[ran["n3"]].has_nodes == (HeldNode("n3", 4, 1_000),)  # `odd` has no default
    asked = {name: jobs[job].asked for name, job in waits.items()}
    assert all(asked.values())

    def of(name: str, *fields: str) -> list[object]:
        return [getattr(asked[name], field) for field in fields]

    assert of("wide", "nodes", "tasks", "cpus_per_task", "exclusive") == [2, 8, 1, False]
    assert of("here", "required", "tasks") == [{"n2"}, 4]
    assert of("not", "nodes", "excluded", "tasks", "cpus_per_task") == [None, {"n1", "n2"}, 2, 2]
    assert of("alone", "exclusive", "nodes") == [True, 1]
    assert of("memory", "memory_per_node_mib") == [900]
    assert jobs[waits["array"]].array_limit == 1
    left = {each.job.request.job_id: each.reason for each in taken.left_out}
    assert list(left) == [waits["drained"]]
    assert taken.live is not None
    assert taken.live.machine.nodes == 3

    # Three jobs end, one after another; what starts then is what the forecast says.
    ends = {ran["n2"]: 100, ran["n3"]: 200, ran["n1"]: 300}
    ages = taken.snapshot.now - taken.snapshot.running.start_time
    sample = np.full((1, len(taken.jobs)), 200, dtype=np.int64)
    sample[0, : len(ages)] = ages + [ends[job.request.job_id] for job in taken.jobs[: len(ages)]]
    times = forward_runs(taken.snapshot, Policy(Order.PRIORITY), sample)[0] - taken.snapshot.now
    told = {job.request.job_id: int(at) for job, at in zip(taken.jobs, times, strict=True)}
    names = {job: name for name, job in waits.items()}
    first = {names[job] for job, at in told.items() if at == 100}
    cluster.run(["scancel", ran["n2"]])
    assert first == {"here"}
    cluster.wait_for_state(waits["here"], "RUNNING")
    time.sleep(5)
    states = {name: cluster.job(job)["JobState"] for name, job in waits.items() if name != "array"}
    started = {name for name, state in states.items() if state == "RUNNING"}
    assert started == first
