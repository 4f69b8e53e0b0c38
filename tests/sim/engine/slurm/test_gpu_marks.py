"""Before 24.11 tests of jobs for GPUs leave marks on nodes that count for the jobs after them."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.slurm.test_slurm_agreement import PARAMETERS, check_same, saying
from tests.support.slurm.slurm_sites import switches

MACHINE = Machine(
    (NodeGroup("cpu", 1, 4), NodeGroup("gpu", 2, 4, gpus=2)),
    (SlurmPartition("all", ("cpu", "gpu")),),
)


def jobs_of(machine: Machine, rows: list[tuple[int, int, int, int, int]]) -> Workload:
    """Jobs with submission, CPUs, runtime, limit and GPUs of each node (0: none)."""
    submit_time, processors, runtime, limit, gpus = np.array(rows, dtype=np.int64).T
    return Workload(
        "by hand", machine.cpus, None, np.arange(len(rows)), submit_time, processors, runtime,
        limit, machine=machine, site_jobs=SiteJobs(),
        requests=ResourceRequests(gpus_per_node=np.ma.masked_equal(gpus, 0)),
    )  # fmt: skip


@pytest.mark.parametrize(("version", "starts_early"), [((22, 5), False), ((24, 11), True)])
def test_a_job_is_planned_on_a_node_that_a_job_for_gpus_has_marked(
    version: tuple[int, int], starts_early: bool
) -> None:
    """The third node is marked, so the second job that waits has it; otherwise the first node.

    Until 600 three jobs have three CPUs of a node each. The head job is planned on the second.
    """
    site = SlurmSite(MACHINE, version)
    running = [(0, 3, 600, 600, 0)] * 3
    waiting = [(10, 4, 600, 600, 1), (20, 4, 600, 600, 0), (30, 1, 60, 1200, 1)]
    schedule = check_same(jobs_of(MACHINE, running + waiting), site)
    start = schedule.start_times[5]
    assert start is not None
    assert (start < 600) is starts_early


@st.composite
def gpu_workloads(draw: st.DrawFn, machine: Machine) -> Workload:
    """Jobs of up to two nodes, of which half ask for GPUs."""
    job = st.tuples(
        st.sampled_from([0, 0, 10, 45, 200]),
        st.sampled_from([1, 2, 4, 6, 8]),
        st.sampled_from([30, 100, 400]),
        st.sampled_from([60, 120, 600]),
        st.sampled_from([0, 0, 1, 2]),
    )
    rows = sorted(draw(st.lists(job, min_size=3, max_size=20)))
    return jobs_of(machine, rows)


@settings(max_examples=150)
@given(st.data(), PARAMETERS, st.sampled_from([(22, 5), (24, 5)]), st.booleans())
def test_marked_nodes_are_given_out_alike(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], has_tree: bool
) -> None:
    groups = tuple(
        NodeGroup(f"g{number}", nodes, cpus, gpus=gpus, weight=weight)
        for number, (nodes, cpus, gpus, weight) in enumerate(
            [
                (2, 4, 2, 1),
                *data.draw(
                    st.lists(
                        st.tuples(
                            st.integers(1, 3),
                            st.sampled_from([2, 4]),
                            st.sampled_from([0, 2]),
                            st.sampled_from([1, 1, 2]),
                        ),
                        min_size=1,
                        max_size=3,
                    )
                ),
            ]
        )
    )
    names = [group.name for group in groups]
    exclusive = data.draw(st.sampled_from([False, False, True]))
    machine = Machine(groups, (SlurmPartition("all", tuple(names), exclusive=exclusive),))
    tree = data.draw(switches(names)) if has_tree else ()
    site = SlurmSite(machine, version, parameters, switches=tree)
    workload = data.draw(gpu_workloads(machine))
    check_same(data.draw(saying(workload, site)), site)
