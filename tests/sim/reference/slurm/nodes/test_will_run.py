"""When and where a job could run as others end: worked out by hand."""

from __future__ import annotations

import pytest
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition
from foretime_sim.reference.slurm.jobs.job import Allocation, Run, SlurmJob
from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.reference.slurm.nodes.node_choice import NodeChoice
from foretime_sim.reference.slurm.nodes.nodes import NodeUse, nodes_of
from foretime_sim.reference.slurm.nodes.will_run import JobEnds, will_run
from foretime_sim.workloads.node_request import JobResources, fit_request

MACHINE = Machine(
    (NodeGroup("n", nodes=2, cpus=1),), (SlurmPartition("all", ("n",)),), Selection.CPU
)


def job_of(index: int, limit_s: int) -> SlurmJob:
    request = fit_request(MACHINE, JobResources(), 1, limit_s)
    return SlurmJob(index, request, ("all",), 0, limit_s, limit_s)


@pytest.mark.parametrize(
    ("version", "start", "expected"),
    [
        ((24, 11), 1, 620),  # the last end of those within 30 s
        ((25, 5), 1, 600),  # that of the node that is chosen
        ((24, 11), 600, 620),  # the job that ends then still counts
        ((24, 11), 601, 0),
        ((25, 5), 600, 0),
    ],
)
def test_a_start_goes_by_the_ends_of_others(
    version: tuple[int, int], start: int, expected: int
) -> None:
    # One job has node 0 until 600, another node 1 until 620. "0": by then there is room.
    use, running = NodeUse(), []
    for node, limit_s in enumerate((600, 620)):
        run = Run(job_of(node, limit_s), 0, Allocation({node: 1}), 0, Loop.MAIN, limit_s)
        use.add(run.allocation, 0)
        running.append(run)
    choice = NodeChoice(nodes_of(MACHINE), job_of(2, 60), 0, None, version)
    ends = JobEnds(soft=False, kill_wait_s=30, over_time_limit_s=[0])
    found = will_run(choice, frozenset({0, 1}), use, running, ends, 0, start=start)
    assert found is not None
    assert found.start == expected
