"""Sampled arrivals get a place in the queue and what they ask of nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.engine.forward import (
    PendingJobs,
    RunningJobs,
    SampledArrivals,
    Snapshot,
    forward_runs,
)
from foretime_sim.engine.stepwise import Engine
from foretime_sim.engine.told_jobs import ToldJob
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Qos
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forward_forecaster import our_forecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.newcomers import Newcomers, newcomers_priorities
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.scores.moments import Asking, ask_forecasters
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.site_jobs import SiteJob
from foretime_sim.workloads.workload import Workload

NOW = 1_000
MACHINE = Machine(
    (NodeGroup("thin", nodes=4, cpus=4), NodeGroup("fat", nodes=1, cpus=16)),
    (SlurmPartition("normal", ("thin",), default=True), SlurmPartition("large", ("fat",))),
)


def queue(priority: Int64Array) -> PendingJobs:
    ones = np.ones(len(priority), dtype=np.int64)
    return PendingJobs(np.arange(len(priority)) * 10, ones, ones, priority=priority)


def arriving(processors: list[int], requested_time: int = 60) -> SampledArrivals:
    jobs = len(processors)
    times = np.full(jobs, requested_time)
    return SampledArrivals(
        np.zeros(jobs, dtype=np.int64), np.full(jobs, NOW + 1), np.array(processors), times, times
    )


def request(processors: int, where: str | None) -> JobRequest:
    return JobRequest("job", None, None, processors, 60, NOW, queue=where)


def on_nodes() -> Moment:
    engine = Engine(MACHINE.cpus, now=NOW, machine=MACHINE)
    return Moment(Snapshot.of(engine), Policy(), [], np.zeros(0, dtype=np.int64))


def test_newcomers_come_where_the_newest_came() -> None:
    rng = np.random.default_rng(0)
    in_order = newcomers_priorities(queue(-np.arange(20)), 50, rng)
    assert set(in_order.tolist()) == {-20}
    last_first = newcomers_priorities(queue(np.arange(20)), 50, rng)
    assert (last_first > 17).all()
    mixed = newcomers_priorities(queue(rng.permutation(20)), 500, rng)
    assert mixed.min() < 5 < 14 < mixed.max()
    assert newcomers_priorities(queue(np.array([3])), 2, rng).tolist() == [2, 2]
    assert newcomers_priorities(queue(np.zeros(0, dtype=np.int64)), 1, rng).tolist() == [0]


def test_nothing_is_added_where_nothing_is_needed() -> None:
    none = np.zeros(0, dtype=np.int64)
    snapshot = Snapshot(NOW, 8, RunningJobs(none, none, none), PendingJobs(none, none, none))
    arrivals = arriving([1, 2])
    moment = Moment(snapshot, Policy(), [], none)
    assert Newcomers().placed(arrivals, moment, np.random.default_rng(0)) is arrivals


def test_newcomers_are_sent_where_jobs_of_their_size_were() -> None:
    newcomers = Newcomers()
    for processors, where in (
        (1, "normal"),
        (2, None),
        (8, "large"),
        (16, "large,gone"),
        (40, "x"),
    ):
        newcomers.submitted(request(processors, where))
    arrivals = arriving([1, 2, 3, 7, 16, 40])
    placed = newcomers.placed(arrivals, on_nodes(), np.random.default_rng(0))
    assert placed.slurm_partitions is not None
    assert placed.slurm_partitions.by_job() == ["normal", None, None, "large", "large", None]
    assert placed.processors is arrivals.processors


def test_newcomers_have_the_qos_of_past_jobs_that_were_seen_in_the_queue() -> None:
    newcomers, rng = Newcomers(), np.random.default_rng(0)
    jobs = [JobRequest(name, name, "lab", cpus, 60, NOW) for name, cpus in (("ann", 1), ("bob", 8))]
    for job in jobs:
        newcomers.submitted(job)
    told = (ToldJob("ann", "lab", said=SiteJob(qos="high")), ToldJob("bob", "lab"))

    def owners(requests: list[JobRequest], *names: str) -> list[tuple[str | None, str | None]]:
        site = SlurmSite(MACHINE, qos={name: Qos(name) for name in names})
        engine = Engine(MACHINE.cpus, now=NOW, machine=MACHINE)
        for job in requests:
            engine.submit(NOW, job.processors, 60, 60)
        snapshot = replace(Snapshot.of(engine), told=told[: len(requests)])
        policy = Policy(backfill=Slurm(site))
        moment = Moment(snapshot, policy, requests, np.zeros(0, dtype=np.int64))
        placed = newcomers.placed(arriving([8, 1, 1]), moment, rng)
        assert placed.owner is not None
        found = [placed.owners[row] for row in placed.owner.tolist()]
        return [(one.user, one.said.qos) for one in found if isinstance(one, ToldJob)]

    assert owners(jobs, "high") == [("bob", None), ("ann", "high"), ("ann", "high")]
    assert owners([], "high") == [("bob", None), ("ann", "high"), ("ann", "high")]
    assert owners(jobs, "other") == [("bob", None), ("ann", None), ("ann", None)]


def test_who_is_wider_than_what_is_up_of_a_pool_is_left_out() -> None:
    one, none = np.ones(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    snapshot = Snapshot(NOW, 8, RunningJobs(none, none, none), PendingJobs(one, 8 * one, 60 * one))
    moment = Moment(snapshot, Policy(), [request(8, None)], np.zeros(1, dtype=np.int64))
    arrivals = replace(arriving([8, 9, 1]), priority=np.arange(3))
    placed = Newcomers().placed(arrivals, moment, np.random.default_rng(0))
    assert placed.processors.tolist() == [8, 1]
    assert placed.priority is not None
    assert placed.priority.tolist() == [0, 2]
    runtimes = np.full((1, 1), 60)
    forward_runs(snapshot, Policy(), runtimes, arrivals=placed)
    with pytest.raises(InputError, match="processors"):
        forward_runs(snapshot, Policy(), runtimes, arrivals=arrivals)


def test_perfect_runtimes_forecast_well_on_nodes() -> None:
    """A log on nodes, from snapshots with requests to answers; perfect runtimes are near."""
    rng = np.random.default_rng(5)
    jobs = 100
    requested = rng.integers(1, 20, jobs) * 60
    large = rng.random(jobs) < 0.3
    where = Labels(large.astype(np.int32), ("normal", "large"))
    workload = with_machine(
        Workload(
            name="nodes",
            machine_processors=MACHINE.cpus,
            unix_start_time=None,
            job_id=np.arange(jobs),
            submit_time=np.sort(rng.integers(0, 12_000, jobs)),
            processors=np.where(large, rng.integers(1, 17, jobs), rng.integers(1, 9, jobs)),
            actual_runtime=1 + (requested * rng.random(jobs)).astype(np.int64),
            requested_time=requested,
            queues=where,
            requests=ResourceRequests(slurm_partitions=where),
        ),
        MACHINE,
    )
    for policy in (Policy(), Policy(Order.SJF)):
        ours = our_forecaster(samples=10)
        perfect = PlanForecaster("perfect", estimator_of("actual", workload))
        source = SimulatedWaits(workload, policy)
        records = ask_forecasters(source, [ours, perfect], Asking(looks_s=(120,)))
        waited = records.waited_s
        assert (waited > 0).mean() > 0.3
        assert np.isfinite(records.wait_s).all()
        np.testing.assert_array_equal(records.of("forward").starts_now == 1, waited == 0)
        if policy.order is Order.FCFS:
            near = np.abs(records.of("perfect").wait_s[:, 0] - waited) <= 60
            assert near.mean() > 0.8
