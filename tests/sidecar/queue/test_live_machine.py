"""A live cluster as a machine: scontrol's words, what jobs ask and have, and where they start."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import Queue, QueuedJob, QueueState, Reservation
from foretime_sidecar.clients.cluster import AskedNodes, Cluster, HeldNode
from foretime_sidecar.clients.slurm.nodes import asked_nodes, held_nodes, parse_cluster
from foretime_sidecar.forecasts.forecast_board import JobForecast
from foretime_sidecar.forecasts.production_forecaster import CalibratedBest
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting
from foretime_sidecar.forecasts.wait_reasons import wait_reason
from foretime_sidecar.queue.forecast_question import Look, NewJob, QueueMoment
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sim.engine.forward import forward_runs
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import MEDIAN
from foretime_sim.waits.qbets import Qbets

NOW = 1_000
RECORDED = Path(__file__).parents[2] / "assets" / "slurm"

NODES = """\
NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUEfctv=8 CPUTot=8 AvailableFeatures=fast,ib \
ActiveFeatures=fast Gres=(null) OS=Linux 6.1 #1 SMP RealMemory=16000 AllocMem=0 State=IDLE \
ThreadsPerCore=1 Weight=1 \
Partitions=main,long
NodeName=n2 CPUTot=8 AvailableFeatures=fast,ib Gres=(null) RealMemory=16000 State=MIXED Weight=1 \
Partitions=main,long Reason=State=DOWN is what it was [root@2026-11-20]
NodeName=n10 CPUTot=8 AvailableFeatures=fast,ib Gres=(null) RealMemory=16000 \
State=ALLOCATED Weight=1
NodeName=n3 CPUTot=8 AvailableFeatures=fast,ib Gres=(null) RealMemory=16000 \
State=MIXED+DRAIN Weight=1
NodeName=n4 CPUTot=8 AvailableFeatures=fast,ib Gres=(null) RealMemory=16000 State=IDLE* Weight=1
NodeName=g1 CPUTot=16 AvailableFeatures=(null) Gres=gpu:a100:4(S:0-1),shard:8 RealMemory=64000 \
MemSpecLimit=4000 State=IDLE+POWERED_DOWN Weight=5 Partitions=gpu
NodeName=lost CPUTot=8 AvailableFeatures=(null) Gres=(null) RealMemory=1 State=IDLE Weight=1
""".replace("\\\n", "")

PARTITIONS = """\
PartitionName=main Default=YES MaxNodes=UNLIMITED MaxTime=1-00:00:00 Nodes=n[1-4],n10 \
PriorityTier=1 OverSubscribe=NO State=UP DefMemPerCPU=1000 QoS=N/A
PartitionName=long Default=NO MaxNodes=2 MaxTime=UNLIMITED Nodes=n[1-2] PriorityTier=3 \
OverSubscribe=EXCLUSIVE State=UP DefMemPerNode=UNLIMITED
PartitionName=gpu Default=NO MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=g1 PriorityTier=1 State=UP
PartitionName=old Default=NO MaxTime=UNLIMITED Nodes=n[1-10] PriorityTier=1 State=DOWN
""".replace("\\\n", "")

CONFIG = "SelectType              = select/cons_tres\nSelectTypeParameters    = CR_CORE_MEMORY\n"


def cluster() -> Cluster:
    return parse_cluster(NODES, PARTITIONS, CONFIG)


def running(job_id: str, processors: int, *has: HeldNode) -> QueuedJob:
    request = JobRequest(job_id, "ann", "physics", processors, 600, 900, "main")
    return QueuedJob(request, QueueState.RUNNING, start_time=NOW - 100, has_nodes=has)


def pending(job_id: str, processors: int, partition: str = "main", **asked: object) -> QueuedJob:
    request = JobRequest(job_id, "bob", "physics", processors, 600, 950, partition)
    nodes = AskedNodes(tasks=processors, **asked)  # type: ignore[arg-type]  # of the tests' own
    return QueuedJob(request, QueueState.PENDING, asked=nodes)


def taken(
    *jobs: QueuedJob, reservations: tuple[Reservation, ...] = (), machine: Cluster | None = None
) -> QueueSnapshot:
    queue = Queue(40, jobs)
    return snapshot_of(queue, machine or cluster(), taken_at=NOW, reservations=reservations)


def starts(of: QueueSnapshot, *runtimes: int) -> dict[str, int]:
    """When jobs start, seconds from now, by identifier (the last task of an array)."""
    both = np.array([runtimes], dtype=np.int64)
    times = forward_runs(of.snapshot, Policy(Order.PRIORITY), both)[0] - NOW
    ids = [job.request.job_id for job in of.jobs]
    return {job_id: int(time) for job_id, time in zip(ids, times, strict=True)}


def test_nodes_and_slurm_partitions_are_read() -> None:
    found = cluster()
    assert [node.name for node in found.nodes if not node.takes_jobs] == ["n3", "n4"]
    gpu = next(node for node in found.nodes if node.name == "g1")
    assert (gpu.cpus, gpu.memory_mib, gpu.gpus, gpu.features) == (16, 60_000, 4, ("gpu:a100",))
    main, long, _, old = found.partitions
    assert (main.max_time_s, main.priority_tier, main.default) == (86_400, 1, True)
    assert main.nodes == {"n1", "n2", "n3", "n4", "n10"}
    assert main.default_memory_per_cpu_mib == 1_000
    assert (long.exclusive, long.max_nodes, old.is_up) == (True, 2, False)
    assert (found.counts_memory, found.counts_cpus) == (True, True)
    with pytest.raises(SchedulerError, match="named no node or no partition"):
        parse_cluster("", "", CONFIG)
    with pytest.raises(SchedulerError, match="in an unknown shape"):
        parse_cluster(NODES.replace("CPUTot=8", "CPUTot=many"), PARTITIONS, CONFIG)


def test_nodes_that_are_alike_make_a_group() -> None:
    live = taken(pending("1", 1)).live
    assert live is not None
    groups = [(g.nodes, g.cpus, g.memory_mib, g.gpus) for g in live.machine.node_groups]
    # n1 and n2 are in `long`, too; n10 is not; n3 and n4 take no jobs, `lost` is in no partition.
    assert groups == [(2, 8, 16_000, 0), (1, 8, 16_000, 0), (1, 16, 60_000, 4)]
    assert live.number_of == {"n1": 0, "n2": 1, "n10": 2, "g1": 3}
    assert [part.name for part in live.machine.slurm_partitions] == ["main", "long", "gpu"]
    # A job that names n2 parts it from n1.
    parted = taken(pending("1", 1, excluded=frozenset({"n2", "n3"}))).live
    assert parted is not None
    assert [group.nodes for group in parted.machine.node_groups] == [1, 1, 1, 1]


def test_a_slurm_partition_with_a_max_time_of_0_runs_no_job() -> None:
    closed = parse_cluster(
        NODES, PARTITIONS.replace("MaxTime=1-00:00:00", "MaxTime=00:00:00"), CONFIG
    )
    assert closed.partitions[0].max_time_s == 0
    found = taken(pending("1", 1), pending("2", 1, "long"), machine=closed)
    assert [job.request.job_id for job in found.jobs] == ["2"]
    assert ["above max_time of 0-00:00:00" in each.reason for each in found.left_out] == [True]


def test_jobs_start_where_there_is_room_for_them() -> None:
    full = [running(f"r{n}", 8, HeldNode(f"n{n}", 8, 8_000)) for n in (1, 2, 10)]
    at = starts(
        taken(
            *full,
            running("drained", 8, HeldNode("n3", 8)),
            pending("any", 8),
            pending("not", 8, excluded=frozenset({"n1", "n2"})),
            pending("just", 8, required=frozenset({"n2"})),
            pending("gpus", 2, "gpu", gpus_per_node=4, constraint=("gpu:a100",)),
        ),
        *(250, 150, 350, 9_000),
        *(40, 600, 600, 600),
    )
    # r1 ends at 150 from now, r2 at 50, r10 at 250.
    assert at["any"] == 50
    assert at["just"] == 90
    assert at["not"] == 250
    assert at["gpus"] == 0


def test_memory_counts_where_slurm_counts_it() -> None:
    jobs = (
        running("r", 1, HeldNode("n10", 1, 10_000)),
        pending("much", 1, memory_per_node_mib=10_000, required=frozenset({"n10"})),
    )
    assert starts(taken(*jobs), 200, 10)["much"] == 100
    uncounted = replace(cluster(), counts_memory=False)
    assert starts(taken(*jobs, machine=uncounted), 200, 10)["much"] == 0


def test_what_can_not_start_is_left_out_with_the_reason() -> None:
    of = taken(
        pending("down", 1, "old"),
        pending("wide", 900),
        pending("held", 1),
        replace(pending("limit", 1), reason="QOSMaxJobsPerUserLimit"),
        replace(pending("feature", 1), asked=AskedNodes(constraint=("slow",))),
        replace(pending("reserved", 1), reservation="over"),
    )
    reasons = {each.job.request.job_id: each.reason for each in of.left_out}
    assert reasons["down"] == "partition old takes no jobs now"
    assert reasons["wide"].startswith("it needs 900 tasks of 1 CPU and 1,000 MiB, of which 24 fit")
    assert reasons["limit"] == "at a limit"
    assert reasons["feature"].startswith("no node has the feature 'slow'")
    assert reasons["reserved"] == "in reservation over, which has no nodes to start it on"
    assert [job.request.job_id for job in of.jobs] == ["held"]


@pytest.mark.parametrize(("flags", "to_come_s"), [((), 5_000), (("FLEX",), 0)])
def test_waits_in_a_reservation_count_from_its_begin(
    flags: tuple[str, ...], to_come_s: int
) -> None:
    """Past waits, too, which know no reservations. In a flexible one a job may start before."""
    course = Reservation(
        "course", NOW + 5_000, NOW + 9_000, flags=frozenset(flags), nodes=frozenset({"n1"})
    )
    jobs = (pending("outside", 8), replace(pending("inside", 8), reservation="course"))
    look = Look(NOW, Queue(64, jobs), cluster=cluster(), reservations=(course,))
    moment = QueueMoment.of(look, ForecastSettings()).everybody()
    assert moment.to_come_s().tolist() == [0, to_come_s]
    past = Qbets(60)
    for number in range(100):
        past.started(JobRequest(f"{number}", "bob", "physics", 8, 600, number, "main"), number + 70)
    # All have waited 70 s, and both were submitted 50 s ago.
    waits_s = 5_070 if to_come_s else 20
    assert past.forecast(moment).wait_s[:, MEDIAN].tolist() == [20, waits_s]


def test_a_reservation_keeps_others_away() -> None:
    claim = Reservation("course", NOW + 300, NOW + 900, nodes=frozenset({"n10", "n3"}))
    jobs = (
        running("r1", 8, HeldNode("n1", 8)),
        running("r2", 8, HeldNode("n2", 8)),
        pending("out", 8),
        replace(pending("in", 8), reservation="course"),
    )
    # n10 is free, but for 300 s only, and 600 are asked for.
    at = starts(taken(*jobs, reservations=(claim,)), 500, 600, 60, 60)
    assert at == {"r1": -100, "r2": -100, "out": 400, "in": 300}
    short = replace(claim, end_time=NOW + 600)
    left = taken(*jobs, reservations=(short,)).left_out
    assert [each.reason for each in left] == ["longer than its reservation course"]


def test_dependencies_and_throttles_delay_forward_runs() -> None:
    one = running("7", 8, HeldNode("n1", 8))
    after = replace(pending("8", 1), dependent=True, dependency="afterok:7(unfulfilled)")
    later = replace(pending("9", 1), dependent=True, dependency="after:8+2(unfulfilled)")
    at = starts(taken(one, after, later), 160, 10, 10)
    assert at == {"7": -100, "8": 60, "9": 180}
    single = replace(
        pending("10", 1), dependent=True, dependency="singleton(unfulfilled)", name="x"
    )
    like = replace(one, name="x", request=replace(one.request, user="bob"))
    assert starts(taken(like, single), 160, 10)["10"] == 60
    array = replace(
        pending("11", 1), tasks=3, pending_tasks="1-3", array_limit=1,
        request=replace(pending("11", 1).request, array_id="11"),
    )  # fmt: skip
    assert starts(taken(array), 10, 20, 30)["11"] == 30
    whole = replace(pending("12", 1), dependent=True, dependency="afterany:11_*(unfulfilled)")
    assert starts(taken(array, whole), 10, 20, 30, 5)["12"] == 60


def test_who_waits_for_a_job_that_is_left_out_is_left_out() -> None:
    held = replace(pending("1", 1), held=True)
    after = replace(pending("2", 1), dependent=True, dependency="afterany:1(unfulfilled)")
    chain = replace(pending("3", 1), dependent=True, dependency="afterany:2(unfulfilled)")
    failing = replace(pending("4", 1), dependent=True, dependency="afternotok:9(unfulfilled)")
    gone = replace(pending("5", 1), dependent=True, dependency="afterany:99(unfulfilled)")
    either = replace(
        pending("6", 1),
        dependent=True,
        dependency="afterany:1(unfulfilled)?afterany:5(unfulfilled)",
    )
    of = taken(held, after, chain, failing, gone, either)
    assert {each.job.request.job_id: each.reason for each in of.left_out} == {
        "1": "held",
        "2": "waits for job 1, which does not take part",
        "3": "waits for job 2, which does not take part",
        "4": "waits for what is not foreseen (afternotok)",
    }
    assert "jobs that others depend on are expected to succeed" in of.not_modelled
    assert starts(of, 10, 10) == {"5": 0, "6": 10}


def answers(*jobs: QueuedJob, machine: Cluster | None = None) -> dict[str, JobForecast]:
    """What the daemon forecasts of pending jobs, by identifier."""
    waits = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    waits.looked(Look(NOW, Queue(40, jobs), cluster=machine or cluster()))
    waits.refresh()
    assert waits.board is not None
    return {row.request.job_id: row for row in waits.board.rows}


FREED = "the wait is as if it were let go now"
UP = "the wait is as if everything were up and it were let go now"


@pytest.mark.parametrize(
    ("job", "reason", "assumed"),
    [
        (replace(pending("1", 1), held=True, reason="JobHeldUser"), "held by its user", FREED),
        (
            replace(
                pending("1", 1), dependent=True, dependency="afternotok:9(unfulfilled)",
                reason="Dependency",
            ),
            "waits for other jobs",
            FREED,
        ),
        (replace(pending("1", 1), reason="QOSMaxJobsPerUserLimit"), "at a limit of its", FREED),
        (replace(pending("1", 1), reservation="over"), "in reservation over", FREED),
        (pending("1", 1, "old"), "partition old takes no jobs now", UP),
        (
            replace(pending("1", 1, required=frozenset({"n3"})), reason="ReqNodeNotAvail,(n3)"),
            "waits for nodes that are down",
            UP,
        ),
        (pending("1", 40), "it needs 40 tasks of 1 CPU and 1,000 MiB, of which 24 fit", UP),
        (pending("1", 1, constraint=("slow",)), "no node has the feature", "it can't start"),
        (pending("1", 1, "nowhere"), "partition nowhere takes no jobs", "it can't start"),
        (replace(pending("1", 1), eligible_time=NOW + 60, reason="BeginTime"), "waits for its", ""),
        (pending("1", 1), "can start at once", ""),
    ],
)  # fmt: skip
def test_every_pending_job_has_an_answer_and_a_reason(
    job: QueuedJob, reason: str, assumed: str
) -> None:
    of = answers(running("r1", 8, HeldNode("n1", 8)), job)
    assert set(of) == {"1"}
    assert wait_reason(of["1"])["text"].startswith(reason)
    assert [words.rpartition(": ")[2].startswith(assumed) for words in of["1"].assumed] == (
        [True] if assumed else []
    )
    assert (of["1"].waits is None) == (assumed == "it can't start")


def test_every_pending_job_has_an_answer_where_everything_is_down() -> None:
    down = parse_cluster(NODES, PARTITIONS.replace("State=UP", "State=DOWN"), CONFIG)
    of = answers(running("r1", 8, HeldNode("n1", 8)), pending("1", 1), machine=down)
    assert of["1"].waits is not None
    assert of["1"].assumed == (f"no node of a partition that is up takes jobs now: {UP}",)


def test_a_new_job_where_everything_is_down_is_refused_in_words() -> None:
    down = parse_cluster(NODES, PARTITIONS.replace("State=UP", "State=DOWN"), CONFIG)
    waits = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    waits.looked(Look(NOW, Queue(0, ()), cluster=down))
    waits.refresh()
    assert waits.board is not None
    with pytest.raises(InputError) as refused:
        waits.what_if(waits.board, NewJob(JobRequest("", "cat", None, 2, 600, NOW, "main")))
    assert str(refused.value) == (
        "no node of a partition that is up takes jobs now; ask again when one does"
    )


def test_each_slurm_partition_has_a_map() -> None:
    waits = WaitForecasting(ForecastSettings(), CalibratedBest(20_000))
    looks = 0
    while len(waits.maps()) < 3 and looks < 60:
        looks += 1
        waits.looked(
            Look(NOW, Queue(40, (running("r1", 8, HeldNode("n1", 8)),)), cluster=cluster())
        )
        waits.refresh()
    main, long, gpu = waits.maps()
    assert [one.slurm_partition for one in (main, long, gpu)] == ["main", "long", "gpu"]
    assert [one.sizes[-1] for one in (main, long, gpu)] == [24, 16, 16]
    # MaxTime of main is a day, and so none is of three; two nodes of eight CPUs are free.
    assert main.median_wait_s[4] == [0, 0, 0, 0, 0, None]
    assert all(wait is not None and wait > 0 for wait in main.median_wait_s[5][:5])
    # Of long's two nodes one is free.
    assert long.median_wait_s[3][5] == 0
    assert (long.median_wait_s[4][5] or 0) > 0
    assert gpu.median_wait_s[4] == [0] * 6


def test_no_node_takes_jobs() -> None:
    down = parse_cluster(NODES, PARTITIONS.replace("State=UP", "State=DOWN"), CONFIG)
    of = taken(pending("1", 1), machine=down)
    assert [each.reason for each in of.left_out] == [
        "no node of a partition that is up takes jobs now"
    ]
    assert len(of.snapshot) == 0


@pytest.mark.parametrize("name", ["r&d", "a|b"])
def test_a_slurm_partition_that_has_no_place_in_the_machine_hinders_no_other(name: str) -> None:
    odd = parse_cluster(NODES, PARTITIONS.replace("=long ", f"={name} "), CONFIG)
    of = taken(pending("1", 1), pending("2", 1, name), pending("3", 1, f"{name},main"), machine=odd)
    assert [job.request.job_id for job in of.jobs] == ["1", "3"]
    assert {each.job.request.job_id: each.reason for each in of.left_out} == {
        "2": f"partition {name} is not modelled"
    }
    assert any(words.startswith(f"partition {name}: ") for words in of.not_modelled)
    assert not any("not modelled" in words for words in taken(pending("1", 1)).not_modelled)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ({"node_count": 1, "max_nodes": 0, "cpus": 4, "tasks": 4}, {"nodes": None, "tasks": 4}),
        ({"node_count": 1, "max_nodes": 4, "cpus": 4, "tasks": 4}, {"nodes": None, "tasks": 4}),
        ({"node_count": 2, "max_nodes": 2, "cpus": 2, "tasks": 2}, {"nodes": 2}),
        ({"node_count": 1, "max_nodes": 1, "cpus": 4, "tasks": 4}, {"nodes": 1}),
        ({"cpus": 8, "tasks": 2, "cpus_per_task": 4}, {"tasks": 2, "cpus_per_task": 4}),
        ({"cpus": 8, "tasks": 2}, {"tasks": 2, "cpus_per_task": 4}),
        ({"cpus": 8, "tasks": 1, "cpus_per_task": 1}, {"tasks": 8, "cpus_per_task": 1}),
        ({"features": "fast&ib"}, {"constraint": ("fast", "ib"), "not_modelled": ()}),
        ({"features": "fast|ib"}, {"constraint": (), "not_modelled": ("--constraint=fast|ib",)}),
        ({"tres_per_node": "gres/gpu:a100:2"}, {"gpus_per_node": 2, "constraint": ("gpu:a100",)}),
        ({"tres_per_node": "gres:gpu:2"}, {"gpus_per_node": 2, "constraint": ()}),
        ({"tres_per_node": "gpu"}, {"gpus_per_node": 1}),
        ({"tres_per_job": "gres/gpu=4", "node_count": 2}, {"gpus_per_node": 2}),
        (
            {"tres_per_job": "gres/gpu=4"},
            {
                "gpus_per_node": 4,
                "assumed": ("--gpus without --nodes: taken to be on one node",),
                "not_modelled": (),
            },
        ),
        (
            {"tres_per_node": "gres:gpu:1,gres:shard:2", "tres_per_task": "cpu=2,gres/fpga=1"},
            {"gpus_per_node": 1, "not_modelled": ("--gres=shard:2", "--gres=fpga=1")},
        ),
        ({"tres_per_node": "gres/gpu_old:1"}, {"not_modelled": ("--gres=gpu_old:1",)}),
        ({"tres_per_socket": "gres/gpu:1"}, {"not_modelled": ("--gpus-per-socket",)}),
        ({"licenses": "matlab:1"}, {"not_modelled": ("--licenses",)}),
        ({"tres_per_task": "gres/gpu:1", "tasks": 4, "node_count": 2}, {"gpus_per_node": 2}),
        ({"memory_per_cpu": {"set": True, "number": 2000}}, {"memory_per_cpu_mib": 2_000}),
        ({"memory_per_node": None, "memory_per_cpu": None}, {"memory_per_node_mib": None}),
        ({"shared": "none"}, {"exclusive": True}),
        ({"shared": [], "submit_line": "sbatch --exclusive -N 1 job.sh"}, {"exclusive": True}),
        ({"shared": [], "submit_line": "sbatch -N 1 job.sh"}, {"exclusive": False}),
        ({"shared": None}, {"exclusive": False}),
        ({"excluded_nodes": "n[1-2]"}, {"excluded": frozenset({"n1", "n2"})}),
        ({"contiguous": True}, {"not_modelled": ("--contiguous",)}),
        ({"required_switches": 1}, {"not_modelled": ("--switches",)}),
    ],
)
def test_what_jobs_ask_for(job: dict[str, Any], expected: dict[str, object]) -> None:
    asked = asked_nodes(job)
    assert {name: getattr(asked, name) for name in expected} == expected


@pytest.mark.parametrize("release", ["22.05", "26.05"])
def test_what_recorded_jobs_have(release: str) -> None:
    jobs = json.loads((RECORDED / release / "squeue.json").read_text())["jobs"]
    runs = next(job for job in jobs if "RUNNING" in str(job["job_state"]))
    assert held_nodes(runs) == tuple(HeldNode(f"n{n}", 4) for n in (1, 2, 3))
    assert asked_nodes(runs).tasks == 12
