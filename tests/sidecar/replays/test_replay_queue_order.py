"""The sidecar orders a replayed queue through site factors: as the engine does, and as its dynP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sim.engine.engine import simulate
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import Decider, PolicySwitching, Quality
from foretime_sim.policies.scheduler_defaults import default_policy
from foretime_sim.scores.replay_result import OrderingStatistics
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.workloads.resource_requests import with_machine

from tests.sidecar.ordering import pbs_trial
from tests.sidecar.ordering.start_trial import LOOK_S, Trial
from tests.support.replay_runs import made_workload

# Without arrays, whose tasks the engine orders one by one, and site factors only together.
WORKLOAD = replace(made_workload(200, 4), array_ids=None)
PAPER = {
    "order": "dynp",
    "slackness": 0.0,
    "least_time_between_switches_s": 0,
    "most_user_share": 1.0,
    "longest_wait_s": 0,
}


def _replayed(
    settings: dict[str, Any], backfill: Backfilling = Backfill.PLANNING, **more: Any
) -> tuple[Int64Array, OrderingStatistics]:
    """Replay on requested times; give start times, and what ordering came to."""
    named: dict[str, Any] = {"scheme": "requested", "look_interval_s": 0} | more
    task = Replay(
        policy=Policy(backfill=backfill),
        queue_order=QueueOrderSettings.model_validate(settings),
        **named,
    )
    run = task(WORKLOAD, 0)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.ordering is not None
    return run.adjusted.start_time, statistics.ordering


@pytest.mark.parametrize(
    ("settings", "switching"),
    [
        ({}, PolicySwitching()),
        (
            {"quality": "sldww", "decider": "simple", "orders": ["sjf", "fcfs"]},
            PolicySwitching(Decider.SIMPLE, (Order.SJF, Order.FCFS), Quality.SLDWW),
        ),
        ({"slackness": 0.2, "first_starts": 3}, PolicySwitching(slackness=0.2, first_starts=3)),
    ],
)
def test_dynp_through_site_factors_is_the_engines(
    settings: dict[str, Any], switching: PolicySwitching
) -> None:
    """Looking at every event, the sidecar does to the mock Slurm what the native dynP does."""
    start_time, ordering = _replayed(PAPER | settings)
    policy = Policy(order=switching.orders[0], backfill=Planning(switching))
    native = simulate(WORKLOAD, policy)
    np.testing.assert_array_equal(start_time, native.start_time)
    assert native.switching is not None
    assert ordering.tries == native.switching.tries
    counted = zip(switching.orders, native.switching.switches, strict=True)
    assert dict(ordering.switches) == {order.value: n for order, n in counted if n}
    assert sum(native.switching.switches) >= 2, "or nothing is shown"
    assert (ordering.failures, ordering.looks > ordering.tries) == (0, True)


@pytest.mark.parametrize("order", [Order.FCFS, Order.SJF, Order.LJF])
def test_one_order_for_good_is_the_engines(order: Order) -> None:
    start_time, ordering = _replayed({"order": order.value, "longest_wait_s": 0}, Backfill.EASY)
    native = simulate(WORKLOAD, Policy(order, Backfill.EASY))
    np.testing.assert_array_equal(start_time, native.start_time)
    assert (ordering.tries, ordering.switches) == (0, {})


def test_who_waits_too_long_goes_first_and_waits_less() -> None:
    """LJF lets short jobs wait for as long as longer ones come."""
    waits = {}
    for bound_s in (0, 2 * 3600):
        start_time, _ = _replayed({"order": "ljf", "longest_wait_s": bound_s}, Backfill.EASY)
        waits[bound_s] = int((start_time - WORKLOAD.submit_time).max())
    assert waits[2 * 3600] < waits[0]


def test_a_daemon_looks_less_often_than_things_happen() -> None:
    start_time, ordering = _replayed(PAPER, look_interval_s=600)
    _, every = _replayed(PAPER)
    assert ordering.looks < every.looks
    assert (start_time >= WORKLOAD.submit_time).all()
    assert ordering.tries > 0


def test_jobs_that_near_their_bound_go_first() -> None:
    """Under SJF some start too late; if those that near their bound go first, fewer do."""
    kept = {}
    for keep in (False, True):
        settings = {"order": "sjf", "longest_wait_s": 0, "keep_promises": keep}
        _, ordering = _replayed(settings, Backfill.EASY)
        assert ordering.bounds > 100
        kept[keep] = ordering.bounds_kept / ordering.bounds
    assert kept[False] < kept[True] <= 1


def test_with_learned_times_too() -> None:
    """The order goes by t_sched, what is planned by what the hook sets; nothing fails."""
    learned = PAPER | {"decide_on": "learned", "samples": 4}
    _, ordering = _replayed(learned, Backfill.EASY, scheme="user", look_interval_s=60, check=True)
    assert (ordering.tries > 0, ordering.failures) == (True, 0)


def test_jobs_that_should_start_at_once_do_so_under_slurms_own_rules() -> None:
    """Nothing is rewritten, and the mean wait falls."""
    policy = default_policy("slurm", WORKLOAD)
    workload = with_machine(WORKLOAD, Machine.flat(WORKLOAD.machine_processors))
    task = Replay(
        policy=mechanism_policy(Mechanism.SLURM_SOFT_LIMIT, policy),
        queue_order=QueueOrderSettings(order="start-now"),
        check=True,
    )
    run = task(workload, 0)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.hook is not None
    assert statistics.hook.adjusted == 0
    assert statistics.ordering is not None
    assert statistics.ordering.raised > 10
    assert statistics.ordering.missed < statistics.ordering.raised / 10
    plain = run.baseline.start_time - workload.submit_time
    adjusted = run.adjusted.start_time - workload.submit_time
    assert adjusted.mean() < plain.mean()
    assert (run.adjusted.scheduled_time == workload.requested_time).all()
    again = replace(task, scheme="user")(workload, 0)
    assert (again.adjusted.start_time == run.adjusted.start_time).all(), "whatever the scheme"


@pytest.mark.parametrize(("seed", "protect_after_s"), [(4, 0), (5, 0), (4, 3600), (5, 4 * 3600)])
def test_the_daemon_starts_whom_a_plan_of_one_pool_written_apart_does(
    seed: int, protect_after_s: int
) -> None:
    """On requests, where it does not matter when the daemon learns."""
    made = replace(made_workload(300, seed), array_ids=None)
    workload = with_machine(made, Machine.flat(made.machine_processors))
    settings = QueueOrderSettings(order="start-now", protect_after_s=protect_after_s)
    task = Replay(
        policy=default_policy("slurm", workload),
        queue_order=settings,
        learn=False,
        look_interval_s=LOOK_S,
        plain_beside=BesideSettings(most_late_s=0, most_behind_s=0),
    )
    run = task(workload, 0)

    def trial(after_s: int) -> Int64Array:
        return Trial(workload, learns=False, protect_after_s=after_s).run()

    assert (run.adjusted.start_time == trial(protect_after_s)).all()
    assert (run.baseline.start_time != run.adjusted.start_time).any()
    if protect_after_s:
        assert (run.adjusted.start_time != trial(0)).any(), "or nobody is protected"


def _pbs(**scheduler: Any) -> Replay:
    site = PbsSite.flat(WORKLOAD.machine_processors)
    site = replace(site, scheduler=replace(site.scheduler, **scheduler))
    return Replay(
        policy=mechanism_policy(Mechanism.PBS_SOFT_WALLTIME, Policy(backfill=Pbs(site))),
        mechanism=Mechanism.PBS_SOFT_WALLTIME,
        queue_order=QueueOrderSettings(order="start-now", estimator="expected"),
        look_interval_s=pbs_trial.LOOK_S,
    )


def test_jobs_that_should_start_at_once_do_so_under_pbs_own_rules() -> None:
    """Nothing is planned short, and the mean wait falls."""
    task = _pbs(strict_ordering=True)
    site = task.policy.backfill
    assert isinstance(site, Pbs)
    workload = with_machine(WORKLOAD, site.site.machine)
    run = task(workload, 0)
    statistics = run.statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.hook is not None
    assert (statistics.hook.adjusted, statistics.hook.errors) == (0, 0)
    assert statistics.ordering is not None
    assert statistics.ordering.raised > 0
    assert statistics.ordering.missed <= statistics.ordering.raised / 10
    arm = pbs_trial.Arm(ordered=True, raises=True)
    apart = pbs_trial.Trial(replace(workload, array_ids=None), arm).run()
    assert (run.adjusted.start_time == apart).all()
    plain = run.baseline.start_time - workload.submit_time
    adjusted = run.adjusted.start_time - workload.submit_time
    assert adjusted.mean() < 0.9 * plain.mean()
    assert (run.adjusted.scheduled_time == workload.requested_time).all()


def test_where_pbs_has_no_top_jobs_a_replay_says_so() -> None:
    task = _pbs(strict_ordering=False)
    site = task.policy.backfill
    assert isinstance(site, Pbs)
    with pytest.raises(InputError, match="strict_ordering is off"):
        task(with_machine(WORKLOAD, site.site.machine), 0)


def test_where_there_are_no_site_factors_it_is_refused() -> None:
    task = Replay(policy=Policy(), queue_order=QueueOrderSettings(order="sjf"))
    with pytest.raises(InputError, match="PBS has no site factors"):
        replace(task, mechanism=Mechanism.PBS_SOFT_WALLTIME)(WORKLOAD, 0)
    with pytest.raises(InputError, match="scheme actual knows the true runtimes"):
        replace(task, scheme="actual")(WORKLOAD, 0)
    with pytest.raises(InputError, match="leaves the queue as it is"):
        replace(task, queue_order=QueueOrderSettings())(WORKLOAD, 0)
