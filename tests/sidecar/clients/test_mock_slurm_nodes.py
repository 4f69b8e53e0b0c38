"""The mock Slurm tells its nodes, and what jobs ask and have of them, as a real one does."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.queue.queue_snapshot import snapshot_of
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.node_request import JobResources

NOW = 1_700_000_000
MACHINE = Machine(
    (
        NodeGroup("cpu", 4, 8, 16_000, features=("ib",)),
        NodeGroup("gpu", 2, 16, 64_000, 4, weight=5),
        NodeGroup("whole", 3, 4, 8_000),
    ),
    (
        SlurmPartition("main", ("cpu", "gpu"), default=True, default_memory_per_cpu_mib=500),
        SlurmPartition("gpu", ("gpu",), 7, max_time_s=7_200, max_nodes=1),
        SlurmPartition("alone", ("whole",), exclusive=True),
    ),
    Selection.CPU_MEMORY,
)
NIGHT = NodeReservation("night", NOW + 50_000, 3_600, ("gpu",))
SITE = SlurmSite(MACHINE, reservations=(NIGHT,))
ASKED = [
    JobResources(nodes=2, tasks=8, memory_per_node_mib=4_000),
    JobResources(("gpu",), tasks=2, cpus_per_task=3, gpus_per_node=2, memory_per_cpu_mib=100),
    JobResources(("alone",), nodes=1, tasks=2),
    JobResources(("alone",), nodes=1, tasks=4),
    JobResources(tasks=8, constraint="ib", exclusive=True),
    JobResources(("gpu", "main"), tasks=4),
]


POLICIES = {
    "easy": Policy(),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    "slurm": Policy(backfill=Slurm(SITE)),
}


@pytest.fixture(params=POLICIES)
def slurm(request: pytest.FixtureRequest) -> MockSlurm:
    """Full of jobs, of which the last ones wait."""
    setup = SlurmSetup(MACHINE.cpus, machine=MACHINE)
    mock = MockSlurm(setup, POLICIES[request.param], None, NOW)
    for number in range(24):
        asked = ASKED[number % len(ASKED)]
        cpus = (asked.tasks or 1) * (asked.cpus_per_task or 1)
        mock.submit(Submission("ann", None, None, cpus, 3_600, 3_000, resources=asked))
    mock.advance(NOW + 300)
    mock.settle()
    return mock


def test_nodes_partitions_and_reservations_are_those_of_the_machine(slurm: MockSlurm) -> None:
    client = SlurmCommands(slurm.run)
    cluster = client.cluster()
    assert [(node.name, node.cpus, node.memory_mib, node.gpus) for node in cluster.nodes] == [
        *((f"cpu.{number}", 8, 16_000, 0) for number in (1, 2, 3, 4)),
        *((f"gpu.{number}", 16, 64_000, 4) for number in (1, 2)),
        *((f"whole.{number}", 4, 8_000, 0) for number in (1, 2, 3)),
    ]
    assert (cluster.counts_memory, cluster.counts_cpus) == (True, True)
    taken = snapshot_of(
        client.queue(), cluster, taken_at=slurm.now, reservations=client.reservations()
    )
    assert taken.live is not None
    machine = taken.live.machine
    assert [
        (group.nodes, group.cpus, group.memory_mib, group.gpus, group.features, group.weight)
        for group in machine.node_groups
    ] == [
        (group.nodes, group.cpus, group.memory_mib, group.gpus, group.features, group.weight)
        for group in MACHINE.node_groups
    ]
    for found, meant in zip(machine.slurm_partitions, MACHINE.slurm_partitions, strict=True):
        assert (found.name, found.priority_tier, found.max_time_s, found.max_nodes) == (
            meant.name, meant.priority_tier, meant.max_time_s, meant.max_nodes,
        )  # fmt: skip
        assert (found.default, found.exclusive) == (meant.default, meant.exclusive)
        assert found.default_memory_per_cpu_mib == meant.default_memory_per_cpu_mib
    reserved = client.reservations()
    if slurm._engine.policy.is_slurm:
        (night,) = reserved
        assert (night.name, night.start_time, night.end_time) == ("night", NIGHT.start, NIGHT.end)
        assert night.nodes == frozenset({"gpu.1", "gpu.2"})
    else:
        assert not reserved


def test_what_jobs_ask_and_have_is_what_the_engine_holds(slurm: MockSlurm) -> None:
    client = SlurmCommands(slurm.run)
    queue = client.queue()
    taken = snapshot_of(queue, client.cluster(), taken_at=slurm.now)
    meant = Snapshot.of(slurm._engine)
    assert len(meant.running) > 5
    assert len(meant.pending) > 5
    assert not taken.left_out
    states = [job.state for job in queue.jobs]
    assert states.count(QueueState.RUNNING) == len(meant.running)
    found = taken.snapshot
    assert found.running.held is not None
    assert meant.running.held is not None
    by_group = []
    for snapshot in (found, meant):
        held = snapshot.running.held
        assert held is not None
        groups = np.searchsorted(MACHINE.first_nodes, held.node, side="right")
        used = np.zeros((len(MACHINE.node_groups) + 1, 4), dtype=np.int64)
        for column, values in enumerate(
            (np.ones_like(held.cpus), held.cpus, held.memory_mib, held.gpus)
        ):
            np.add.at(used[:, column], groups, values * held.nodes)
        by_group.append(used.tolist())
    assert by_group[0] == by_group[1]
    assert found.pending.requests is not None
    assert meant.pending.requests is not None
    for snapshot in (found, meant):
        assert snapshot.pending.requests is not None
    asked = [
        sorted(
            (
                request.cpus,
                request.tasks,
                request.gpus_per_node,
                [each.exclusive for each in request.choices],
            )
            for request in (requests.distinct[number] for number in requests.number.tolist())
        )
        for requests in (found.pending.requests, meant.pending.requests)
    ]
    assert asked[0] == asked[1]
