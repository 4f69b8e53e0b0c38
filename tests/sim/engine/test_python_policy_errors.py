"""A policy in Python that goes wrong: what is said, and where it leaves the engine."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim import _core
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.models import lublin2003
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, with_settings
from foretime_sim.policies.policy import EventOrder, Policy
from foretime_sim.policies.policy_views import MachineView, QueueView
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload

Order_ = Callable[[QueueView, int], Any]
Backfill_ = Callable[[QueueView, MachineView, int], Any]


def three_jobs() -> Workload:
    """One that runs, one that waits for it, and one that would fit: a pass asks both."""
    submit = np.array([0, 5, 5])
    times = np.array([100, 100, 10])
    return Workload("three", 4, 0, np.arange(3), submit, np.array([3, 4, 1]), times, times)


def failing(queue: QueueView, now: int) -> Any:
    if now == 5:
        raise KeyError("no such user")
    return queue.wait


def planning(queue: QueueView, machine: MachineView, now: int) -> Any:
    return []


def miscalling(queue: QueueView, now: int) -> Any:
    untyped: Any = planning
    return untyped(queue, now)


def writing(queue: QueueView, now: int) -> Any:
    queue.processors[0] = 1
    return queue.wait


@pytest.mark.parametrize(
    ("order", "says"),
    [
        (failing, 'raise KeyError("no such user"): KeyError'),
        (failing, "failing failed at 1970-01-01T00:00:05 (5 s) with 2 waiting: "),
        (writing, "queue.processors[0] = 1: ValueError: assignment destination is read-only"),
        (lambda queue: queue.wait, "lambda> takes 1 positional argument but 2"),
        (planning, "now: int) -> Any: TypeError: "),
        (
            planning,
            "missing 1 required positional argument: 'now'; an order is called as (queue, now)",
        ),
        (miscalling, "return untyped(queue, now)"),
        (lambda queue, now: None, "gave None at"),
        (lambda queue, now: 1.0, "gave 1.0 at"),
        (lambda queue, now: [1.0] * 3, "gave shape (3,) of float64"),
        (lambda queue, now: np.zeros((len(queue), 1)), "gave shape (1, 1) of float64"),
        (lambda queue, now: [[1], [2, 3]], "gave [[1], [2, 3]] at"),
        (lambda queue, now: ["a"] * len(queue), "gave ['a'] at"),
        (lambda queue, now: queue.wait + 1j, "gave shape (1,) of complex128"),
        (lambda queue, now: queue.wait * np.nan, "gave job 0 the score nan"),
        (lambda queue, now: np.where(queue.job == 1, -np.inf, 0), "gave job 1 the score -inf"),
    ],
)
@pytest.mark.parametrize("run", [simulate, reference.simulate], ids=["engine", "reference"])
def test_a_wrong_order_is_told_what_it_did_and_when(
    order: Order_, says: str, run: Callable[..., Any]
) -> None:
    with pytest.raises(InputError) as caught:
        run(three_jobs(), Policy(PythonOrder(order)))
    assert says in str(caught.value)
    assert str(caught.value).startswith("order ")
    assert "test_python_policy_errors" in str(caught.value)


@pytest.mark.parametrize(
    ("backfill", "says"),
    [
        (failing, "; a backfill is called as (queue, machine, now)"),
        (lambda queue, machine, now: None, "gave None at 1970-01-01T00:00:05 (5 s) with 2 waiting"),
        (lambda queue, machine, now: 1, "gave 1 at"),
        (lambda queue, machine, now: [0], "would start job 1 on 4 processors"),
        (lambda queue, machine, now: [0], "only 1 of 4 are free then, which is why it waits"),
        (lambda queue, machine, now: [1, 1], "would start job 2 twice"),
        (lambda queue, machine, now: [2], "place 2 of the queue"),
        (lambda queue, machine, now: [-1], "place -1 of the queue"),
        (lambda queue, machine, now: [1.0], "gave shape (1,) of float64"),
        (lambda queue, machine, now: np.array([[1]]), "gave shape (1, 1) of int64"),
        (lambda queue, machine, now: queue.processors < 2, "np.flatnonzero of a mask"),
        (lambda queue, machine, now: machine.nodes, "AttributeError"),
    ],
)
@pytest.mark.parametrize("run", [simulate, reference.simulate], ids=["engine", "reference"])
def test_a_wrong_backfilling_is_told_what_it_did_and_when(
    backfill: Backfill_, says: str, run: Callable[..., Any]
) -> None:
    with pytest.raises(InputError) as caught:
        run(three_jobs(), Policy(backfill=PythonBackfill(backfill)))
    assert says in str(caught.value)
    assert str(caught.value).startswith("backfill ")


def test_jobs_that_do_not_fit_together() -> None:
    jobs = lublin2003.generate(200, processors=64, seed=5, load=1.2)

    def greedy(queue: QueueView, machine: MachineView, now: int) -> Any:
        return np.flatnonzero(queue.processors <= machine.free_processors)

    with pytest.raises(InputError, match=r"on \d+ processors at .*: only \d+ of 64 are free then$"):
        simulate(jobs, Policy(backfill=PythonBackfill(greedy)))


def test_classes_that_can_not_be_made_or_asked() -> None:
    class NeedsMore:
        def __init__(self, weight: float) -> None: ...

    class NotAsked:
        pass

    with pytest.raises(
        InputError,
        match=r"__init__\(self, weight: float\).*missing 1 required.*; the class is made without",
    ):
        simulate(three_jobs(), Policy(PythonOrder(NeedsMore)))
    with pytest.raises(InputError, match="give the class a __call__"):
        simulate(three_jobs(), Policy(PythonOrder(NotAsked)))
    with pytest.raises(InputError, match="is of type str, which can't be called"):
        PythonOrder("sjf")  # type: ignore[arg-type]  # what is told to those without types


@pytest.mark.parametrize("run", [simulate, reference.simulate], ids=["engine", "reference"])
def test_own_backfilling_keeps_no_advance_reservation(run: Callable[..., Any]) -> None:
    policy = Policy(backfill=PythonBackfill(first_fit))
    with pytest.raises(InputError, match=r"first_fit decides itself .*take a built-in backfilling"):
        run(three_jobs(), policy, reservations=[AdvanceReservation(0, 10, 1)])
    with pytest.raises(InputError, match="take a built-in backfilling"):
        Engine(4, policy, reservations=[AdvanceReservation(0, 10, 1)])


def test_own_backfilling_has_no_depth() -> None:
    with pytest.raises(InputError, match=r"the kinds of easy have a depth, not .*first_fit"):
        Policy(backfill=with_settings(PythonBackfill(first_fit), depth=2))


def test_an_interrupt_gets_through() -> None:
    def interrupted(queue: QueueView, now: int) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(three_jobs(), Policy(PythonOrder(interrupted)))


class _Flaky:
    """Fails every so often, before it does what it should."""

    def __init__(self, function: Callable[..., Any], every: int) -> None:
        self.function, self.every, self.asked = function, every, 0

    def __call__(self, *arguments: object) -> Any:
        self.asked += 1
        if self.asked % self.every == 0:
            raise RuntimeError("again")
        return self.function(*arguments)


def shortest(queue: QueueView, now: int) -> Any:
    return -queue.scheduled_time


def first_fit(queue: QueueView, machine: MachineView, now: int) -> Any:
    order = np.arange(1, len(queue))
    fits = order[queue.processors[1:] <= machine.free_processors]
    return fits[np.cumsum(queue.processors[fits]) <= machine.free_processors]


@pytest.mark.parametrize("event_order", EventOrder)
@pytest.mark.parametrize("every", [2, 3, 10])
@pytest.mark.parametrize("backfill", [PythonBackfill(first_fit), Backfill.PLANNING], ids=str)
def test_after_a_failure_the_engine_does_the_pass_again(
    event_order: EventOrder, every: int, backfill: Backfilling | PythonBackfill
) -> None:
    jobs = lublin2003.generate(150, processors=64, seed=2, load=1.1)
    jobs = replace(jobs, submit_time=jobs.submit_time // 900 * 900)  # many at the same second
    sound = Policy(PythonOrder(shortest), backfill, event_order=event_order)
    flaky = replace(sound, order=PythonOrder(_Flaky(shortest, every)))
    if isinstance(backfill, PythonBackfill):
        flaky = replace(flaky, backfill=PythonBackfill(_Flaky(first_fit, every)))
    expected = simulate(jobs, sound, check=True)
    engine = Engine(64, flaky, int(jobs.submit_time[0]))
    failures = 0

    def until_done(step: Callable[[], object]) -> None:
        nonlocal failures
        while True:
            try:
                step()
            except InputError:
                failures += 1
            else:
                return

    columns = (jobs.submit_time, jobs.processors, jobs.actual_runtime, jobs.requested_time)
    for row in zip(*(column.tolist() for column in columns), strict=True):
        until_done(partial(engine.advance, row[0]))
        engine.submit(*row)
    until_done(engine.finish)
    assert failures > 5
    found = engine.schedule()
    np.testing.assert_array_equal(found.start_time, expected.start_time)
    np.testing.assert_array_equal(found.started_by, expected.started_by)
    assert found.counters == expected.counters


def test_a_core_without_its_policy_says_so() -> None:
    policy = _core.Policy()
    policy.order = "outside"
    core = _core.Engine(4, policy, 0, [])
    core.submit(0, 1, 1, 1, 1, 1, 1, 1, 0)
    with pytest.raises(RuntimeError, match="no policy from outside"):
        core.finish()


def test_a_policy_that_keeps_its_views_is_collected_with_its_engine() -> None:
    class Hoarding:
        def __init__(self) -> None:
            self.kept: list[QueueView] = []
            made.append(weakref.ref(self))

        def __call__(self, queue: QueueView, now: int) -> Any:
            self.kept.append(queue)
            return queue.wait

    made: list[weakref.ref[Hoarding]] = []
    engine = Engine(4, Policy(PythonOrder(Hoarding)))
    engine.submit(0, 1, 1, 1)
    engine.finish()
    assert made[0]() is not None
    del engine
    gc.collect()
    assert made[0]() is None


def test_policies_are_values() -> None:
    """As built-in ones: equal, hashable, and named."""
    policy = Policy(PythonOrder(shortest), PythonBackfill(first_fit))
    assert policy == Policy(PythonOrder(shortest), PythonBackfill(first_fit))
    assert len({policy, Policy(PythonOrder(shortest), PythonBackfill(first_fit)), Policy()}) == 2
    assert str(policy.order).endswith("test_python_policy_errors:shortest")


def test_errors_of_the_user_s_own_say_nothing_of_calls() -> None:
    with pytest.raises(InputError, match="missing 1 required") as caught:
        simulate(three_jobs(), Policy(PythonOrder(miscalling)))
    assert "is called as" not in str(caught.value)


def test_what_is_told_of_jobs_is_called_so() -> None:
    class Told:
        def __call__(self, queue: QueueView, now: int) -> Any:
            return queue.wait

        def started(self, jobs: object) -> None: ...

    with pytest.raises(InputError, match=r"; it is called as started\(jobs, now\)$"):
        simulate(three_jobs(), Policy(PythonOrder(Told)))
