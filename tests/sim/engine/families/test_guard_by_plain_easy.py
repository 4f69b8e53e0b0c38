"""The guard that goes by a plain EASY beside: what it does, where there is none, changed jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.families import Candidates, Easy
from foretime_sim.policies.guard import Guard, GuardBy, parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonBackfill, PythonOrder
from foretime_sim.reference import flat as reference
from foretime_sim.reference.flat import Simulation
from foretime_sim.reference.simulated import ReferenceJob
from foretime_sim.workloads.workload import Workload

BESIDE = [by for by in GuardBy if by is not GuardBy.REQUESTED_PLAN]
GUARDED = Policy(backfill=Easy(Candidates.SJBF, guard=Guard(0, GuardBy.PLAIN_EASY)))


def random_jobs(seed: int, jobs: int = 300) -> tuple[Workload, np.ndarray]:
    """Requests far above the runtimes, and estimates that have nothing to do with either."""
    rng = np.random.default_rng(seed)
    runtime = rng.integers(1, 600, jobs)
    requested = runtime * rng.integers(1, 20, jobs)
    submit = np.cumsum(rng.integers(0, 60, jobs))
    workload = Workload(
        "random", 16, None, np.arange(jobs), submit, rng.integers(1, 13, jobs), runtime, requested
    )
    return workload, np.minimum(requested, rng.integers(1, 600, jobs))


@pytest.mark.parametrize("order", [Order.FCFS, Order.SJF, Order.WFP])
def test_without_predictions_it_never_steps_in(order: Order) -> None:
    """Then the schedule is the plain EASY itself: what has ended ends there at the same second."""
    workload, _ = random_jobs(1)
    guarded = Policy(backfill=Easy(guard=Guard(0, GuardBy.PLAIN_EASY)), order=order)
    schedule = simulate(workload, guarded)
    assert schedule.guard_activations == 0
    plain = simulate(workload, Policy(order=order))
    np.testing.assert_array_equal(schedule.start_time, plain.start_time)


@pytest.mark.parametrize("by", [GuardBy.PLAIN_EASY_GRADUAL, GuardBy.PLAIN_EASY_LONGEST])
def test_without_predictions_there_is_nothing_to_ease_from(by: GuardBy) -> None:
    workload, _ = random_jobs(1)
    schedule = simulate(workload, Policy(backfill=Easy(guard=Guard(600, by))))
    np.testing.assert_array_equal(schedule.start_time, simulate(workload).start_time)


@pytest.mark.parametrize("guard_s", [0, 300])
def test_it_keeps_long_waits_near_those_of_plain_easy(guard_s: int) -> None:
    """On estimates that mean nothing: nearer than the guard that goes by the plan on requests."""
    excess: dict[GuardBy, list[int]] = {by: [] for by in GuardBy}
    for seed in range(5):
        workload, scheduled = random_jobs(seed)
        plain = simulate(workload).start_time
        for by, found in excess.items():
            policy = Policy(backfill=Easy(Candidates.SJBF, guard=parse_guard(guard_s, by)))
            start = simulate(workload, policy, scheduled).start_time
            found.append(int((start - plain).max()))
    by_plan = excess.pop(GuardBy.REQUESTED_PLAN)
    for beside, other in zip(excess[GuardBy.PLAIN_EASY], by_plan, strict=True):
        assert beside < other
    for found in excess.values():
        assert sum(found) < 0.9 * sum(by_plan)


@pytest.mark.parametrize("by", GuardBy)
def test_who_is_guarded_starts_as_planned_on_requests_then(
    by: GuardBy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is predicted: from when the guard has stepped in nothing delays the job any more."""
    promised: dict[int, int] = {}
    guard = Simulation.guard

    def noting(simulation: Simulation, head: ReferenceJob) -> bool:
        steps_in = guard(simulation, head)
        if head.guarded and head.index not in promised:
            promised[head.index], _ = simulation.plan(head, on_requested=True)
        return steps_in

    monkeypatch.setattr(Simulation, "guard", noting)
    for seed in range(3):
        workload, scheduled = random_jobs(seed, 150)
        policy = Policy(backfill=Easy(Candidates.SJBF, guard=Guard(300, by), ageing_s=600))
        promised.clear()
        schedule = reference.simulate(workload, policy, scheduled)
        began = schedule.start_time.tolist()
        assert len(promised) == schedule.guard_activations > 0
        assert all(began[index] <= start for index, start in promised.items())


def test_a_changed_and_a_cancelled_job_change_there_too() -> None:
    workload, scheduled = random_jobs(2, 60)
    engine = Engine(16, GUARDED, now=int(workload.submit_time[0]))
    columns = (workload.submit_time, workload.processors, workload.actual_runtime)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    told = zip(workload.requested_time.tolist(), scheduled.tolist(), strict=True)
    for index, ((submit, processors, runtime), (requested, time)) in enumerate(
        zip(rows, told, strict=True)
    ):
        engine.advance(submit)
        job = engine.submit(submit, processors, runtime, requested, requested)
        engine.update(job, scheduled_time=time)
        if index % 7 == 6:
            doomed = engine.submit(submit, 16, 1000, 1000)
            engine.cancel(doomed)
    engine.finish()
    expected = reference.simulate(workload, GUARDED, scheduled)
    kept = [index + index // 7 for index in range(len(workload))]
    assert [engine.started_at(job) for job in kept] == expected.start_time.tolist()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda: parse_guard(None, GuardBy.PLAIN_EASY), "give guard_s as well"),
        (lambda: parse_guard(None, share=0.5), "give guard_s as well"),
        (lambda: Guard(-1), "give a bound of 0 seconds or more"),
        (lambda: Guard(0, GuardBy.PLAIN_EASY, -0.1), "give a share of 0 or more"),
        (lambda: Guard(0, share=0.1), "only a guard by a plain EASY"),
        (lambda: Easy(depth=2, guard=Guard(0, GuardBy.PLAIN_EASY)), "with a depth of 1"),
        (
            lambda: PythonBackfill(print, guard=Guard(0, GuardBy.PLAIN_EASY)),
            "only for the kinds of easy",
        ),
        (
            lambda: Policy(PythonOrder(print), Easy(guard=Guard(0, GuardBy.PLAIN_EASY))),
            "only in a built-in queue order, not in builtins:print",
        ),
    ],
)
def test_guards_that_make_no_sense_are_refused(wrong: Callable[[], object], why: str) -> None:
    with pytest.raises(InputError, match=why):
        wrong()


@pytest.mark.parametrize("run", [simulate, reference.simulate])
def test_there_is_none_beside_reservations(run: Any) -> None:
    workload, _ = random_jobs(3, 5)
    with pytest.raises(InputError, match="there is none beside advance reservations"):
        run(workload, GUARDED, reservations=[AdvanceReservation(0, 5, 1)])
    ageing = Policy(backfill=Easy(Candidates.SJBF, ageing_s=60))
    with pytest.raises(InputError, match="nothing ages beside advance reservations"):
        run(workload, ageing, reservations=[AdvanceReservation(0, 5, 1)])


def test_there_is_none_from_a_snapshot_on() -> None:
    engine = Engine(16, GUARDED, now=100)
    with pytest.raises(InputError, match="jobs that began before"):
        engine.add_running(50, 1, 100, 100)
    with pytest.raises(InputError, match="jobs that came before"):
        engine.add_pending(50, 1, 100, 100)
