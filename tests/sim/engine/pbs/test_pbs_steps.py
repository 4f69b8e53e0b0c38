"""Driven step by step, and begun from a snapshot, PBS schedules as in a whole run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, Snapshot, forward_runs, simulate
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsServer, PbsSite
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pbs.pbs_sites import site_of
from tests.support.pbs.pbs_workloads import pbs_sites, pbs_workloads


def driven(workload: Workload, site: PbsSite, soft: np.ndarray | None) -> Engine:
    """An engine to which each job has been submitted at its time."""
    begin = int(workload.submit_time[0])
    engine = Engine(
        site.machine.cpus,
        Policy(backfill=Pbs(site)),
        begin,
        epoch_of_zero=workload.epoch_of_zero,
    )
    for job in range(len(workload)):
        engine.advance(int(workload.submit_time[job]))
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
            None if soft is None else int(soft[job]),
            resources=replace(job_resources(workload, job), constraint=""),
            user=None if workload.users is None else workload.users.get(job),
            project=None if workload.projects is None else workload.projects.get(job),
        )
    return engine


def whole_run(workload: Workload, site: PbsSite, soft: np.ndarray | None) -> Schedule | None:
    """``None`` where jobs never run."""
    try:
        return simulate(workload, Policy(backfill=Pbs(site)), soft)
    except InputError:
        return None


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_steps_give_the_schedule_of_a_whole_run(data: st.DataObject) -> None:
    site = data.draw(pbs_sites())
    workload, soft = data.draw(pbs_workloads(site))
    whole = whole_run(workload, site, soft)
    if whole is None or not len(workload):
        return
    engine = driven(workload, site, soft)
    engine.finish()
    assert engine.schedule().start_time.tolist() == whole.start_time.tolist()


@settings(max_examples=200, deadline=None)
@given(st.data(), st.sampled_from([0, 1, 40, 300]))
def test_a_forward_run_goes_on_as_the_engine_does(data: st.DataObject, later: int) -> None:
    site = data.draw(pbs_sites())
    workload, soft = data.draw(pbs_workloads(site))
    if whole_run(workload, site, soft) is None or not len(workload):
        return
    engine = driven(workload, site, soft)
    engine.advance(int(workload.submit_time[-1]) + later)
    engine.settle()
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    runtimes = workload.actual_runtime[snapshot.engine_index][None, :]
    starts = forward_runs(snapshot, Policy(backfill=Pbs(site)), runtimes, threads=1)[0]
    engine.finish()
    went_on = engine.schedule().start_time[snapshot.engine_index]
    assert starts.tolist() == went_on.tolist()


def strict(depth: int = 1) -> PbsSite:
    return site_of(1, 4, {"strict_ordering": True}, server=PbsServer(backfill_depth=depth))


def test_the_start_of_a_top_job_can_be_asked_for() -> None:
    engine = Engine(4, Policy(backfill=Pbs(strict())))
    first, second, third = (engine.submit(0, 4, 600, 3600) for _ in range(3))
    engine.advance(1)
    assert engine.job(first).state == "running"
    assert engine.planned_start(second) == 3600
    assert engine.planned_start(third) is None


def test_a_running_job_is_extended_by_whole_soft_walltimes() -> None:
    engine = Engine(4, Policy(backfill=Pbs(strict())))
    engine.submit(0, 4, 3000, 3600, 1000)
    second = engine.submit(0, 4, 600, 3600)
    planned = []
    for moment in (1, 1001, 2001):
        engine.advance(moment)
        engine.submit(moment, 4, 10, 10)  # a cycle
        engine.settle()
        planned.append(engine.planned_start(second))
    assert planned == [1000, 2000, 3000]


def test_a_shorter_soft_walltime_lets_a_waiting_job_go_first() -> None:
    engine = Engine(4, Policy(backfill=Pbs(strict())))
    engine.submit(0, 3, 500, 1000)
    engine.submit(1, 4, 500, 1000)
    short = engine.submit(2, 1, 100, 3600)
    engine.advance(10)
    assert engine.job(short).state == "pending"
    engine.update(short, scheduled_time=100)
    engine.advance(11)
    assert engine.started_at(short) == 10


def test_a_cancelled_job_no_longer_counts() -> None:
    limits = PbsLimits(max_queued={"o:PBS_ALL": 2})
    engine = Engine(4, Policy(backfill=Pbs(site_of(1, 4, server=PbsServer(limits=limits)))))
    engine.submit(0, 4, 100, 100)
    waiting = engine.submit(1, 4, 100, 100)
    engine.advance(2)
    engine.cancel(waiting)
    taken = engine.submit(3, 4, 100, 100)
    engine.finish()
    assert engine.started_at(taken) == 100


def test_running_jobs_have_their_hosts_from_the_beginning() -> None:
    engine = Engine(8, Policy(backfill=Pbs(site_of(2, 4))), now=100)
    engine.add_running(50, 4, 100, 1000)
    one = engine.submit(100, 4, 100, 100)
    two = engine.submit(100, 4, 100, 100)
    engine.finish()
    assert (engine.started_at(one), engine.started_at(two)) == (100, 150)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"constraint": "fast"}, "constraint is not modelled under PBS"),
        ({"reservation": "R1"}, "reservation"),
        ({"slurm_partitions": ("workq", "workq")}, "a job of PBS has one queue"),
    ],
)
def test_what_pbs_jobs_do_not_say_here_is_refused(asked: dict[str, object], said: str) -> None:
    engine = Engine(4, Policy(backfill=Pbs(site_of(1, 4))))
    with pytest.raises(InputError, match=said):
        engine.submit(0, 1, 10, 10, resources=JobResources(**asked))  # type: ignore[arg-type]


def test_another_order_or_correction_is_refused() -> None:
    with pytest.raises(InputError, match="the site's scheduler orders the queue"):
        Policy(order=Order.SJF, backfill=Pbs(site_of(1, 4)))
    with pytest.raises(InputError, match="correction is doubling"):
        Policy(correction=Correction.DOUBLING, backfill=Pbs(site_of(1, 4)))


def test_a_snapshot_that_does_not_say_whose_jobs_are_is_refused_where_it_matters() -> None:
    limits = PbsLimits(max_run={"u:PBS_GENERIC": 1})
    site = site_of(1, 4, server=PbsServer(limits=limits))
    engine = Engine(4, Policy(backfill=Pbs(site)))
    engine.submit(0, 4, 100, 100)
    engine.advance(1)
    snapshot = replace(Snapshot.of(engine), pbs_notes=None)
    with pytest.raises(InputError, match="limits of users or projects"):
        forward_runs(snapshot, Policy(backfill=Pbs(site)), np.array([[100]]))
