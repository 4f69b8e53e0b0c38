"""Who may preempt whom."""

from __future__ import annotations

from typing import Any

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.loops.preemption import Preemption, RunningJob
from foretime_sim.sites.slurm_limits import Qos
from foretime_sim.sites.slurm_site import PartitionRules, SlurmSite


def site(**more: Any) -> SlurmSite:
    machine = Machine(
        (NodeGroup("cpu", 8, 4),),
        (
            SlurmPartition("low", ("cpu",), priority_tier=1),
            SlurmPartition("high", ("cpu",), priority_tier=2),
        ),
    )
    values: dict[str, Any] = {
        "qos": {
            "low": Qos("low", priority=1, preempt_exempt_time_s=60),
            "mid": Qos("mid", priority=2, preempt_mode="CANCEL"),
            "high": Qos("high", priority=9, preempt=("low", "mid")),
        },
        "preempt_type": "preempt/qos",
        "preempt_mode": "REQUEUE",
    }
    return SlurmSite(machine, **{**values, **more})


def job(index: int, qos: str, slurm_partition: str = "low", **more: Any) -> RunningJob:
    values = {"priority": 100, "nodes": [0]}
    return RunningJob(index, qos, slurm_partition, **{**values, **more})


def test_the_least_qos_goes_first_and_of_it_the_smallest_job() -> None:
    running = [
        job(0, "mid"), job(1, "low", nodes=[1, 2]), job(2, "low", nodes=[3]), job(3, "high"),
    ]  # fmt: skip
    preemption = Preemption(site())
    found = preemption.candidates(job(9, "high", nodes=range(8)), running, now=60)
    assert [each.index for each in found] == [2, 1, 0]
    assert [preemption.mode(each) for each in found] == ["REQUEUE", "REQUEUE", "CANCEL"]
    # Those of "low" are exempt for their first minute.
    early = preemption.candidates(job(9, "high", nodes=range(8)), running, now=59)
    assert [each.index for each in early] == [0]


def test_the_youngest_goes_first_where_the_site_says_so() -> None:
    running = [job(0, "mid", start=10), job(1, "mid", start=30), job(2, "mid", start=20)]
    preemption = Preemption(site(preempt_parameters=("youngest_first",)))
    found = preemption.candidates(job(9, "high"), running, now=99)
    assert [each.index for each in found] == [1, 2, 0]


def test_by_partition_the_higher_tier_preempts_but_for_partitions_that_are_off() -> None:
    by_tier = site(preempt_type="preempt/partition_prio", qos={})
    running = [job(0, "x", "low"), job(1, "x", "high")]
    found = Preemption(by_tier).candidates(job(9, "x", "high"), running, now=0)
    assert [each.index for each in found] == [0]
    off = site(
        preempt_type="preempt/partition_prio",
        qos={},
        rules={"low": PartitionRules(preempt_mode="OFF")},
    )
    assert Preemption(off).candidates(job(9, "x", "high"), running, now=0) == []


def test_a_job_that_shares_no_node_is_left_alone() -> None:
    found = Preemption(site()).candidates(
        job(9, "high", nodes=[4, 5]), [job(0, "mid", nodes=[1])], now=0
    )
    assert found == []
