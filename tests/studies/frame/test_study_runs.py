"""Runs of studies: cases, jittered copies, what is kept of a run."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.models import intrepid_like
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.scores.job_classes import JobClasses, scores_by_class
from foretime_sim.scores.metrics import Distribution, job_metrics
from foretime_studies.frame.runs import (
    FRACTIONS,
    StudyCase,
    StudyInput,
    StudyRuns,
    figures_of,
    run_cases,
    runs_in_all,
)

JOBS = intrepid_like.generate(6_000, seed=3, load=1.1)
HISTORY, TEST = JOBS.split(int(JOBS.submit_time[4_900]))
WFP = Policy(order=Order.WFP)
GIVEN = {"main": StudyInput("made", TEST, HISTORY)}


def run(*cases: StudyCase, repeats: int = 0, workers: int = 1) -> StudyRuns:
    return run_cases(GIVEN, cases, repeats=repeats, seed=1, workers=workers)


def case(estimate: str, policy: Policy = WFP, name: str | None = None) -> StudyCase:
    return StudyCase(name or estimate, "main", policy, estimate)


def test_a_run_is_the_engine_s_and_its_figures_those_of_the_scores() -> None:
    found = run(case("requested"), case("combined"))
    settings = AccuracySettings.tang2010()
    for name in ("requested", "combined"):
        estimator = estimator_of(name, TEST, settings=settings)
        expected = simulate_with_estimator(TEST, WFP, estimator, learn=False, history=HISTORY)
        metrics = job_metrics(TEST, expected)
        single = found[name].single
        for metric in ("wait", "unitless_wait", "slowdown"):
            scores = Distribution.of(metrics[metric])
            assert single.mean(metric) == pytest.approx(scores.mean)
            assert single.mean(metric, 0.99) == pytest.approx(scores.mean_below_p99)
        table = scores_by_class(TEST, expected)
        by_size = [table.loc[(size, "all"), "wait_mean_s"] for size in ("small", "very large")]
        assert single.by_size["wait"][[1, 3]] == pytest.approx(by_size)
        assert single.by_length["slowdown"][0] == pytest.approx(
            table.loc[("all", "very short"), "slowdown_mean"]
        )
        assert single.started == pytest.approx(
            [np.mean(expected.started_by == how) for how in (1, 2, 3)]
        )
        assert single.outlived == pytest.approx(np.mean(expected.outlived))
    assert found["combined"].single.outlived > 0


def test_the_ends_of_the_blend_are_the_request_and_the_actual_runtime() -> None:
    found = run(
        case("requested"),
        case("blend:0"),
        case("blend:1"),
        case("actual"),
        case("actual", Policy(order=Order.WFP, roles=Roles.parse("S000")), "S000"),
    )
    for one, other in (("requested", "blend:0"), ("blend:1", "actual"), ("requested", "S000")):
        assert found[one].single.below["wait"] == pytest.approx(found[other].single.below["wait"])
    assert found["actual"].single.mean("wait") != found["requested"].single.mean("wait")


def test_doubled_requests_are_planned_beyond_the_limit_at_which_jobs_are_killed() -> None:
    found = run(case("requested"), case("doubled"))
    # Under WFP doubling leaves the order as it is, but backfilling sees other ends.
    assert found["doubled"].single.mean("wait") != found["requested"].single.mean("wait")
    assert found["doubled"].single.outlived == 0


def test_copies_are_the_same_for_every_case_and_however_many_threads() -> None:
    cases = (
        case("requested"),
        case("actual"),
        StudyCase("once", "main", WFP, repeated=False),
    )
    found = run(*cases, repeats=3)
    again = run(*cases, repeats=3, workers=2)
    assert runs_in_all(cases, 3) == 4 + 4 + 1
    for name in ("requested", "actual"):
        assert len(found[name].repeats) == 3
        for one, other in zip(found[name].repeats, again[name].repeats, strict=True):
            assert np.array_equal(one.below["wait"], other.below["wait"])
    waits = {copy.mean("wait") for copy in found["requested"].repeats}
    assert len(waits) == 3
    assert found["once"].repeats == ()
    gain = found.gain("requested", "actual", lambda figures: figures.mean("slowdown"))
    pairs = zip(found["requested"].repeats, found["actual"].repeats, strict=True)
    gains = [1 - new.mean("slowdown") / old.mean("slowdown") for old, new in pairs]
    assert gain.mean == pytest.approx(np.mean(gains))
    assert gain.interval is not None
    assert gain.interval.low < np.mean(gains) < gain.interval.high
    single = 1 - found["actual"].single.mean("slowdown") / found["requested"].single.mean(
        "slowdown"
    )
    assert gain.single == pytest.approx(single)


def test_the_larger_the_fraction_the_larger_the_mean() -> None:
    schedule = simulate(TEST, WFP)
    figures = figures_of(TEST, schedule, TEST.requested_time, JobClasses())
    assert FRACTIONS[0] == 0.9
    assert FRACTIONS[-1] == 1.0
    for values in figures.below.values():
        assert (np.diff(values) >= 0).all()
    wait = np.sort(schedule.start_time - TEST.submit_time)
    count = int(np.ceil(0.95 * len(wait)))
    assert figures.mean("wait", 0.95) == pytest.approx(wait[:count].mean())
