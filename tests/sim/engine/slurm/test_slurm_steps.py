"""Driven step by step, and begun from a snapshot, Slurm schedules as in a whole run."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, Snapshot, forward_runs, simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.order import Order
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJob
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.slurm.test_slurm_agreement import PARAMETERS
from tests.support.slurm.loop_settings import VERSIONS
from tests.support.workloads.small_workloads import workloads as flat_workloads


def driven(workload: Workload, site: SlurmSite) -> Engine:
    """An engine to which each job has been submitted at its time."""
    engine = Engine(
        site.machine.cpus,
        Policy(backfill=Slurm(site)),
        int(workload.submit_time[0]),
        epoch_of_zero=workload.epoch_of_zero,
    )
    for job in range(len(workload)):
        engine.advance(int(workload.submit_time[job]))
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(workload.actual_runtime[job]),
            int(workload.requested_time[job]),
        )
    return engine


@given(st.data(), PARAMETERS, VERSIONS)
def test_steps_give_the_schedule_of_a_whole_run(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    processors = data.draw(st.integers(1, 8))
    workload = data.draw(flat_workloads(processors))
    site = SlurmSite(Machine.flat(processors), version, parameters)
    engine = driven(workload, site)
    engine.finish()
    whole = simulate(workload, Policy(backfill=Slurm(site)))
    assert engine.schedule().start_time.tolist() == whole.start_time.tolist()


@settings(deadline=None)
@given(st.data(), PARAMETERS, VERSIONS, st.integers(0, 500))
def test_a_runtime_that_is_told_later_gives_the_same_schedule(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], later: int
) -> None:
    """Slurm does not see how long jobs will run, so its loops come when they would have."""
    processors = data.draw(st.integers(1, 8))
    workload = data.draw(flat_workloads(processors))
    site = SlurmSite(Machine.flat(processors), version, parameters)
    whole = simulate(workload, Policy(backfill=Slurm(site)))
    now = int(workload.submit_time[0]) + later
    engine = Engine(
        processors,
        Policy(backfill=Slurm(site)),
        int(workload.submit_time[0]),
        epoch_of_zero=workload.epoch_of_zero,
    )
    longer = np.maximum(workload.requested_time, workload.actual_runtime)
    for job in range(len(workload)):
        known = workload.actual_runtime if whole.end_time[job] <= now else longer
        engine.submit(
            int(workload.submit_time[job]),
            int(workload.processors[job]),
            int(known[job]),
            int(workload.requested_time[job]),
        )
    engine.advance(now)
    is_news = (whole.end_time > now) & (longer != workload.actual_runtime)
    for job in np.flatnonzero(is_news).tolist():
        engine.update(job, actual_runtime=int(workload.actual_runtime[job]))
    engine.finish()
    assert engine.schedule().start_time.tolist() == whole.start_time.tolist()


@settings(deadline=None)
@given(st.data(), PARAMETERS, VERSIONS, st.integers(0, 500))
def test_a_forward_run_goes_on_as_the_engine_does(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], later: int
) -> None:
    processors = data.draw(st.integers(1, 8))
    workload = data.draw(flat_workloads(processors))
    site = SlurmSite(Machine.flat(processors), version, parameters)
    policy = Policy(backfill=Slurm(site))
    engine = driven(workload, site)
    engine.advance(int(workload.submit_time[-1]) + later)
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    runtimes = workload.actual_runtime[snapshot.engine_index][None, :]
    starts = forward_runs(snapshot, policy, runtimes, threads=1)[0]
    engine.finish()
    went_on = engine.schedule().start_time[snapshot.engine_index]
    assert starts.tolist() == went_on.tolist()


def test_the_plan_of_the_last_backfill_cycle_can_be_asked_for() -> None:
    engine = Engine(4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))))
    first, second = (engine.submit(0, 4, 600, 3600) for _ in range(2))
    engine.advance(40)
    assert engine.job(first).state == "running"
    assert engine.planned_start(second) == engine.started_at(first) + 3600


def test_a_longer_limit_of_a_running_job_moves_the_plan() -> None:
    engine = Engine(4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))))
    first, second = (engine.submit(0, 4, 600, 3600) for _ in range(2))
    engine.advance(40)
    engine.update(first, requested_time=7200, scheduled_time=7200, time_limit=7200)
    engine.advance(200)
    assert engine.planned_start(second) == engine.started_at(first) + 7200


def test_a_soft_limit_lets_a_job_start_before_a_plan() -> None:
    parameters = SlurmParameters(time_min_as_soft_limit=True)
    starts = []
    for time_min_s in (None, 60):
        engine = Engine(
            4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4), parameters=parameters)))
        )
        engine.submit(0, 3, 600, 600)
        engine.submit(1, 4, 600, 600)
        short = engine.submit(2, 1, 60, 3600, said=SiteJob(time_min_s=time_min_s))
        engine.finish()
        starts.append(engine.started_at(short))
    assert starts[1] < 60 < starts[0]


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"machine": Machine.flat(3)}, "machine is another than that of the site"),
        ({"reservations": (AdvanceReservation(0, 10, 1),)}, "reservations are those of the site"),
    ],
)
def test_what_the_site_says_is_not_said_again(given_: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Engine(4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))), **given_)  # type: ignore[arg-type]


def test_another_queue_order_is_refused() -> None:
    with pytest.raises(InputError, match="the site's priorities order the queue"):
        Policy(order=Order.SJF, backfill=Slurm(SlurmSite(Machine.flat(4))))


def test_forward_runs_refuse_another_machine() -> None:
    engine = Engine(4)
    engine.submit(0, 4, 60, 60)
    snapshot = Snapshot.of(engine)
    with pytest.raises(InputError, match="the snapshot's machine is that of the site"):
        forward_runs(snapshot, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))), np.array([[60]]))


def test_a_job_whose_site_factor_is_raised_is_the_first_that_slurm_looks_at() -> None:
    """It asks for too much to be backfilled, and starts with the main loop that a change asks for.

    `_slurm_rpc_update_job`, proc_req.c.
    """
    engine = Engine(4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))))
    engine.submit(0, 3, 3600, 3600)
    head = engine.submit(0, 4, 600, 600)
    later = [engine.submit(0, 1, 60, 7200) for _ in range(2)]
    engine.advance(100)
    assert [engine.job(job).state for job in later] == ["pending", "pending"]
    engine.update(later[1], site_factor=1000)
    assert [engine.slurm_priority(job) for job in later] == [1, 1000]
    engine.advance(104)
    assert [engine.job(job).state for job in (head, *later)] == ["pending", "pending", "running"]
    assert 100 <= engine.started_at(later[1]) <= 103
    with pytest.raises(InputError, match="nice, qos and site_factor are of jobs that wait"):
        engine.update(later[1], site_factor=0)


def test_a_site_factor_that_is_taken_back_leaves_the_order_as_it_was() -> None:
    engine = Engine(4, Policy(backfill=Slurm(SlurmSite(Machine.flat(4)))))
    jobs = [engine.submit(0, 4, 600, 600) for _ in range(4)]
    engine.advance(100)
    assert engine.queue().tolist() == jobs[1:]
    for factor, order in ((500, [3, 1, 2]), (0, [1, 2, 3]), (-500, [1, 2, 3])):
        engine.update(jobs[3], site_factor=factor)
        engine.settle()
        waiting = sorted(
            engine.queue().tolist(), key=lambda job: (-(engine.slurm_priority(job) or 0), job)
        )
        assert waiting == [jobs[place] for place in order]
    engine.finish()
    assert [engine.started_at(job) for job in jobs] == sorted(map(engine.started_at, jobs))


def test_a_site_factor_is_a_sites() -> None:
    engine = Engine(4)
    job = engine.submit(0, 4, 600, 600)
    with pytest.raises(InputError, match="are for a site's Slurm"):
        engine.update(job, site_factor=1)
