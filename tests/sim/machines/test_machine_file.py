"""Machine descriptions: the file, its faults by name, and jobs that don't fit them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.machine_file import format_machine, parse_machine
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources, fit_request
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload
from hypothesis import given

from tests.support.workloads.node_workloads import machines

GOOD = """
[node_groups.cpu]
nodes = 4
cpus = 8
memory_mib = 16_000
[slurm_partitions.short]
node_groups = ["cpu"]
max_time = "1:00:00"
"""


def documented_machine(repository: Path) -> Machine:
    text = (repository / "docs" / "machines.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", text, re.DOTALL)
    assert block is not None
    return parse_machine(block[1], source="machines.md")


def jobs_of(processors: list[int], requested: int = 100) -> Workload:
    count = len(processors)
    runtimes = np.full(count, 50)
    return Workload(
        "jobs", 992, None, np.arange(count), np.zeros(count, dtype=np.int64),
        np.array(processors), runtimes, np.full(count, requested),
    )  # fmt: skip


@given(machine=machines())
def test_written_and_read_again(machine: Machine) -> None:
    assert parse_machine(format_machine(machine), source="made.toml") == machine


def test_the_documented_machine_is_what_the_page_says(repository: Path) -> None:
    machine = documented_machine(repository)
    assert (machine.nodes, machine.cpus) == (30, 992)
    assert machine.slurm_partitions[0].max_time_s == 4 * 3_600
    assert machine.default_partition == 0
    assert machine.first_nodes == (0, 24, 28)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("nodes = 4", "nodes = 0"), "m.toml: node_groups.cpu: nodes is 0: give 1 to"),
        (("nodes = 4", "nodez = 4"), "m.toml: [node_groups.cpu]: 'nodez' is unknown; did you mean"),
        (("nodes = 4\n", ""), "m.toml: [node_groups.cpu]: nodes is missing (how many nodes)"),
        (("cpus = 8", 'cpus = "8"'), "[node_groups.cpu]: cpus is '8': give a whole number"),
        (('["cpu"]', '["cpus"]'), "partition short: node_groups: there is no group 'cpus'"),
        (('["cpu"]', '"cpu"'), "[slurm_partitions.short]: node_groups is 'cpu': give a list"),
        (('"1:00:00"', "60"), "[slurm_partitions.short]: max_time is 60: give a time as text"),
        (("[node_groups.cpu]", "[node_group.cpu]"), "m.toml: 'node_group' is unknown; did you mea"),
        (("max_time", "selection = 'x'\nmax_time"), "'selection' is unknown"),
        (("[node", "selection = 'x'\n[node"), "selection is 'x': use CR_CPU_Memory or CR_CPU"),
        (("[node_groups.cpu]", "[node_groups.cpu"), "not TOML: Expected ']' at the end of a table"),
        (("[node_groups.cpu]", "x = " + "9" * 5_000 + "\n[node_groups.cpu]"), ": a number is far"),
        (("[node_groups.cpu]", "x = " + "[" * 5_000 + "\n[node_groups.cpu]"), "m.toml: tables or"),
    ],
)  # fmt: skip
def test_faults_are_named(change: tuple[str, str], message: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_machine(GOOD.replace(*change, 1), source="m.toml")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (JobResources(nodes=31), "it asks for 31 nodes, above the limit of 30"),
        (
            JobResources(cpus_per_task=49),
            "it needs 1 task of 49 CPUs and 191,100 MiB, of which 0 fit",
        ),
        (
            JobResources(memory_per_node_mib=2_000_000),
            "with 2,000,000 MiB, of which 0 fit in",
        ),
        (
            JobResources(memory_per_cpu_mib=2_000_000),
            "it needs 1 task of 1 CPU and 2,000,000 MiB, of which 0 fit",
        ),
        (JobResources(("gpu",), gpus_per_node=5), "of which 0 fit in partition gpu"),
        (JobResources(("long",), nodes=9), "above the limit of 8 in partition long"),
        (JobResources(("lon",)), "there is no partition 'lon'; did you mean 'long'?"),
        (JobResources(constraint="avx2&sse"), "no node has the feature 'sse'"),
        (JobResources(("long",), constraint="avx512"), "of which 0 fit in partition long"),
        (
            JobResources(("short", "gpu"), nodes=3, gpus_per_node=1),
            "3 nodes for 1 task on each, and 2 of such a size are there in partition short",
        ),
    ],
)
def test_what_can_never_run_is_named(repository: Path, asked: JobResources, reason: str) -> None:
    with pytest.raises(InputError) as raised:
        fit_request(documented_machine(repository), asked, processors=1, requested_time=60)
    assert reason in str(raised.value)


def test_time_limits_leave_the_other_slurm_partitions(repository: Path) -> None:
    machine = documented_machine(repository)
    asked = JobResources(("short", "long"))
    both = fit_request(machine, asked, 1, 4 * 3_600)
    assert [choice.slurm_partition for choice in both.choices] == [0, 1]
    assert both.priority_tier == 2
    long = fit_request(machine, asked, 1, 4 * 3_600 + 1)
    assert [choice.slurm_partition for choice in long.choices] == [1]
    assert long.priority_tier == 1


def test_jobs_that_can_never_run_are_refused_or_left_out(repository: Path) -> None:
    machine = documented_machine(repository)
    jobs = jobs_of([1, 993, 2])
    with pytest.raises(InputError, match="jobs: job 1 could never run on this machine: it needs"):
        with_machine(jobs, machine)
    left = with_machine(jobs, machine, leave_out=True)
    assert left.job_id.tolist() == [0, 2]
    assert "1 job left out that could never run" in left.notes[-1]
    with pytest.raises(InputError, match="no job can run on this machine"):
        with_machine(jobs_of([993]), machine, leave_out=True)


def test_a_wrong_column_is_named() -> None:
    nodes = np.ma.MaskedArray([1, 0], mask=[False, False])
    jobs = replace(jobs_of([1, 1]), requests=ResourceRequests(nodes=nodes))
    with pytest.raises(InputError, match="job 1: nodes is 0, it must be 1 or more"):
        with_machine(jobs, parse_machine(GOOD, source="m.toml"))


def test_every_group_needs_a_slurm_partition() -> None:
    groups = (NodeGroup("a", 1, 1), NodeGroup("b", 1, 1))
    with pytest.raises(InputError, match=re.escape("node_groups.b: no partition has it")):
        Machine(groups, (SlurmPartition("p", ("a",)),))
    with pytest.raises(InputError, match="'a' is there twice"):
        Machine((groups[0], groups[0]), (SlurmPartition("p", ("a",)),))


def test_names_of_a_job_follow_the_selection() -> None:
    names = Labels(np.array([0, -1], dtype=np.int32), ("x,y",))
    taken = ResourceRequests(slurm_partitions=names).take(np.array([1]))
    assert taken.slurm_partitions is not None
    assert taken.slurm_partitions.get(0) is None
