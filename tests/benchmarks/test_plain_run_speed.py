"""CPU of the plain scheduler beside: going on with the clock against running from the beginning.

Goal: half of it on a machine of 128 processors with some 50 waiting jobs, three days after the
first day that is not settled.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.plain_beside.lived_days import lived
from foretime_sidecar.plain_beside.plain_run import PlainRun
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.models.workload_models import generate
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.resource_requests import with_machine

NODES, DAYS, EVERY_S = 128, 3, 900
BEGAN = 20_000 * 86_400
SITE = SlurmSite(Machine.flat(NODES))
NAMES = [f"n{number}" for number in range(NODES)]
CLUSTER = Cluster(
    tuple(ClusterNode(name, 1) for name in NAMES),
    (ClusterPartition("all", frozenset(NAMES), default=True),),
    counts_memory=False,
)
NOTHING = Beginning({}, frozenset())

pytestmark = pytest.mark.benchmark(group="the plain scheduler beside")


def jobs_of_days() -> list[KnownJob]:
    """Jobs as another scheduler has run them: short ones first."""
    workload = generate("lublin2003", jobs=1000, processors=NODES, load=1.0, seed=2)
    workload = with_machine(workload, Machine.flat(NODES))
    start = simulate(workload, Policy(order=Order.SJF)).start_time
    known = []
    for number, at in enumerate((BEGAN + workload.submit_time).tolist()):
        runtime, limit = int(workload.actual_runtime[number]), int(workload.requested_time[number])
        request = JobRequest(
            f"{number}", "ann", None, int(workload.processors[number]), limit, at, queue="all"
        )
        began = BEGAN + int(start[number])
        known.append(
            KnownJob(
                QueuedJob(request, QueueState.PENDING),
                at,
                RolePrediction(limit // 3, limit // 3, limit // 3),
                could_start=at,
                start_time=began,
                end_time=began + runtime,
                runtime_s=runtime,
            )
        )
    return known


def known_at(jobs: list[KnownJob], now: int) -> list[KnownJob]:
    """What is known of them at a time."""
    found = []
    for job in jobs:
        if job.seen_at > now:
            continue
        known = KnownJob(job.job, job.seen_at, job.expected, could_start=job.could_start)
        known.start_time = job.start_time if (job.start_time or 0) <= now else None
        if (job.end_time or 0) <= now:
            known.end_time, known.runtime_s = job.end_time, job.runtime_s
        found.append(known)
    return found


def test_plain_run_speed(benchmark: Any) -> None:
    jobs = jobs_of_days()
    moment = RealMoment(BEGAN, CLUSTER, (), {}, SITE)
    until = BEGAN + DAYS * 86_400
    times = range(until, until + 12 * 3600, EVERY_S)
    known = {now: known_at(jobs, now) for now in times}
    run = PlainRun(moment, NOTHING)
    for now in range(BEGAN + EVERY_S, until, EVERY_S):
        list(run.go_on(known_at(jobs, now), now))

    def go_on() -> None:
        for now in times:
            list(run.go_on(known[now], now))

    began = time.thread_time()
    for now in times:
        list(lived(known[now], moment, NOTHING, now, now + 1))
    anew_s, began = time.thread_time() - began, time.thread_time()
    benchmark.pedantic(go_on, rounds=1)
    goes_on_s = time.thread_time() - began
    benchmark.extra_info |= {
        "cpu_ms_anew": 1000 * anew_s / len(times),
        "cpu_ms_going_on": 1000 * goes_on_s / len(times),
        "ratio": goes_on_s / anew_s,
        "goal_ratio": 0.5,
    }
