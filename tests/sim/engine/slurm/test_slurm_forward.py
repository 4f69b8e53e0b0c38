"""Forward runs go by a site's priorities, fair share and limits, from where the moment is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import Policy, Snapshot, forward_runs
from foretime_sim.engine.forward import NEVER, ToldJob
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.limits import Association, Limits, Qos
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJob
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.sim.engine.slurm.test_slurm_agreement import PARAMETERS, on_nodes
from tests.sim.engine.slurm.test_slurm_rules_agreement import stepwise
from tests.support.slurm.drawn_rules import ruled_sites, ruled_workloads
from tests.support.slurm.loop_settings import VERSIONS
from tests.support.workloads.node_workloads import machines
from tests.support.workloads.node_workloads import workloads as node_workloads
from tests.support.workloads.small_workloads import workloads as flat_workloads


def check_goes_on(data: st.DataObject, engine: Engine) -> None:
    """A forward run from some later moment gives the starts that the engine comes to."""
    engine.advance(engine.now + data.draw(st.integers(0, 500)))
    snapshot = Snapshot.of(engine)
    assert snapshot.engine_index is not None
    jobs = snapshot.engine_index.tolist()
    runtimes = np.array([[engine.job(job).actual_runtime for job in jobs]], dtype=np.int64)
    starts = forward_runs(snapshot, engine.policy, runtimes, threads=1)[0].tolist()
    engine.finish()
    went_on = [engine.job(job).start_time for job in jobs]
    assert starts == [NEVER if start is None else start for start in went_on]


@settings(max_examples=100, deadline=None)
@given(st.data(), PARAMETERS, VERSIONS, st.booleans())
def test_a_forward_run_goes_by_rules_as_the_engine_does(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], limited: bool
) -> None:
    machine = Machine.flat(data.draw(st.integers(1, 8)))
    workload = data.draw(ruled_workloads(data.draw(flat_workloads(machine.cpus))))
    site = data.draw(ruled_sites(machine, version, parameters, limited=limited))
    check_goes_on(data, stepwise(workload, site, finish=False))


@settings(max_examples=50, deadline=None)
@given(st.data(), PARAMETERS, VERSIONS, st.booleans())
def test_a_forward_run_on_nodes_goes_by_rules_as_the_engine_does(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int], limited: bool
) -> None:
    machine = data.draw(machines())
    workload = data.draw(node_workloads(machine, most_jobs=15))
    assume(len(workload))
    workload = data.draw(ruled_workloads(workload))
    site = data.draw(ruled_sites(machine, version, parameters, limited=limited))
    check_goes_on(data, stepwise(workload, site, finish=False))


@settings(max_examples=50, deadline=None)
@given(st.data(), PARAMETERS, VERSIONS)
def test_a_forward_run_knows_of_arrays_reservations_and_dependencies(
    data: st.DataObject, parameters: SlurmParameters, version: tuple[int, int]
) -> None:
    workload, site = data.draw(on_nodes(parameters, version))
    assume(len(workload))
    check_goes_on(data, stepwise(workload, site, finish=False))


TWO = Machine.flat(2)
SITE = SlurmSite(
    TWO,
    parameters=SlurmParameters(batch_sched_delay=0, bf_interval=1),
    priority=SlurmPriority(weight_age=1000, weight_qos=1000, max_age_s=3600, calc_period_s=60),
    qos={"normal": Qos("normal", limits=Limits(max_jobs=1)), "high": Qos("high", priority=10)},
    associations=(
        Association("root"),
        *(
            Association("root", user=user, qos=("normal", "high"), default_qos="normal")
            for user in ("ann", "bob")
        ),
    ),
    enforced=frozenset({"associations", "limits", "qos"}),
)
"""A job of each user at a time, but under the QOS high."""


def waiting(told: tuple[ToldJob, ...]) -> Snapshot:
    """A job of both processors for ten minutes, and others of one, submitted one after another."""
    engine = Engine(2, Policy(backfill=Slurm(SITE)))
    engine.submit(0, 2, 600, 600, user="ann")
    engine.advance(10)
    for job in range(1, len(told)):
        engine.submit(10 + job, 1, 300, 600, user="ann")
    engine.advance(60)
    return replace(Snapshot.of(engine), slurm_notes=None, told=told)


def starts_of(snapshot: Snapshot, site: SlurmSite = SITE) -> list[int]:
    """Minutes at which the jobs start that wait."""
    runtimes = np.array([[600] + [300] * (len(snapshot) - 1)], dtype=np.int64)
    starts = forward_runs(snapshot, Policy(backfill=Slurm(site)), runtimes)[0, 1:]
    return [NEVER if start == NEVER else start // 60 for start in starts.tolist()]


def test_a_real_queue_goes_on_by_the_limits_of_its_site() -> None:
    ann, bob = ToldJob("ann", ages_since=20), ToldJob("bob", ages_since=20)
    assert starts_of(waiting((ann, ann, ann, bob))) == [10, 15, 10]
    nobody = ToldJob("carl", ages_since=20)
    assert starts_of(waiting((ann, ann, ann, nobody))) == [10, 15, 10]
    assert starts_of(replace(waiting((ann,) * 4), told=None)) == [10, 10, 15]


def test_a_job_that_a_limit_never_lets_start_never_starts() -> None:
    ann = ToldJob("ann", ages_since=20)
    shut = replace(SITE, qos={**SITE.qos, "high": Qos("high", limits=Limits(max_jobs=0))})
    high = replace(ann, said=SiteJob(qos="high"))
    assert starts_of(waiting((ann, ann, high)), shut) == [10, NEVER]


def test_live_priorities_order_the_queue_and_ages_change_it() -> None:
    told = [ToldJob(user, priority=priority) for user, priority in (("ann", 5), ("bob", 9))]
    running = ToldJob("ann")
    high = SiteJob(qos="high")
    both = tuple(replace(one, said=high) for one in told)
    wide = replace(SITE, parameters=SlurmParameters(batch_sched_delay=0, backfill=False))
    snapshot = waiting((running, *both))
    two = replace(snapshot.pending, processors=np.array([1, 1]))
    assert starts_of(replace(snapshot, pending=two), wide) == [10, 10]
    # Of three on two processors the one without any priority is last; it may grow old alone.
    third = replace(told[0], said=high, priority=7)
    assert starts_of(waiting((running, *both, third)), wide) == [15, 10, 10]
    ages = replace(both[0], ages_since=0)
    assert starts_of(waiting((running, ages, both[1], third)), wide) == [10, 10, 15]


def test_more_or_fewer_told_jobs_than_there_are_is_refused() -> None:
    with pytest.raises(InputError, match="told: 1 rows for 3 jobs"):
        replace(waiting((ToldJob(),) * 3), told=(ToldJob(),))


def test_a_job_that_waits_is_given_another_nice_or_qos() -> None:
    engine = Engine(2, Policy(backfill=Slurm(SITE)))
    first = engine.submit(0, 2, 600, 600, user="ann")
    second, third = (engine.submit(1, 2, 300, 300, user="bob") for _ in range(2))
    engine.advance(60)
    before = engine.slurm_priority(third)
    engine.update(third, qos="high")
    engine.update(second, nice=5)
    assert before is not None
    assert (engine.slurm_priority(third) or 0) - before >= 1000
    engine.finish()
    assert [engine.started_at(job) // 60 for job in (first, third, second)] == [0, 10, 15]
    with pytest.raises(InputError, match="is finished: it can't be changed"):
        engine.update(third, nice=1)
    plain = Engine(2)
    job = plain.submit(0, 2, 60, 60)
    with pytest.raises(InputError, match="are for a site's Slurm"):
        plain.update(job, qos="high")
