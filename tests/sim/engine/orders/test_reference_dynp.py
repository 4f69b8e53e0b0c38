"""dynP in plain Python: table 1 row by row, and schedules worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foretime_sim.engine.schedule import Schedule, StartedBy
from foretime_sim.policies.families import Backfill, Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import (
    Decider,
    PolicySwitching,
    Quality,
)
from foretime_sim.policies.role_times import job_times
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.reference import flat as reference
from foretime_sim.reference.dynp import PolicySwitcher, case_of_table_1
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.workloads.workload import Workload

FCFS, SJF, LJF = Order.FCFS, Order.SJF, Order.LJF
CURRENT = None

# Streit 2002, table 1: case, qualities of FCFS, SJF and LJF, current policy (any: None), what the
# simple and the advanced decider choose. Rows that the table splits by the current policy only in
# what it counts (case 4) have every one.
TABLE_1 = [
    ("1", (5, 5, 5), None, FCFS, CURRENT),
    ("2", (6, 5, 7), None, SJF, SJF),
    ("2", (7, 5, 6), None, SJF, SJF),
    ("3", (5, 6, 7), None, FCFS, FCFS),
    ("3", (5, 7, 6), None, FCFS, FCFS),
    ("4a", (6, 7, 5), None, LJF, LJF),
    ("4b", (6, 6, 5), None, LJF, LJF),  # case 5, too
    ("4c", (7, 6, 5), None, LJF, LJF),
    ("6a", (5, 5, 6), FCFS, FCFS, FCFS),
    ("6b", (5, 5, 6), SJF, FCFS, SJF),
    ("6c", (5, 5, 6), LJF, FCFS, FCFS),
    ("7", (6, 5, 6), None, SJF, SJF),
    ("8a", (5, 6, 5), FCFS, FCFS, FCFS),
    ("8b", (5, 6, 5), SJF, FCFS, FCFS),
    ("8c", (5, 6, 5), LJF, FCFS, LJF),
    ("9", (5, 6, 6), None, FCFS, FCFS),
    ("10a", (6, 5, 5), FCFS, SJF, SJF),
    ("10b", (6, 5, 5), SJF, SJF, SJF),
    ("10c", (6, 5, 5), LJF, SJF, LJF),
]


def workload(rows: list[tuple[int, int, int, int]], machine: int = 2) -> Workload:
    """Give jobs by submission, processors, runtime and request."""
    submit, processors, runtime, requested = (
        np.array(column, dtype=np.int64) for column in zip(*rows, strict=True)
    )
    return Workload(
        name="by hand",
        machine_processors=machine,
        unix_start_time=None,
        job_id=np.arange(1, len(rows) + 1),
        submit_time=submit,
        processors=processors,
        actual_runtime=runtime,
        requested_time=requested,
    )


def planning(order: Order = FCFS, **settings: Any) -> Policy:
    return Policy(order, Planning(PolicySwitching(**settings)))


def run(
    rows: list[tuple[int, int, int, int]], policy: Policy
) -> tuple[Schedule, SwitchingCounters]:
    schedule = reference.simulate(workload(rows), policy)
    assert schedule.switching is not None
    return schedule, schedule.switching


def switcher(policy: Policy, rows: list[tuple[int, int, int, int]], running: int) -> PolicySwitcher:
    """Give the decider of a moment, the last submission, at which the first jobs run."""
    given = workload(rows)
    jobs = reference.reference_jobs(given, job_times(given, policy.roles, None, None, None))
    simulation = reference.Simulation(jobs, 2, policy, (), PlainProfile, None)  # type: ignore[arg-type]
    simulation.to_submit = []
    for job in jobs:
        simulation.now = job.submit
        simulation.arrive(job)
        if job.index < running:
            simulation.start(job, StartedBy.HEAD)
    assert simulation.planner is not None
    assert simulation.planner.switcher is not None
    return simulation.planner.switcher


@pytest.mark.parametrize("row", TABLE_1, ids=lambda row: f"{row[0]}-{row[1]}")
def test_the_case_and_choice_are_those_of_each_row_of_table_1(
    row: tuple[str, tuple[int, int, int], Order | None, Order, Order | None],
) -> None:
    case, quality, only, simple, advanced = row
    for current in (FCFS, SJF, LJF) if only is None else (only,):
        assert case_of_table_1([float(q) for q in quality], [FCFS, SJF, LJF].index(current)) == case
        for decider, chosen in ((Decider.SIMPLE, simple), (Decider.ADVANCED, advanced)):
            deciding = switcher(planning(current, decider=decider), [(0, 2, 10, 10)], 0)
            best = deciding.best(dict(zip((FCFS, SJF, LJF), map(float, quality), strict=True)))
            assert best is (chosen or current)
            assert deciding.cases[case] == 1


# One job runs until 10; then both would like the whole machine.
TWO_WAIT = [(0, 2, 10, 10), (1, 2, 100, 100), (2, 2, 10, 10)]


def test_the_short_job_goes_first() -> None:
    # At 2, by FCFS and LJF: 10-110 and 110-120, responses 109 and 118; by SJF: 18 and 119. The same
    # at 10. At 1 and at 20 one waits.
    schedule, did = run(TWO_WAIT, planning(decider=Decider.ADVANCED))
    assert schedule.start_time.tolist() == [0, 20, 10]
    assert did.cases is not None
    assert {case: count for case, count in did.cases.items() if count} == {"7": 2}
    assert (did.tries, did.switches, did.same_policy) == (2, (0, 1, 0), 1)
    assert did.mean_backlog == 2
    assert did.started_under.tolist() == [0, 1, 1]
    assert did.jobs_started.tolist() == [1, 2, 0]


# One job runs until 100, then one at a time, of 30, 20, 10 and 25 s, submitted at 1, 2, 3 and 101.
_WAITING = ((1, 30), (2, 20), (3, 10), (101, 25))
FOUR_WAIT = [(0, 2, 100, 100), *((at, 2, s, s) for at, s in _WAITING)]


def test_one_list_is_in_fcfs_as_it_was_left() -> None:
    # At 2 the list is 30, 20: FCFS is LJF, SJF is better (7). At 3 it is 20, 30, 10: SJF is best
    # (2). At 100 it is 10, 20, 30: FCFS is SJF, which stays (6b). At 101 it is 20, 30, 25: SJF is
    # best (2). At 110 it is 20, 25, 30, at 130 it is 25, 30: FCFS is SJF (6b).
    schedule, did = run(FOUR_WAIT, planning(one_list=True))
    assert schedule.start_time.tolist() == [0, 155, 110, 100, 130]
    assert did.cases is not None
    assert {case: count for case, count in did.cases.items() if count} == {
        "2": 2,
        "6b": 3,
        "7": 1,
    }
    assert did.switches == (0, 1, 0)


def test_one_list_runs_in_fcfs_what_sorted_it_last() -> None:
    # The simple decider takes FCFS where it ties with SJF, at 100: LJF sorted last, so 30 starts.
    schedule, did = run(FOUR_WAIT[:4], planning(decider=Decider.SIMPLE, one_list=True))
    assert did.cases is not None
    assert did.cases["6b"] == 1
    assert did.switches == (1, 2, 0)
    assert schedule.start_time.tolist() == [0, 100, 140, 130]


@pytest.mark.parametrize(
    ("quality", "fcfs", "sjf"),
    [
        (Quality.MAKESPAN, (118, 1), (118, 1)),
        (Quality.ART, (109 + 118, 2), (18 + 119, 2)),
        (Quality.ARTWW, (2 * (109 + 118), 4), (2 * (18 + 119), 4)),
        (Quality.WAIT, (9 + 108, 2), (8 + 19, 2)),
        (Quality.WAITWW, (2 * (9 + 108), 4), (2 * (8 + 19), 4)),
        # 109 / 100 and 118 / 60; 60 / 60 and 119 / 100
        (Quality.SLOWDOWN, (1_090_000 + 1_966_666, 2), (1_000_000 + 1_190_000, 2)),
        (Quality.SLDWW, (2 * (1_090_000 + 1_966_666), 4), (2 * (1_000_000 + 1_190_000), 4)),
    ],
)
def test_each_quality_is_its_formula_of_the_plan(
    quality: Quality, fcfs: tuple[int, int], sjf: tuple[int, int]
) -> None:
    deciding = switcher(planning(quality=quality), TWO_WAIT, 1)
    waiting = deciding.planner.simulation.pending
    assert deciding.quality(quality, deciding.plan(waiting, FCFS)) == fcfs
    assert deciding.quality(quality, deciding.plan(waiting, SJF)) == sjf


def test_a_running_job_that_ends_last_makes_every_makespan_the_same() -> None:
    rows = [(0, 1, 500, 500), (0, 1, 10, 10), (1, 1, 100, 100), (2, 1, 10, 10)]
    deciding = switcher(planning(quality=Quality.MAKESPAN), rows, 2)
    waiting = deciding.planner.simulation.pending
    for order in (FCFS, SJF, LJF):
        assert deciding.quality(Quality.MAKESPAN, deciding.plan(waiting, order)) == (498, 1)


@pytest.mark.parametrize(
    ("reduced", "fcfs", "sjf"),
    [
        ({"first_starts": 1}, (109, 1), (18, 1)),
        ({"first_starts": 2}, (109 + 118, 2), (18 + 119, 2)),
        ({"horizon_s": 8}, (109, 1), (18, 1)),  # until 10
        ({"horizon_s": 18}, (109, 1), (18 + 119, 2)),
        ({"horizon_s": 7}, None, None),
    ],
)
def test_a_reduced_future_counts_the_first_starts_alone(
    reduced: dict[str, Any], fcfs: tuple[int, int] | None, sjf: tuple[int, int] | None
) -> None:
    deciding = switcher(planning(quality=Quality.ART, **reduced), TWO_WAIT, 1)
    waiting = deciding.planner.simulation.pending
    assert deciding.quality(Quality.ART, deciding.plan(waiting, FCFS)) == fcfs
    assert deciding.quality(Quality.ART, deciding.plan(waiting, SJF)) == sjf


def test_nobody_within_the_horizon_leaves_the_order() -> None:
    for quality in (Quality.ART, ((Quality.ART, 1.0), (Quality.MAKESPAN, 2.0))):
        deciding = switcher(planning(LJF, quality=quality, horizon_s=1, slackness=0.1), TWO_WAIT, 1)
        deciding.decide(deciding.planner.simulation.pending)
        assert deciding.current is LJF
        assert deciding.cases["1"] == 1


def test_a_combined_quality_weighs_each_against_the_best_order() -> None:
    # ART is 227 and 137 halves, the makespan the same.
    both = ((Quality.ART, 3.0), (Quality.MAKESPAN, 1.0))
    deciding = switcher(planning(quality=both), TWO_WAIT, 1)
    waiting = deciding.planner.simulation.pending
    values = deciding.combined({o: deciding.plan(waiting, o) for o in (FCFS, SJF, LJF)})
    assert values == {FCFS: 4.0, SJF: 3 * (68.5 / 113.5) + 1, LJF: 4.0}


@pytest.mark.parametrize(("slackness", "switches"), [(0.0, 1), (0.39, 1), (0.40, 0)])
def test_an_order_is_switched_to_only_if_better_by_the_slackness(
    slackness: float, switches: int
) -> None:
    # SJF is better by 90 of 227, 39.6%.
    deciding = switcher(planning(slackness=slackness), TWO_WAIT, 1)
    deciding.decide(deciding.planner.simulation.pending)
    assert deciding.switches[SJF] == switches
    assert deciding.cases["7"] == 1  # either way


# Arrivals at 1, 2, 3, 4, 5 behind a job of the whole machine until 100; each asks for as long.
@pytest.mark.parametrize(
    ("asked_s", "order"),
    [(10, SJF), (7200, SJF), (7201, FCFS), (9000, FCFS), (9001, LJF)],
)
def test_basic_looks_at_the_mean_of_five(asked_s: int, order: Order) -> None:
    rows = [(0, 2, 100, 100), *((at, 2, 10, asked_s) for at in range(1, 6))]
    _, did = run(rows, planning(LJF if order is not LJF else SJF, decider=Decider.BASIC))
    assert did.tries == 1  # at 5; no job arrives later
    assert did.waiting_at_tries == 5
    assert did.switches[(FCFS, SJF, LJF).index(order)] == 1
    assert did.cases is None


@pytest.mark.parametrize(
    ("requests", "order"),
    [((10, 10, 9000), SJF), ((10, 9000, 9000), LJF), ((10, 9000), FCFS), ((3600,), SJF)],
)
def test_voting_takes_the_order_of_the_most_jobs(requests: tuple[int, ...], order: Order) -> None:
    rows = [(0, 2, 100, 100), *((1, 1, 10, asked) for asked in requests)]
    deciding = switcher(planning(decider=Decider.VOTING), rows, 1)
    deciding.decide(deciding.planner.simulation.pending)
    assert deciding.current is order


def test_nobody_votes_on_an_empty_machine() -> None:
    rows = [(0, 1, 100, 100), (1, 1, 10, 10)]
    deciding = switcher(planning(LJF, decider=Decider.VOTING), rows, 1)
    deciding.decide(deciding.planner.simulation.pending)
    assert deciding.current is FCFS


def test_the_current_order_is_that_of_planning_alone() -> None:
    # Nothing is ever better by all but a millionth: FCFS stays.
    rng = np.random.default_rng(1)
    rows = [
        (int(at), int(width), int(runtime), int(runtime + more))
        for at, width, runtime, more in zip(
            np.sort(rng.integers(0, 400, 40)),
            rng.integers(1, 3, 40),
            rng.integers(1, 60, 40),
            rng.integers(0, 60, 40),
            strict=True,
        )
    ]
    schedule, did = run(rows, planning(slackness=0.999999, quality=Quality.ART))
    alone = reference.simulate(workload(rows), Policy(FCFS, Backfill.PLANNING))
    assert schedule.start_time.tolist() == alone.start_time.tolist()
    assert did.tries > 10
    assert sum(did.switches) == 0
