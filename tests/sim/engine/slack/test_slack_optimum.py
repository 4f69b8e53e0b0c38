"""The five insertion orders against every order: the exponential algorithm of section 4.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.policies.slack import InsertionOrder, SlackSettings
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.reference.slack import PlannedJob
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.plans.slack_plans import Claim, all_schedules, plan_of, waiting_job

MACHINE = 6
NEW = 99
PRIORITIES = [1 / 6, 0.3, 0.5, 0.75, 1.0]


def planned(
    jobs: Sequence[tuple[int, int, float, int, int]], running: Sequence[Claim], machine: int
) -> list[PlannedJob]:
    """Plan jobs of (processors, time, priority, slack, slack more at first) one after another."""
    profile = PlainProfile(machine, 0)
    for end, taken in running:
        profile.reserve(0, end, taken)
    waiting = []
    for rank, (processors, time, priority, slack, used) in enumerate(jobs):
        start = profile.earliest_fit(0, time, processors)
        assert start is not None
        profile.reserve(start, time, processors)
        waiting.append(
            waiting_job(
                rank, start, time, processors, priority=priority, slack=slack, of=slack + used
            )
        )
    return waiting


PROFILES = st.tuples(
    st.lists(
        st.tuples(
            st.integers(1, MACHINE),
            st.integers(1, 5),
            st.sampled_from(PRIORITIES),
            st.integers(1, 12),
            st.integers(0, 12),
        ),
        min_size=1,
        max_size=4,
    ),
    st.lists(st.tuples(st.integers(1, 6), st.integers(1, 3)), max_size=2),
    st.tuples(st.integers(1, MACHINE), st.integers(1, 5), st.sampled_from(PRIORITIES)),
)
WEIGHTS = st.builds(
    SlackSettings,
    utilization_weight=st.sampled_from([0.0, 0.5, 1.0]),
    time_weight=st.sampled_from([0.0, 0.5, 1.0]),
    priority_weight=st.sampled_from([0.0, 0.5, 1.0]),
    fairness_weight=st.sampled_from([0.0, 0.5, 1.0]),
)
Case = tuple[list[tuple[int, int, float, int, int]], list[tuple[int, int]], tuple[int, int, float]]


def prices(case: Case, chosen: SlackSettings) -> tuple[float, dict[InsertionOrder, float]]:
    """Give the least price of all orders, and of each insertion order."""
    jobs, running, (processors, time, priority) = case
    waiting = planned(jobs, running, MACHINE)
    new = waiting_job(NEW, 0, time, processors, priority=priority)
    every = list(all_schedules(MACHINE, waiting, new, chosen, running))
    found = {}
    for order in InsertionOrder:
        ours = replace(chosen, insertion_order=order)
        tried = list(plan_of(MACHINE, waiting, ours, running=running).schedules_with(new))
        for schedule in tried:
            assert schedule.price == pytest.approx(
                min(price for price, starts in every if starts == schedule.starts)
            ), "a schedule and a price that section 4.5 has, too"
        found[order] = min(schedule.price for schedule in tried)
    return min(price for price, _ in every), found


@given(PROFILES, WEIGHTS)
@settings(max_examples=60)
def test_no_order_beats_all_orders(case: Case, chosen: SlackSettings) -> None:
    best, found = prices(case, chosen)
    assert all(price >= best or price == pytest.approx(best) for price in found.values())
    if len(case[0]) == 1:
        assert all(price == pytest.approx(best) for price in found.values()), "there is one order"


@given(
    st.lists(st.sampled_from(PRIORITIES), min_size=1, max_size=4),
    st.integers(1, 4),
    st.integers(1, 4),
    st.sampled_from(PRIORITIES),
)
@settings(max_examples=40)
def test_by_cost_is_best_where_section_4_5_says_so(
    priorities: list[float], time: int, new_time: int, priority: float
) -> None:
    """Of equal jobs that each take the whole machine the most expensive should come first."""
    jobs = [(MACHINE, time, each, 200, 0) for each in priorities]
    best, found = prices((jobs, [], (MACHINE, new_time, priority)), SlackSettings())
    assert found[InsertionOrder.DC] == pytest.approx(best)
    assert found[InsertionOrder.DP] == pytest.approx(best), "which is the same there"


def random_case(rng: np.random.Generator) -> Case:
    """Give four jobs that wait behind two that run."""
    jobs = [
        (
            int(rng.integers(1, MACHINE + 1)),
            int(rng.integers(1, 6)),
            float(rng.choice(PRIORITIES)),
            int(rng.integers(1, 25)),
            int(rng.integers(0, 13)),
        )
        for _ in range(4)
    ]
    running = [(int(rng.integers(1, 7)), int(rng.integers(1, 4))) for _ in range(2)]
    new = (int(rng.integers(1, MACHINE + 1)), int(rng.integers(1, 6)))
    return jobs, running, (*new, float(rng.choice(PRIORITIES)))


def test_how_often_each_order_finds_the_optimum(repository: Path) -> None:
    """The table of docs/slack.md: in how many of 200 profiles, and how much dearer the mean."""
    rng = np.random.default_rng(8)
    reached = dict.fromkeys(InsertionOrder, 0)
    dearer = dict.fromkeys(InsertionOrder, 0.0)
    for _ in range(200):
        best, found = prices(random_case(rng), SlackSettings())
        for order, price in found.items():
            reached[order] += price == pytest.approx(best)
            dearer[order] += price - best
    page = (repository / "docs/slack.md").read_text()
    for order in InsertionOrder:
        assert f"| `{order}` | {reached[order]} | {dearer[order] / 200:.1f} |" in page
    assert max(reached, key=lambda order: reached[order]) is InsertionOrder.DC
