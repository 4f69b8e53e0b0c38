"""dynP on a mock Slurm: when it switches, what keeps it from switching, and what outlasts it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.ordering import switched_order
from foretime_sidecar.ordering.order_switches import beginning
from foretime_sidecar.ordering.user_shares import SCALE, capped_weights
from foretime_sidecar.queue.time_bound import TimeBound, TooLongError
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import parse_settings
from foretime_sidecar.store.order_switches import OrderSwitches
from foretime_sidecar.store.store import Store
from foretime_sim.engine.order_tuning import tune_order
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm.ordered_slurm import Noting, factors_of, in_order, submission

NOW = 1_800_000_000
HOUR = 3600
Start = Callable[..., Sidecar]


@pytest.fixture
def world() -> Noting:
    """One job has all 16 processors for 5 h; a long job came first, then three short ones."""
    policy = Policy(order=Order.PRIORITY, backfill=Backfill.PLANNING)
    slurm = MockSlurm(SlurmSetup(processors=16), policy, None, NOW - HOUR)
    for hours, user in ((5, "ann"), (10, "bob"), (1, "cid"), (1, "dan"), (1, "eve")):
        slurm.submit(submission(16, hours * HOUR, user=user))
    slurm.advance(NOW)
    return Noting(slurm)


@pytest.fixture
def start(world: Noting, tmp_path: Path) -> Iterator[Start]:
    """Start a sidecar that switches the queue's order."""
    stores = []

    def start(**more: Any) -> Sidecar:
        settings = Settings.model_validate(
            {
                "table": {"path": str(tmp_path / "table")},
                "queue_order": {"order": "dynp"} | more,
            }
        )
        stores.append(Store(tmp_path / "store"))
        return Sidecar(settings, SlurmCommands(world, 0), stores[-1])

    yield start
    for store in stores:
        store.close()


def _order(sidecar: Sidecar) -> tuple[str, str]:
    """Give the present order, and why it was kept without asking."""
    switched = sidecar.switched_order
    assert switched is not None
    assert switched.now_in is not None
    assert switched.last is not None
    return switched.now_in.order, switched.last.kept


# -- switching -------------------------------------------------------------------------------------


def test_the_queue_is_put_in_the_order_that_suits_it(world: Noting, start: Start) -> None:
    """Short jobs first: they end after 4, 5, 6 h + 1 h waited, the long one after 17 + 1."""
    sidecar = start(most_user_share=1.0)
    sidecar.look(NOW)
    assert in_order(world) == ["3", "4", "5", "2"]
    assert _order(sidecar) == ("sjf", "")
    assert sidecar.switched_order is not None
    began, switch = sidecar.switched_order.log.since(0, 10)
    assert (began.order, began.instead_of, began.happened_at) == ("fcfs", None, NOW)
    assert (switch.order, switch.instead_of, switch.case) == ("sjf", "fcfs", "7")
    # All began to wait an hour ago, when 4 h of the running job are left.
    fcfs, sjf = (15 + 16 + 17 + 18) / 4 * HOUR, (6 + 7 + 8 + 18) / 4 * HOUR
    assert switch.qualities == {"fcfs": fcfs, "sjf": sjf, "ljf": fcfs}
    assert (switch.waiting_jobs, switch.quality) == (4, "artww")


def test_what_waits_in_the_order_starts_in_it(world: Noting, start: Start) -> None:
    start().look(NOW)
    world.slurm.advance(NOW + 8 * HOUR)
    assert [job.start_time - NOW for job in world.slurm._jobs[2:]] == [
        4 * HOUR,
        5 * HOUR,
        6 * HOUR,
    ]


def test_it_does_not_switch_back_and_forth(world: Noting, start: Start) -> None:
    """When the short jobs are gone but one that is longer than the long one, LJF has no more to
    say than FCFS; what would be better is asked again only after a while."""
    sidecar = start(least_time_between_switches_s=600)
    sidecar.look(NOW)
    for job in (3, 4, 5):
        world.slurm.cancel(job)
    world.slurm.submit(submission(1, 20 * HOUR, user="fay"))
    world.slurm.submit(submission(16, HOUR, user="gil"))
    sidecar.look(NOW + 599)
    assert _order(sidecar) == ("sjf", "it may be switched again in 1 s")
    sidecar.look(NOW + 600)
    assert _order(sidecar)[1] == ""


def test_slackness_keeps_the_order_that_is_nearly_as_good(world: Noting, start: Start) -> None:
    sidecar = start(slackness=0.5)
    sidecar.look(NOW)
    assert _order(sidecar) == ("fcfs", "")
    assert sidecar.switched_order is not None
    tuning = sidecar.switched_order.last
    assert tuning is not None
    assert tuning.tuning is not None
    assert tuning.tuning.best is Order.SJF
    assert in_order(world) == ["2", "3", "4", "5"]


def test_fewer_than_two_that_wait_ask_nobody(world: Noting, start: Start) -> None:
    for job in (3, 4, 5):
        world.slurm.cancel(job)
    sidecar = start()
    sidecar.look(NOW)
    assert _order(sidecar) == ("fcfs", "fewer than two jobs wait that could start")
    assert sidecar.switched_order is not None
    assert (sidecar.switched_order.tries, sidecar.switched_order.failures) == (0, 0)


