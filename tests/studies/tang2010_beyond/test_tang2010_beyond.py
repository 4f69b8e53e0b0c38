"""The study beyond Tang 2010: its figures are those of the runs, its bounds those of the issue."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.scores.job_classes import JobClasses
from foretime_sim.scores.metrics import ScoredSpan, scored_span
from foretime_sim.scores.policy_comparison import PolicyComparison
from foretime_sim.scores.repeats import Repeats
from foretime_studies.tang2010_beyond import study as beyond

CASES = [case.name for case in beyond.CASES]
SIMILAR = CASES.index("similar")
JOBS = lublin2003.generate(500, processors=64, load=0.9)


@pytest.fixture(scope="module")
def found() -> dict[str, PolicyComparison]:
    span = scored_span(JOBS, warm_up_share=0.1)
    return beyond.run([beyond.BeyondInput("made", JOBS, span)], Repeats(3, seed=1))


def test_shares_and_ratios_are_those_of_the_schedules() -> None:
    comparison = beyond.run([beyond.BeyondInput("made", JOBS, ScoredSpan())], Repeats(1))["made"]
    policy = Policy(order=Order.WFP)
    waits = [
        (simulate(JOBS, policy, times).start_time - JOBS.submit_time).mean()
        for times in (None, JOBS.actual_runtime)
    ]
    perfect = {t.title: beyond.measured(comparison, t, 1) for t in beyond.TARGETS}
    assert perfect["wait, share of perfect's gain"].mean == 1
    requests = {t.title: beyond.measured(comparison, t, 0) for t in beyond.TARGETS}
    assert requests["wait, share of perfect's gain"].mean == 0
    assert requests["p99 wait, times requests'"].mean == 1
    similar = {t.title: beyond.measured(comparison, t, SIMILAR) for t in beyond.TARGETS}
    new = comparison.runs[0][SIMILAR].wait.mean()
    assert similar["wait, share of perfect's gain"].mean == pytest.approx(
        (waits[0] - new) / (waits[0] - waits[1])
    )
    small = JobClasses().size(JOBS) == 1
    wait = [comparison.runs[0][case].wait[small].mean() for case in (0, SIMILAR)]
    assert similar["wait of small jobs, times requests'"].mean == pytest.approx(wait[1] / wait[0])
    assert similar["wait, share of perfect's gain"].interval is None


def test_the_bounds_are_the_issues() -> None:
    bounds = [(target.least, target.most) for target in beyond.TARGETS]
    assert bounds == [(0.4, None), (0.4, None), (None, 1.0), (None, 1.05), *[(None, 1.05)] * 4]
    assert beyond.TARGETS[0].met(0.4)
    assert not beyond.TARGETS[0].met(0.39)
    assert beyond.TARGETS[3].met(1.05)
    assert not beyond.TARGETS[3].met(1.06)


def test_report_says_what_was_met(found: dict[str, PolicyComparison]) -> None:
    written = beyond.report(found, ["generated"])
    targets, oracles, figures = written.tables
    assert [row[0] for row in figures.rows] == CASES
    for row, target in zip(targets.rows, beyond.TARGETS, strict=False):
        value = beyond.measured(found["made"], target, SIMILAR)
        assert value.interval is not None
        assert value.interval.low <= value.mean <= value.interval.high
        best = beyond.measured(found["made"], target, CASES.index(beyond.CEILING))
        assert row[-1] == best.ranging()
        met = "–" if math.isnan(value.mean) else "yes" if target.met(value.mean) else "**no**"
        assert row[-3:-1] == (value.ranging(), met)
    assert {row[-2] for row in targets.rows[len(beyond.TARGETS) :]} == {"–"}
    assert "3 jittered runs, with 95% intervals" in written.to_markdown()
    assert len(oracles.rows) == len(beyond.TARGETS) + len(beyond.BESIDES)
    for place, oracle in enumerate(beyond.ORACLES, 1):
        value = beyond.measured(found["made"], beyond.TARGETS[0], CASES.index(oracle.name))
        assert oracles.rows[0][place] == value.ranging()


def test_oracles_know_what_they_say() -> None:
    comparison = beyond.run([beyond.BeyondInput("made", JOBS, ScoredSpan())], Repeats(1))["made"]
    request, actual = JOBS.requested_time, JOBS.actual_runtime
    for name, known in (
        ("S100, guard", actual),
        ("S100, known below 10 min", np.where(actual < 600, actual, request)),
    ):
        policy = Policy(backfill=Easy(guard=Guard(0)), order=Order.WFP, roles=Roles.parse("100"))
        wait = simulate(JOBS, policy, known).start_time - JOBS.submit_time
        assert np.array_equal(comparison.runs[0][CASES.index(name)].wait, wait)
