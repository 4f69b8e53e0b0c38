"""Self-tuning by forward runs: what is decided, by what is known at that moment alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.forward import SampledArrivals
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill, Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.self_tuning.forward_candidates import Candidate, OrderedBy, Patience, due_first
from foretime_sim.self_tuning.forward_switching import (
    ForwardSwitcher,
    ForwardSwitching,
    Future,
    forward_costs,
)
from foretime_sim.self_tuning.switched_run import SwitchedSchedule, simulate_switching
from foretime_sim.workloads.workload import Workload

MACHINE = 16
FCFS = Candidate(Order.FCFS)
SJF = Candidate(Order.SJF)
LJF = Candidate(Order.LJF)
EXPECTED = Candidate(Order.SJF, OrderedBy.EXPECTED, 0.5, backfill=Easy(depth=4))
NEVER = Patience(10**9, 0.0)


def ints(*values: int) -> Int64Array:
    return np.array(values, dtype=np.int64)


def workload(jobs: int = 400, seed: int = 1) -> Workload:
    """Give a workload of a deep queue, whose requests tell something of runtimes."""
    rng = np.random.default_rng(seed)
    requested = rng.choice([60, 600, 3600, 7200], jobs)
    return Workload(
        name="drawn",
        machine_processors=MACHINE,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.sort(rng.integers(0, jobs * 400, jobs)),
        processors=rng.choice([1, 2, 8, 16], jobs, p=[0.4, 0.3, 0.2, 0.1]),
        actual_runtime=np.maximum(1, (requested * rng.choice([0.05, 1.0], jobs))).astype(np.int64),
        requested_time=requested,
    )


def often(*candidates: Candidate, **options: float | Patience) -> ForwardSwitching:
    """Give settings that decide every 20 jobs, and switch whenever something is better."""
    given = ForwardSwitching(candidates, 20, 2, 40, 0.0, 0.0, NEVER)
    return replace(given, **options)  # type: ignore[arg-type]


def obeys_the_laws(given: Workload, ran: SwitchedSchedule) -> None:
    assert (ran.start_time >= given.submit_time).all()
    held = np.minimum(given.actual_runtime, given.requested_time)
    np.testing.assert_array_equal(ran.end_time - ran.start_time, held)
    for moment in ran.start_time.tolist():
        runs = (ran.start_time <= moment) & (moment < ran.end_time)
        assert given.processors[runs].sum() <= MACHINE


# Candidates


def test_each_candidate_puts_jobs_in_its_order() -> None:
    columns = ints(5, 6, 7), ints(1, 4, 1), ints(100, 100, 400)
    expected = np.array([80.0, 90.0, 10.0])

    def order_of(candidate: Candidate) -> list[int]:
        places: list[int] = np.argsort(
            -candidate.priorities(*columns, expected), kind="stable"
        ).tolist()
        return places

    assert order_of(FCFS) == [0, 1, 2]
    assert order_of(SJF) == [0, 1, 2]  # the same request: by submission
    assert order_of(LJF) == [2, 0, 1]
    assert order_of(Candidate(Order.SJF, OrderedBy.EXPECTED)) == [2, 0, 1]
    assert order_of(Candidate(Order.SJF, width_exponent=1.0)) == [1, 0, 2]  # 100, 25, 400
    # 80, 90 / 2, 10; then 80, 90 / 16, 10
    assert order_of(Candidate(Order.SJF, OrderedBy.EXPECTED, 0.5)) == [2, 1, 0]
    assert order_of(Candidate(Order.SJF, OrderedBy.EXPECTED, 2.0)) == [1, 2, 0]


def test_times_that_differ_by_a_second_differ() -> None:
    requested = ints(31_536_000, 31_536_001)
    priority = SJF.priorities(ints(0, 0), ints(1, 1), requested, np.ones(2))
    assert priority[0] > priority[1]


def test_who_is_due_goes_first() -> None:
    priority = FCFS.priorities(ints(1, 2, 3), ints(1, 1, 1), ints(9, 9, 9), np.ones(3))
    assert due_first(priority, ints(50, 20, 10), 20).argsort()[::-1].tolist() == [2, 1, 0]
    assert due_first(priority, ints(50, 21, 21), 20).argsort()[::-1].tolist() == [0, 1, 2]
    assert Patience(100, 2.0).until(7, 10.25) == 7 + 100 + 21


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"order": Order.WFP}, "wfp is no fixed priority"),
        ({"backfill": Backfill.CONSERVATIVE}, "remembers what it promised"),
        ({"width_exponent": -1.0}, "give 0 or more"),
        ({"order": Order.LJF, "width_exponent": 1.0}, "for sjf"),
        ({"order": Order.FCFS, "by": OrderedBy.EXPECTED}, "goes by no runtime"),
    ],
)
def test_candidates_that_make_no_sense_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Candidate(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"candidates": ()},
        {"candidates": (FCFS, FCFS)},
        {"every_jobs": 0},
        {"samples": 0},
        {"ahead_jobs": 0},
        {"memory": 1.0},
        {"slackness": -0.1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match="give"):
        ForwardSwitching(**wrong)  # type: ignore[arg-type]


# Decisions

# One job runs until 10 on all of 2 processors; two wait for as many, one for 100 s, one for 10.
MOMENT = Snapshot(
    2,
    2,
    RunningJobs(ints(0), ints(2), ints(10)),
    PendingJobs(ints(1, 2), ints(2, 2), ints(100, 10)),
)
MEANS = np.array([50.0, 20.0])
LATE = ints(1000, 1000)


def costs(future: Future, *candidates: Candidate, due: Int64Array = LATE) -> list[float]:
    given: list[float] = forward_costs(MOMENT, MEANS, due, [future], candidates)[:, 0].tolist()
    return given


def test_a_candidate_costs_the_sum_of_responses() -> None:
    # FCFS: 10-110, 110-120, responses 109 and 118; SJF: 10-20, 20-120, 18 and 119.
    exact = Future(ints(10, 100, 10))
    assert costs(exact, FCFS, SJF, LJF) == [2 * 227, 2 * 137, 2 * 227]
    # The long one really runs 5 s: 10-15, 15-25 against 10-20, 20-25.
    assert costs(Future(ints(10, 5, 10)), FCFS, SJF) == [2 * (14 + 23), 2 * (18 + 24)]
    # Who is due goes first under each.
    assert costs(exact, FCFS, SJF, due=ints(2, 1000)) == [2 * 227, 2 * 227]


def test_who_arrives_later_counts() -> None:
    # At 12 one more asks for 30 s, expected to run 5: by expected runtimes it goes before the long
    # one, which is expected to run 50.
    arrival = SampledArrivals(ints(0), ints(12), ints(2), ints(30), ints(30))
    future = Future(ints(10, 100, 10), arrival, np.array([5.0]))
    by_mean = Candidate(Order.SJF, OrderedBy.EXPECTED)
    assert costs(future, FCFS, by_mean) == [2 * (227 + 138), 2 * (18 + 38 + 149)]
    late = Future(ints(10, 100, 10), arrival, np.array([60.0]))
    assert costs(late, by_mean) == [2 * (18 + 119 + 138)]


def test_arrivals_need_means() -> None:
    arrival = SampledArrivals(ints(0), ints(12), ints(2), ints(30), ints(30))
    with pytest.raises(InputError, match="with expected runtimes"):
        costs(Future(ints(10, 100, 10), arrival), FCFS)


def test_earlier_decisions_are_remembered() -> None:
    switcher = ForwardSwitcher(often(FCFS, SJF, memory=0.5))
    assert switcher.decide(0, 2, np.array([[100.0], [90.0]])).chosen == 1
    # 50 + 40 and 45 + 44
    second = switcher.decide(1, 2, np.array([[40.0], [44.0]]))
    assert (second.before, second.chosen) == (1, 1)
    assert second.relative_cost == (1.0, 1.1)
    assert second.remembered_cost == (90 / 89, 1.0)
    # 45 + 40 and 44.5 + 44
    assert switcher.decide(2, 2, np.array([[40.0], [44.0]])).chosen == 0


def test_a_candidate_must_be_better_by_the_slackness() -> None:
    for slackness, chosen in ((0.09, 1), (0.1, 0)):
        switcher = ForwardSwitcher(often(FCFS, SJF, slackness=slackness))
        assert switcher.decide(0, 2, np.array([[100.0], [90.0]])).chosen == chosen


# Runs


@pytest.mark.parametrize("order", [Order.FCFS, Order.SJF, Order.LJF])
@pytest.mark.parametrize("how", [Easy(depth=3), Backfill.PLANNING, Backfill.EASY_SJBF])
def test_one_candidate_alone_is_its_policy(order: Order, how: Backfilling) -> None:
    given = workload()
    ran = simulate_switching(given, often(Candidate(order, backfill=how)))
    plain = simulate(given, Policy(order, how))
    np.testing.assert_array_equal(ran.start_time, plain.start_time)
    np.testing.assert_array_equal(ran.end_time, plain.end_time)
    assert len(ran.decisions) > 5
    assert not ran.was_due.any()


ALL = (FCFS, EXPECTED, LJF, Candidate(backfill=Backfill.PLANNING), Candidate(width_exponent=1.0))


def test_switching_keeps_the_laws_and_is_deterministic() -> None:
    given = workload()
    ran = simulate_switching(given, often(*ALL))
    obeys_the_laws(given, ran)
    assert len({decision.chosen for decision in ran.decisions}) >= 3
    assert len(np.unique(ran.started_under)) >= 3
    again = simulate_switching(given, often(*ALL))
    assert again.decisions == ran.decisions
    np.testing.assert_array_equal(again.start_time, ran.start_time)
    other = simulate_switching(given, often(*ALL, seed=1))
    assert other.decisions != ran.decisions


def test_nothing_is_known_of_the_future() -> None:
    given = workload()
    whole = simulate_switching(given, often(*ALL))
    cut = 250
    moment = int(given.submit_time[cut])
    before = [decision for decision in whole.decisions if decision.now < moment]
    assert len(before) > 5
    started = whole.start_time[:cut] < moment

    # No more submissions from then on.
    head = simulate_switching(given.take(np.arange(cut)), often(*ALL))
    assert list(head.decisions) == before
    np.testing.assert_array_equal(head.start_time[started], whole.start_time[:cut][started])

    # Whatever has not ended by then runs for another time.
    runtime = given.actual_runtime.copy()
    runtime[whole.end_time >= moment] = given.requested_time[whole.end_time >= moment]
    changed = simulate_switching(replace(given, actual_runtime=runtime), often(*ALL))
    assert [decision for decision in changed.decisions if decision.now < moment] == before
    np.testing.assert_array_equal(
        changed.start_time[:cut][started], whole.start_time[:cut][started]
    )
    assert (changed.end_time != whole.end_time).any()


def starving() -> Workload:
    """Give short jobs that would keep a long one of the whole machine waiting for ever."""
    jobs = 200
    return Workload(
        name="starving",
        machine_processors=2,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.maximum(np.arange(jobs) - 2, 0) * 50,
        processors=np.array([2, 2] + [2] * (jobs - 2)),
        actual_runtime=np.array([60, 1000] + [60] * (jobs - 2)),
        requested_time=np.array([60, 1000] + [60] * (jobs - 2)),
    )


def test_nobody_starves() -> None:
    given = starving()
    for_ever = simulate_switching(given, often(SJF))
    assert for_ever.start_time[1] == 199 * 60  # after all others
    patient = simulate_switching(given, often(SJF, patience=Patience(1800, 0.0)))
    # Due at 1800, when the one that runs ends.
    assert patient.start_time[1] == 1800
    assert patient.was_due[1]
    # Those that it delays wait for more than half an hour themselves later on: first due, first.
    assert (np.diff(patient.start_time[patient.was_due]) > 0).all()


def test_everybody_is_due_at_once() -> None:
    given = workload()
    ran = simulate_switching(given, often(SJF, patience=Patience(0, 0.0)))
    plain = simulate(given, Policy(Order.FCFS))
    np.testing.assert_array_equal(ran.start_time, plain.start_time)


def test_backlog_gives_more_patience() -> None:
    given = workload()
    less = simulate_switching(given, often(SJF, patience=Patience(600, 0.0)))
    more = simulate_switching(given, often(SJF, patience=Patience(600, 2.0)))
    assert 0 < more.was_due.sum() < less.was_due.sum()


def test_without_jobs_nothing_is_decided() -> None:
    ran = simulate_switching(workload().take(np.zeros(0, dtype=np.int64)))
    assert ran.decisions == ()
    assert len(ran.start_time) == 0
