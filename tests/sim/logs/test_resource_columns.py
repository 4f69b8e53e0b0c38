"""What logs say of nodes, memory and GPUs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.logs.accounting_resources import (
    Memory,
    parse_count,
    parse_memory,
    parse_requested_memory,
)
from foretime_sim.logs.accounting_resources import tres_count as count_of
from foretime_sim.logs.csv_log import parse_csv_log
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.logs.sacct import parse_sacct
from foretime_sim.logs.swf import parse_swf
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.machine_file import read_machine
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.resource_requests import with_machine

HEADER = (
    "JobID|Partition|Submit|Start|End|Elapsed|State|ReqCPUS|Timelimit|NNodes|ReqMem|ReqTRES"
    "|AllocTRES|Constraints"
)
TIMES = "2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T01:00:00|01:00:00|COMPLETED"


@pytest.mark.parametrize(
    ("word", "mib"),
    [("4000", 4_000), ("4000M", 4_000), ("62.50G", 64_000), ("1K", 1), ("2T", 2_097_152)],
)
def test_memory_is_read(word: str, mib: int) -> None:
    assert parse_memory(word) == mib


@pytest.mark.parametrize("word", ["4000Mn", "4 G", "lots", "-3M"])
def test_no_memory_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="not an amount of memory"):
        parse_memory(word)


@pytest.mark.parametrize("word", ["9" * 400 + "M", "2000000P"])
def test_memory_beyond_any_machine_is_refused(word: str) -> None:
    for parse in (parse_memory, parse_requested_memory):
        with pytest.raises(ValueError, match="too large"):
            parse(word)


@pytest.mark.parametrize(
    ("word", "says"),
    [("1.5", "whole"), ("-2", "whole"), ("two", "whole"), ("9" * 400, "whole"), ("1e20", "large")],
)
def test_no_count_is_refused(word: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_count(word)
    with pytest.raises(ValueError, match=says):
        count_of("gres/gpu")(f"gres/gpu={word}")


def test_requested_memory_says_what_it_is_for() -> None:
    assert parse_requested_memory("31000Mn") == Memory(31_000, "node")
    assert parse_requested_memory("4Gc") == Memory(4_096, "cpu")
    assert parse_requested_memory("4000M") == Memory(4_000, "job")
    # What Slurm 16.05 printed for --mem-per-cpu=3000.
    assert parse_requested_memory("2147486648Mn") == Memory(3_000, "cpu")
    assert parse_requested_memory("") is None


def test_gpus_are_counted_with_and_without_their_type() -> None:
    gpus = count_of("gres/gpu")
    assert gpus("cpu=1,gres/gpu=2,gres/gpu:a100=2") == 2
    assert gpus("cpu=1,gres/gpu:a100=2,gres/gpu:h100=1") == 3
    assert gpus("cpu=1") is None
    with pytest.raises(ValueError, match="not a list like"):
        gpus("cpu")


def test_resources_are_read_from_the_columns_of_sacct() -> None:
    rows = [
        f"1|a,b|{TIMES}|8|60|2|4000Mn|cpu=8,mem=8000M,node=2|cpu=8,gres/gpu=2,node=2|avx2",
        f"2|a|{TIMES}|8|60|1|2147486648Mn|cpu=8,mem=24000M,node=1|cpu=8,node=1|",
        f"3||{TIMES}|8|60|3||cpu=8,mem=16G,node=1|cpu=8,node=3|",
    ]
    log = parse_sacct("\n".join([HEADER, *rows]) + "\n", source="log")
    requests = workload_of_log(log, processors=64)[0].requests
    assert requests is not None
    assert requests.slurm_partitions is not None
    assert [requests.slurm_partitions.get(job) for job in range(3)] == ["a,b", "a", None]
    # Job 3 asked for one node at least and got three, so it did not ask for one.
    for column, expected in [
        (requests.nodes, [2, 1, None]),
        (requests.memory_per_node_mib, [4_000, None, None]),
        (requests.memory_per_cpu_mib, [None, 3_000, 2_048]),
        (requests.gpus_per_node, [1, None, None]),
    ]:
        assert column is not None
        assert column.tolist() == expected
    assert requests.constraints is not None
    assert requests.constraints.get(0) == "avx2"


def test_memory_and_partitions_are_read_from_swf() -> None:
    text = "; MaxProcs: 8\n; Partition: 3 batch\n1 0 0 10 2 -1 -1 2 20 2048000 1 1 1 -1 7 3 -1 -1\n"
    requests = workload_of_log(parse_swf(text, source="log"))[0].requests
    assert requests is not None
    assert requests.slurm_partitions is not None
    assert requests.slurm_partitions.get(0) == "batch"
    assert requests.memory_per_cpu_mib is not None
    assert requests.memory_per_cpu_mib.tolist() == [2_000]


def test_resources_are_read_from_a_mapped_csv() -> None:
    text = "sub,run,cores,n,mem,g,req\n2024-01-01 00:00:00,60,8,2,1.5,4,120\n"
    mapping = (
        "submit_time=sub,runtime=run:s,requested_processors=cores,requested_nodes=n,"
        "memory_per_node=mem:gib,requested_gpus=g,requested_time=req:s"
    )
    requests = parse_csv_log(text, source="log", columns=mapping).requests
    assert requests is not None
    assert requests.nodes is not None
    assert requests.memory_per_node_mib is not None
    assert requests.gpus_per_node is not None
    found = (requests.nodes[0], requests.memory_per_node_mib[0], requests.gpus_per_node[0])
    assert found == (2, 1_536, 2)


@pytest.mark.traces
def test_a_real_log_on_its_machine_keeps_every_law(trace: Callable[[str], Path]) -> None:
    """GPU, serial and 12-CPU jobs on nodes like those of Phillips; every law is checked."""
    log = read_log(trace("xdmod-phillips.sacct.txt.xz"), columns="xdmod")
    machine = Machine(
        (
            NodeGroup("black", 2, 8, 24_000),
            NodeGroup("crumpet", 40, 8, 23_000),
            NodeGroup("focaccia", 5, 12, 31_000, gpus=2),
        ),
        tuple(SlurmPartition(name, (name,)) for name in ("black", "crumpet", "focaccia")),
    )
    jobs, _ = workload_of_log(log, processors=machine.cpus)
    jobs = with_machine(jobs, machine)
    for backfill in (Backfill.NONE, Backfill.EASY, Backfill.FIRST_FIT):
        schedule = simulate(jobs, Policy(backfill=backfill), check=True)
        assert schedule.allocation is not None
        assert schedule.allocation.gpus.max() == 2
        assert schedule.slurm_partition is not None
        names = [machine.slurm_partitions[p].name for p in schedule.slurm_partition.tolist()]
        assert jobs.queues is not None
        assert names == [jobs.queues.get(job) for job in range(len(jobs))]
        # "black" only ever ran one job at a time on each of its nodes
        assert np.unique(schedule.allocation.node[schedule.allocation.cpus == 8]).min() == 0


@pytest.mark.traces
def test_the_documented_log_gives_the_pages_mean_waits(
    trace: Callable[[str], Path], repository: Path
) -> None:
    """The mean waits that docs/machines.md gives."""
    log = read_log(trace("xdmod-pozidriv.sacct.txt.xz"), columns="xdmod")
    machine = read_machine(repository / "docs" / "pozidriv.toml")
    jobs = with_machine(workload_of_log(log, processors=machine.cpus)[0], machine)
    assert (len(jobs), machine.nodes, machine.cpus) == (10_673, 111, 1_560)
    for workload, wait in ((jobs, 1_873), (replace(jobs, machine=None), 954)):
        schedule = simulate(workload, check=True)
        assert round((schedule.start_time - jobs.submit_time).mean()) == wait