def test_a_restart_goes_on_in_the_present_order(world: Noting, start: Start) -> None:
    first = start()
    first.look(NOW)
    first.end()
    assert not any(factors_of(world).values())
    first.store.close()
    again = start(slackness=0.9)
    again.look(NOW + 60)
    assert _order(again)[0] == "sjf"
    assert in_order(world) == ["3", "4", "5", "2"]
    again.store.close()
    other = start(orders=["fcfs", "ljf"])
    other.look(NOW + 120)
    assert _order(other)[0] == "fcfs", "SJF is none of the orders any more"


def test_who_has_waited_too_long_goes_first_in_every_order(world: Noting, start: Start) -> None:
    sidecar = start(longest_wait_s=2 * HOUR)
    world.slurm.submit(submission(16, 60, user="fay"))
    sidecar.look(NOW)
    assert in_order(world) == ["6", "3", "4", "5", "2"]
    sidecar.look(NOW + HOUR)
    assert in_order(world) == ["2", "3", "4", "5", "6"]
    assert _order(sidecar)[0] == "sjf"


@pytest.mark.parametrize("decide_on", ["planned", "learned"])
def test_requests_that_nobody_uses_up_count_for_little(
    decide_on: str, world: Noting, start: Start
) -> None:
    """The paper's trick: requests of 10 h that end in seconds. By what is learned bob's job is
    short, and then no order is much better than the present one."""
    sidecar = start(decide_on=decide_on, most_user_share=1.0)
    for _ in range(20):
        world.slurm.submit(replace(submission(16, 10 * HOUR, user="bob"), actual_runtime=30))
    world.slurm.advance(NOW + 200 * HOUR)
    sidecar.poll(NOW + 200 * HOUR)
    world.slurm.submit(submission(16, 5 * HOUR, user="ann"))
    world.slurm.advance(NOW + 200 * HOUR + 1)
    for user, hours in (("bob", 10), ("cid", 1), ("dan", 1)):
        job = submission(16, hours * HOUR, user=user)
        world.slurm.submit(replace(job, actual_runtime=30) if user == "bob" else job)
    world.slurm.advance(NOW + 200 * HOUR + 60)
    sidecar.look(NOW + 200 * HOUR + 60)
    assert _order(sidecar) == ("sjf" if decide_on == "planned" else "fcfs", "")


# -- what goes wrong -------------------------------------------------------------------------------


def _raises(*_: object, **__: object) -> None:
    raise RuntimeError("planner broken")


