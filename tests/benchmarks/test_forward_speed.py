"""Speed of forward runs: the goals, by policy, threads and depth of the queue, and on real logs.

Goals: 1,000 samples of 1,000 queued and 500 running jobs under EASY in under 2 s on two cores, and
a single what-if in under 5 ms from Python. `make bench` runs these; the figures are in the saved
results (`--benchmark-json`) and printed with `-s`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.forward import (
    PendingJobs,
    RunningJobs,
    Snapshot,
    forward_runs,
    start_times_of,
    usable_cores,
)
from foretime_sim.engine.node_snapshot import NodeRequests
from foretime_sim.engine.stepwise import Engine
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.workload import Workload

RUNNING, QUEUED, SAMPLES = 500, 1_000, 1_000
NOW = 1_000_000
POLICIES = {
    "fcfs-none": Policy(backfill=Backfill.NONE),
    "fcfs-easy": Policy(),
    "fcfs-easy-sjbf": Policy(backfill=Backfill.EASY_SJBF),
    "sjf-easy": Policy(Order.SJF),
    "wfp-easy": Policy(Order.WFP),
    "fcfs-easy-depth-10": Policy(backfill=Easy(depth=10)),
    "fcfs-first-fit": Policy(backfill=Backfill.FIRST_FIT),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    "fcfs-planning": Policy(backfill=Backfill.PLANNING),
    "fcfs-easy-slurm-guard": Policy(backfill=Easy(guard=Guard(3_600)), correction=Correction.SLURM),
    "fcfs-easy-halved-doubling": Policy(correction=Correction.DOUBLING),
}
CHANGING_FAMILIES: dict[str, Backfilling] = {
    "easy": Backfill.EASY,
    "none": Backfill.NONE,
    "first-fit": Backfill.FIRST_FIT,
    "easy-depth-10": Easy(depth=10),
}
LOGS = {
    "KTH-SP2-1996-2.1-cln": None,
    "SDSC-BLUE-2000-4.2-cln": None,
    "CEA-Curie-2011-2.1-cln": 80_640,
}


@cache
def crowded(queued: int = QUEUED, running: int = RUNNING, scheduled: int = 1) -> Snapshot:
    """Give a machine full of running jobs; scheduled times are requested times / ``scheduled``."""
    rng = np.random.default_rng(1)
    widths = 2 ** rng.integers(0, 8, running)
    requested = rng.integers(1, 49, running) * 1_800
    wanted = rng.integers(1, 49, queued) * 1_800
    return Snapshot(
        NOW,
        max(int(widths.sum() * 1.01), 256),
        RunningJobs(
            NOW - (rng.random(running) * requested * 0.9).astype(np.int64),
            widths,
            requested,
            requested // scheduled,
        ),
        PendingJobs(
            NOW - rng.integers(0, 86_400, queued),
            2 ** rng.integers(0, 9, queued),
            wanted,
            wanted // scheduled,
        ),
    )


@cache
def crowded_nodes(queued: int = QUEUED, running: int = RUNNING) -> Snapshot:
    """Give 600 nodes of 32 and 48 CPUs that running jobs share, two slurm_partitions over both."""
    machine = Machine(
        (NodeGroup("thin", 500, 32, 128_000), NodeGroup("fat", 100, 48, 512_000, weight=2)),
        (
            SlurmPartition("short", ("thin", "fat"), max_time_s=86_400, default=True),
            SlurmPartition("long", ("thin",), default_memory_per_cpu_mib=3_900),
        ),
    )
    rng = np.random.default_rng(1)
    engine = Engine(machine.cpus, Policy(backfill=Backfill.FIRST_FIT), NOW, machine=machine)
    for _ in range(running):
        cpus, requested = int(2 ** rng.integers(0, 8)), int(rng.integers(1, 49)) * 1_800
        engine.submit(NOW, cpus, requested, requested)
    engine.settle()
    moment = Snapshot.of(engine)
    wanted = rng.integers(1, 49, queued) * 1_800
    processors = 2 ** rng.integers(0, 9, queued)
    resources = [JobResources(("short", "long") if n % 3 else ("long",)) for n in range(queued)]
    requests = NodeRequests.of(machine, resources, processors, wanted)
    submitted = NOW - rng.integers(0, 86_400, queued)
    pending = PendingJobs(submitted, processors, wanted, requests=requests)
    return replace(moment, pending=pending, engine_index=None)


@cache
def sampled(snapshot_of: Callable[[], Snapshot], samples: int = SAMPLES) -> Int64Array:
    """Draw runtimes evenly up to the requested times, beyond the ages of running jobs."""
    snapshot = snapshot_of()
    rng = np.random.default_rng(2)
    requested = np.concatenate([snapshot.running.requested_time, snapshot.pending.requested_time])
    drawn: Int64Array = 1 + (rng.random((samples, len(requested))) * requested).astype(np.int64)
    ages = snapshot.now - snapshot.running.start_time
    drawn[:, : len(ages)] = np.maximum(drawn[:, : len(ages)], ages + 1)
    return drawn


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    """Give the least time of a few."""
    taken = []
    for _ in range(rounds):
        begin = time.perf_counter()
        work()
        taken.append(time.perf_counter() - begin)
    return min(taken)


# The benchmark fixture is Any: its own types are incomplete.


def test_a_thousand_samples(benchmark: Any) -> None:
    """The first goal: under 2 s on two cores."""
    benchmark.group = "forward runs: goals"
    snapshot, runtimes = crowded(), sampled(crowded)
    benchmark.pedantic(
        forward_runs, args=(snapshot, Policy(), runtimes), kwargs={"threads": 2}, rounds=3
    )
    taken = benchmark.stats.stats.min
    benchmark.extra_info["samples_per_s"] = round(SAMPLES / taken)
    print(f"1,000 samples, 2 threads: {taken:.3f} s (goal 2 s)")


def test_a_single_what_if(benchmark: Any) -> None:
    """The second goal: under 5 ms from Python, from a snapshot; the job starts among the last."""
    benchmark.group = "forward runs: goals"
    snapshot, runtimes = crowded(), sampled(crowded)[:1]

    def what_if() -> Int64Array:
        asked = snapshot.with_job(256, 86_400)
        sample = np.append(runtimes, [[3_600]], axis=1)
        return start_times_of(-1, asked, Policy(), sample, threads=1)

    benchmark(what_if)
    print(f"what-if: {benchmark.stats.stats.median * 1e3:.2f} ms (goal 5 ms)")


@pytest.mark.parametrize("nodes", [False, True])
def test_nodes_beside_a_flat_pool(benchmark: Any, nodes: bool) -> None:
    """The same queue on 600 shared nodes: each run copies them, and places each job."""
    benchmark.group = "forward runs: nodes and a flat pool, one thread"
    snapshot = crowded_nodes()
    runtimes = sampled(crowded_nodes)[:20]
    if not nodes:
        flat = replace(snapshot.running, held=None, slurm_partition=None)
        pending = replace(snapshot.pending, requests=None)
        snapshot = replace(snapshot, machine=None, running=flat, pending=pending)
    benchmark.pedantic(
        forward_runs, args=(snapshot, Policy(), runtimes), kwargs={"threads": 1}, rounds=3
    )
    milliseconds = benchmark.stats.stats.min / len(runtimes) * 1e3
    print(f"{'nodes' if nodes else 'flat'}: {milliseconds:.2f} ms a run")


@pytest.mark.parametrize("policy", POLICIES)
def test_by_policy_and_threads(benchmark: Any, policy: str) -> None:
    benchmark.group = "forward runs by policy, one thread"
    chosen = POLICIES[policy]
    scheduled = 1 if chosen.correction is Correction.REQUESTED else 2
    snapshot = crowded(scheduled=scheduled)
    runtimes = sampled(crowded)[: 2 if chosen.backfill.plans_every_job else 20]
    benchmark.pedantic(
        forward_runs, args=(snapshot, chosen, runtimes), kwargs={"threads": 1}, rounds=3
    )
    one = benchmark.stats.stats.min
    two = seconds(lambda: forward_runs(snapshot, chosen, runtimes, threads=2))
    benchmark.extra_info["samples_per_s"] = round(len(runtimes) / one)
    benchmark.extra_info["times_faster_with_two_threads"] = round(one / two, 2)
    print(f"{policy}: {benchmark.extra_info} ({usable_cores()} cores)")


@pytest.mark.parametrize("family", ["easy", "none", "first-fit", "easy-depth-10"])
@pytest.mark.parametrize("order", [Order.XF, Order.WFP])
def test_orders_that_change_with_time(benchmark: Any, order: Order, family: str) -> None:
    """At most three times what first come, first served costs, measured in turn."""
    benchmark.group = "forward runs by orders that change with time, beside fcfs, one thread"
    backfill = CHANGING_FAMILIES[family]
    samples = sampled(crowded)[: 5 if family == "easy-depth-10" else 50]

    def runs(chosen: Order) -> Int64Array:
        return forward_runs(crowded(), Policy(chosen, backfill), samples, threads=1)

    served = seconds(lambda: runs(Order.FCFS), rounds=5)
    benchmark.pedantic(runs, args=(order,), rounds=5)
    benchmark.extra_info["ratio"] = benchmark.stats.stats.min / served
    benchmark.extra_info["goal_ratio"] = 3.0
    print(f"{order.value} {family}: {benchmark.extra_info['ratio']:.2f} times fcfs (goal 3)")


@pytest.mark.parametrize("order", [Order.FCFS, Order.WFP])
@pytest.mark.parametrize("queued", [100, 1_000, 5_000, 20_000])
def test_by_depth_of_the_queue(benchmark: Any, queued: int, order: Order) -> None:
    benchmark.group = "forward runs by queue depth, one thread"
    snapshot = crowded(queued)
    runtimes = sampled(lambda: snapshot, 5)
    benchmark.pedantic(
        forward_runs, args=(snapshot, Policy(order), runtimes), kwargs={"threads": 1}, rounds=3
    )
    each = benchmark.stats.stats.min / len(runtimes) / len(snapshot)
    benchmark.extra_info["ns_per_job"] = round(each * 1e9)
    print(f"{queued} queued, {order.value}: {benchmark.extra_info}")


def test_against_the_reference(benchmark: Any) -> None:
    """Of 300 jobs that all wait on an empty machine, one sample, in plain Python and here."""
    benchmark.group = "forward runs: ratio to the reference"
    jobs = 300
    snapshot = crowded(jobs, 0)
    pending = snapshot.pending
    runtimes = sampled(lambda: snapshot, 100)
    order = np.argsort(pending.submit_time, kind="stable")
    workload = Workload(
        "queue",
        snapshot.machine_processors,
        None,
        np.arange(jobs),
        np.full(jobs, NOW),
        pending.processors[order],
        runtimes[0, order],
        pending.requested_time[order],
    )
    begin = time.perf_counter()
    expected = reference.simulate(workload, Policy())
    plain = time.perf_counter() - begin
    starts = benchmark.pedantic(
        forward_runs, args=(snapshot, Policy(), runtimes), kwargs={"threads": 1}, rounds=3
    )
    assert np.array_equal(starts[0, order], expected.start_time)
    each = benchmark.stats.stats.min / len(runtimes)
    benchmark.extra_info["times_reference"] = round(plain / each)
    print(f"one sample: {benchmark.extra_info}")


@cache
def deepest_moment(path: Path, processors: int | None) -> tuple[Snapshot, Int64Array]:
    """Give the moment of a log at which most jobs wait, and the runtimes that its jobs had."""
    log = workload_of_log(read_log(path), processors=processors)[0]
    schedule = simulate(log)
    moments = np.concatenate([log.submit_time, schedule.start_time])
    change = np.repeat([1, -1], len(log))
    by_time = np.lexsort((-change, moments))
    now = int(moments[by_time][np.cumsum(change[by_time]).argmax()])
    running = np.flatnonzero((schedule.start_time < now) & (schedule.end_time > now))
    pending = np.flatnonzero((log.submit_time <= now) & (schedule.start_time >= now))
    snapshot = Snapshot(
        now,
        log.machine_processors,
        RunningJobs(
            schedule.start_time[running], log.processors[running], log.requested_time[running]
        ),
        PendingJobs(log.submit_time[pending], log.processors[pending], log.requested_time[pending]),
    )
    return snapshot, log.actual_runtime[np.concatenate([running, pending])]


@pytest.mark.parametrize("name", LOGS)
def test_deepest_queue_of_a_log(benchmark: Any, trace: Callable[[str], Path], name: str) -> None:
    benchmark.group = "forward runs from a log's deepest queue"
    snapshot, actual = deepest_moment(trace(f"{name}.swf.gz"), LOGS[name])
    rng = np.random.default_rng(2)
    runtimes = (actual * rng.uniform(0.5, 1.5, size=(100, len(actual)))).astype(np.int64)
    benchmark.pedantic(
        forward_runs, args=(snapshot, Policy(), runtimes), kwargs={"threads": 2}, rounds=3
    )
    benchmark.extra_info["running"] = len(snapshot.running)
    benchmark.extra_info["queued"] = len(snapshot.pending)
    benchmark.extra_info["samples_per_s"] = round(len(runtimes) / benchmark.stats.stats.min)
    print(f"{name}: {benchmark.extra_info}")
