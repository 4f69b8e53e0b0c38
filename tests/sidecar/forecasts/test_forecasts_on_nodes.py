"""Questions about jobs on nodes: what they ask of each, and the slurm_partitions they may go to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    Queue,
    QueuedJob,
    QueueState,
)
from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.forecasts.job_question import JobParameters, question_of
from foretime_sidecar.queue.forecast_question import Look

from tests.sidecar.web.test_api import NOBODY, NOW, World

# Four nodes of 16 CPUs and 64 GiB in main; n4, with two GPUs, alone in debug, an hour at most.
NODES = tuple(
    ClusterNode(
        f"n{number}",
        16,
        65_536,
        gpus=2 if number == 4 else 0,
        features=("gpu:a100",) if number == 4 else (),
    )
    for number in (1, 2, 3, 4)
)
CLUSTER = Cluster(
    NODES,
    (
        ClusterPartition("main", frozenset({"n1", "n2", "n3"}), default=True,
                         default_memory_per_cpu_mib=1024),
        ClusterPartition("debug", frozenset({"n4"}), max_time_s=3600,
                         default_memory_per_cpu_mib=1024),
        ClusterPartition("mail", frozenset({"n1"}), hidden=True),
        ClusterPartition("drained", frozenset({"n1"}), is_up=False),
    ),
)  # fmt: skip


def running(job_id: str, node: str, cpus: int) -> QueuedJob:
    request = JobRequest(job_id, "u1", "wide", cpus, 7200, NOW - 1000, "main")
    return QueuedJob(
        request,
        QueueState.RUNNING,
        start_time=NOW - 900,
        asked=AskedNodes(nodes=1, tasks=cpus, cpus_per_task=1),
        has_nodes=(HeldNode(node, cpus, 1024 * cpus),),
    )


def past(number: int, slurm_partition: str) -> FinishedRecord:
    request = JobRequest(
        f"p{number}", "nobody", None, 8, 3600, NOW - 9000 + number, slurm_partition
    )
    job = FinishedJob(request, NOW - 8000, NOW - 7000 + number, 1000, Ending.COMPLETED)
    return FinishedRecord(job, request.submit_time, "COMPLETED")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Main is full but for four CPUs on each node; debug is free."""
    world = World(tmp_path)
    history = [past(0, "main"), past(1, "debug"), past(2, "gone")]
    world.store.add_finished(history, Cursor(NOW))
    world.polled()
    jobs = tuple(running(str(number), f"n{number}", 12) for number in (1, 2, 3))
    forecasting = world.sidecar.forecasting
    assert forecasting is not None
    forecasting.looked(Look(NOW + 1, Queue(64, jobs), cluster=CLUSTER))
    assert forecasting.refresh()
    return world


def likely(world: World, options: str) -> Any:
    return world.ask(f"/v1/forecast?time=60&{options}", NOBODY)["likely_wait_s"]


def test_nodes_and_memory_asked_for_count(world: World) -> None:
    # Twelve CPUs are free, four on each of three nodes.
    assert likely(world, "ntasks=12") == 0
    assert likely(world, "nodes=3&ntasks=12") == 0
    assert likely(world, "nodes=1&ntasks=8") > 0
    assert likely(world, "ntasks=2&cpus_per_task=6") > 0
    assert likely(world, "ntasks=4&mem=60G") > 0
    assert likely(world, "ntasks=1&exclusive=1") > 0


def test_gpus_asked_for_count(world: World) -> None:
    assert likely(world, "ntasks=1&gres=gpu:2&partition=debug") == 0
    assert likely(world, "ntasks=1&gpus=a100:1&partition=debug") == 0
    for options in ("ntasks=1&gres=gpu:1", "ntasks=1&gres=gpu:3&partition=debug"):
        world.refused(f"/v1/forecast?time=60&{options}", NOBODY)


def test_what_could_run_nowhere_is_told_for_each_slurm_partition(world: World) -> None:
    asked = "/v1/forecast?time=60&ntasks=1&gres=gpu:3&partition=debug,main"
    error = world.refused(asked, NOBODY)
    assert "1 task of 1 CPU and 1,024 MiB, on nodes with 3 GPUs" in error["what"]
    for name in ("debug", "main"):
        assert f"of which 0 fit in partition {name}" in error["what"]
    assert error["remedy"] == "ask for less, or for another partition"


@pytest.mark.parametrize(
    ("slurm_partition", "what", "remedy"),
    [
        ("mian", "there is no partition mian", "there are main, drained, debug"),
        ("debug,de", "there is no partition de", "there are debug, drained, main"),
        ("drained", "partition drained takes no jobs now", "there are main, debug"),
    ],
)
def test_a_slurm_partition_that_is_not_there_or_down_is_told_apart(
    world: World, slurm_partition: str, what: str, remedy: str
) -> None:
    error = world.refused(f"/v1/forecast?time=60&ntasks=1&partition={slurm_partition}", NOBODY)
    assert (error["what"], error["remedy"]) == (what, remedy)