def test_a_planner_that_fails_leaves_the_order(
    world: Noting, start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar = start()
    with monkeypatch.context() as broken, caplog.at_level(logging.WARNING, "foretime"):
        broken.setattr(switched_order, "tune_order", _raises)
        sidecar.look(NOW)
        sidecar.look(NOW + 60)
    order, kept = _order(sidecar)
    assert order == "fcfs"
    assert kept == "our mistake: RuntimeError('planner broken'); see the log"
    assert in_order(world) == ["2", "3", "4", "5"], "in the present order all the same"
    assert caplog.text.count("stays in the order fcfs: our mistake") == 1, "said once"
    assert sidecar.switched_order is not None
    assert (sidecar.switched_order.tries, sidecar.switched_order.failures) == (0, 2)
    sidecar.look(NOW + 120)
    assert _order(sidecar) == ("sjf", "")


def test_planning_that_takes_too_long_leaves_the_order(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar, may_end = start(planning_limit_s=0.01), threading.Event()
    plan = tune_order

    def slow(*args: Any, **named: Any) -> Any:
        may_end.wait(20)
        return plan(*args, **named)

    monkeypatch.setattr(switched_order, "tune_order", slow)
    sidecar.look(NOW)
    assert _order(sidecar) == ("fcfs", "planning takes longer than 0.01 s")
    sidecar.look(NOW + 60)
    assert _order(sidecar) == ("fcfs", "the planning begun at an earlier look still goes on")
    may_end.set()


def test_a_queue_that_is_half_known_leaves_the_order(
    world: Noting, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = start()
    seen = sidecar.client.queue()
    jobs = list(seen.jobs)
    jobs[1] = replace(jobs[1], request=replace(jobs[1].request, queue="nowhere"))
    monkeypatch.setattr(sidecar.client, "queue", lambda: replace(seen, jobs=tuple(jobs)))
    sidecar.look(NOW)
    order, kept = _order(sidecar)
    assert order == "fcfs"
    assert kept == (
        "of 1 of 4 jobs that could start it is not known what they need, such as of 1: "
        "partition nowhere takes no jobs now"
    )
    jobs[1] = replace(jobs[1], reason="PartitionDown")  # Slurm says that it can't start
    sidecar.look(NOW + 60)
    assert _order(sidecar)[1] == ""


def test_nodes_that_can_not_be_read_leave_the_order(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = start()

    def refuse() -> None:
        raise SchedulerError("scontrol show node failed")

    monkeypatch.setattr(sidecar.client, "cluster", refuse)
    sidecar.look(NOW)
    assert _order(sidecar) == ("fcfs", "the nodes are not known: scontrol show node failed")


def test_a_scheduler_that_refuses_is_asked_again_in_the_same_order(
    world: Noting, start: Start
) -> None:
    world.refuses = True
    sidecar = start()
    with pytest.raises(SchedulerError, match="permission denied"):
        sidecar.look(NOW)
    assert _order(sidecar)[0] == "sjf"
    world.refuses = False
    sidecar.look(NOW + 60)
    assert in_order(world) == ["3", "4", "5", "2"]


def test_where_it_must_not_order_it_does_not_plan(world: Noting, start: Start) -> None:
    world.config = {"PriorityType": "priority/basic"}
    sidecar = start()
    sidecar.look(NOW)
    assert sidecar.switched_order is not None
    assert sidecar.switched_order.last is None


# -- a bound on what one user's jobs weigh ---------------------------------------------------------


def test_nobody_weighs_more_than_the_cap() -> None:
    """Of 80, 10, 10 none may be more than 2/5: 80 becomes 40/3 = 2/5 of 100/3."""
    assert capped_weights(["a", "b", "c"], [80, 10, 10], 0.4) == [
        round(SCALE / 6),
        SCALE,
        SCALE,
    ]
    assert capped_weights(["a", "a", "b"], [30, 10, 20], 1.0) == [SCALE] * 3
    assert capped_weights(["a", "a", None], [30, 10, 20], 0.25) == [SCALE // 2, SCALE // 2, SCALE]
    assert capped_weights([], [], 0.5) == []


@given(
    jobs=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 1000)), min_size=1),
    share=st.floats(0.05, 1),
)
def test_nobody_weighs_more_than_the_share(jobs: list[tuple[str, int]], share: float) -> None:
    users, mass = [user for user, _ in jobs], [counts for _, counts in jobs]
    weights = capped_weights(users, mass, share)
    total = dict.fromkeys(users, 0)
    for user, counts, weight in zip(users, mass, weights, strict=True):
        assert 1 <= weight <= SCALE
        total[user] += counts * weight
    bound = max(share, 1 / len(total))
    assert max(total.values()) <= bound * sum(total.values()) * 1.001
    if bound * sum(mass) >= max(
        sum(counts for user, counts in jobs if user == each) for each in total
    ):
        assert set(weights) == {SCALE}, "nobody is weighed down without need"


def test_many_jobs_of_one_user_do_not_turn_the_order(world: Noting, start: Start) -> None:
    """bob's fifty short jobs wait behind his own long one, and others' long ones."""
    for job in (3, 4, 5):
        world.slurm.cancel(job)
    for user in ("cid", "dan", "eve"):
        world.slurm.submit(submission(16, 10 * HOUR + len(user), user=user))
    for _ in range(50):
        world.slurm.submit(submission(1, 10 * 60, user="mallory"))
    world.slurm.advance(NOW + 1)
    values = {}
    for share in (1.0, 0.1):
        sidecar = start(most_user_share=share, least_time_between_switches_s=0)
        sidecar.look(NOW + 60)
        assert sidecar.switched_order is not None
        last = sidecar.switched_order.last
        assert last is not None
        assert last.tuning is not None
        values[share] = last.tuning.values[1] / last.tuning.values[0]
        sidecar.end()
        sidecar.store.close()
    assert values[0.1] > values[1.0], "what SJF gains mallory counts for less"


# -- settings, time --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('orders = ["fcfs"]', "give two or more"),
        ('orders = ["fcfs", "best"]', "unknown queue order 'best'"),
        ('quality = "speed"', "unknown quality 'speed'"),
        ('quality = "x*artww"', "the weight 'x' of artww is no number"),
        ("first_starts = 20\nhorizon_s = 60", "give one of them, or neither"),
        ("slackness = 1.0", "less than 1"),
        ("most_user_share = 0.0", "give more than 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(line: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_settings(f"[queue_order]\n{line}\n", "f")


def test_what_takes_too_long_is_given_up_and_not_begun_twice() -> None:
    bound = TimeBound(0.01)
    with pytest.raises(TooLongError, match=r"longer than 0\.01 s"):
        bound.run(lambda: time.sleep(0.2))
    with pytest.raises(TooLongError, match="still goes on"):
        bound.run(lambda: 1)
    time.sleep(0.3)
    assert bound.run(lambda: 2) == 2
    with pytest.raises(KeyError):
        TimeBound(5.0).run(lambda: {"some": 1}["none"])


def test_the_log_is_kept_as_long_as_jobs_are(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    log = OrderSwitches(store, threading.RLock())
    assert log.latest() is None
    for at, order in ((10, Order.FCFS), (20, Order.SJF), (30, Order.LJF)):
        log.add(beginning(at, order, "art"))
    store.forget_before(25)
    assert [each.happened_at for each in log.since(0, 5)] == [30]
    store.forget_before(100)
    latest = log.latest()
    assert latest is not None
    assert latest.order == "ljf", "the present order is not forgotten"
    assert log.counts() == {}
    store.close()