@pytest.mark.parametrize(
    ("asked", "what", "remedy"),
    [
        (
            "gres=gpu:nope:1",
            "no node that takes jobs has GPUs of type 'nope'",
            "there are gpu:a100",
        ),
        ("gpus=nope:1", "no node that takes jobs has GPUs of type 'nope'", "there are gpu:a100"),
    ],
)
def test_gpus_that_no_node_has_are_told_with_those_that_there_are(
    world: World, asked: str, what: str, remedy: str
) -> None:
    error = world.refused(f"/v1/forecast?time=60&ntasks=1&{asked}", NOBODY)
    assert (error["what"], error["remedy"]) == (what, remedy)


def test_without_memory_or_gpus_of_the_nodes_that_is_told(world: World) -> None:
    unseen = "memory asked for is not looked at on nodes that do not tell theirs"
    asked = "/v1/forecast?time=60&ntasks=1"
    assert unseen not in world.ask(f"{asked}&mem=60G", NOBODY)["assumptions"]
    nodes = tuple(replace(node, memory_mib=0, gpus=0, features=()) for node in NODES)
    forecasting = world.sidecar.forecasting
    assert forecasting is not None
    cluster = replace(CLUSTER, nodes=nodes, counts_memory=False)
    forecasting.looked(Look(NOW + 2, Queue(64, ()), cluster=cluster))
    assert forecasting.refresh()
    assert unseen in world.ask(f"{asked}&mem=999999T", NOBODY)["assumptions"]
    assert unseen not in world.ask(asked, NOBODY)["assumptions"]
    error = world.refused(f"{asked}&gres=gpu:1", NOBODY)
    assert (error["what"], error["remedy"]) == (
        "no node that takes jobs has GPUs",
        "ask without GPUs",
    )


def test_advice_names_other_slurm_partitions_that_one_has_used(world: World) -> None:
    advice = world.ask("/v1/advice?time=60&nodes=1&ntasks=16", NOBODY)
    found = {each["command"].removeprefix("sbatch "): each for each in advice["alternatives"]}
    debug = found["--partition=debug"]
    assert debug["change"] == {"partition": "debug"}
    assert debug["forecast"]["likely_wait_s"] == 0
    assert debug["sooner_s"] == advice["asked"]["likely_wait_s"] > 0
    assert debug["cost"] == "same"
    assert not any("gone" in options or "main" in options for options in found)
    # It takes no more than an hour; and who is not known has used none.
    longer = world.ask("/v1/advice?time=61&nodes=1&ntasks=16", NOBODY)
    unknown = world.ask("/v1/advice?time=60&nodes=1&ntasks=16")
    for answer in (longer, unknown):
        assert not any("partition" in each["change"] for each in answer["alternatives"])


def asked(**parameters: object) -> AskedNodes:
    values = {"ntasks": 4, "time": "60"} | parameters
    return question_of(JobParameters.model_validate(values), "ann", NOW).asked


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"mem": "4000"}, AskedNodes(None, 4, 1, memory_per_node_mib=4000)),
        ({"mem": "4G"}, AskedNodes(None, 4, 1, memory_per_node_mib=4096)),
        ({"mem": "1025K"}, AskedNodes(None, 4, 1, memory_per_node_mib=2)),
        ({"mem": "0"}, AskedNodes(None, 4, 1)),
        ({"gres": "gpu"}, AskedNodes(None, 4, 1, gpus_per_node=1)),
        ({"gres": "gpu:2"}, AskedNodes(None, 4, 1, gpus_per_node=2)),
        ({"gres": "gpu:a100:2"},
         AskedNodes(None, 4, 1, gpus_per_node=2, constraint=("gpu:a100",))),
        ({"gpus": "4", "nodes": "2"}, AskedNodes(2, 4, 1, gpus_per_node=2)),
        ({"gpus": "3", "nodes": "2"}, AskedNodes(2, 4, 1)),
        ({"gres": "license:1"}, AskedNodes(None, 4, 1)),
        ({"nodes": "8"}, AskedNodes(8, 8, 1)),
        ({"exclusive": True}, AskedNodes(None, 4, 1, exclusive=True)),
    ],
)  # fmt: skip
def test_what_is_asked_of_each_node(parameters: dict[str, object], expected: AskedNodes) -> None:
    assert asked(**parameters) == expected


def test_what_is_not_looked_at_is_said() -> None:
    def said(**parameters: object) -> str:
        values = {"ntasks": 4, "time": "60"} | parameters
        return "; ".join(question_of(JobParameters.model_validate(values), "ann", NOW).not_modelled)

    assert said(gres="license:1") == "gres 'license:1' is not looked at"
    assert said(gpus="3", nodes="2") == "how GPUs '3' lie on the nodes is not looked at"
    assert said(gpus="3") == "its GPUs are taken to be on one node"
    assert said(gres="gpu:3", mem="4G") == ""


def test_on_hosts_of_pbs_memory_and_gpus_count_in_chunks_alone() -> None:
    def unseen(**parameters: object) -> tuple[str, ...]:
        values = {"ntasks": 4, "time": "60"} | parameters
        return question_of(JobParameters.model_validate(values), "ann", NOW).left_out_of_hosts()

    assert unseen(mem="4G") == ("memory and GPUs asked for are not looked at",)
    assert unseen(gres="gpu:1") == unseen(mem="4G")
    assert unseen() == ()
    assert unseen(select="1:ncpus=4:mem=4gb") == ()
