"""Several policies on the same jobs, against single runs and the comparison of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.engine.estimated_run import (
    EstimatedSchedule,
    estimator_of,
    simulate_with_estimator,
)
from foretime_sim.models import lublin2003
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import PairedRun, compare
from foretime_sim.scores.job_classes import scores_by_class
from foretime_sim.scores.metrics import METRICS, ScoredSpan, ScoreSettings, score
from foretime_sim.scores.policy_comparison import PolicyCase, compare_policies
from foretime_sim.scores.repeats import Repeats
from foretime_sim.workloads.workload import Workload

JOBS = lublin2003.generate(1_500, processors=64, load=0.85)
CASES = (
    PolicyCase("easy", Policy()),
    PolicyCase("none", Policy(backfill=Backfill.NONE)),
    PolicyCase("sjf last-two", Policy(order=Order.SJF), "last-two"),
)
SETTINGS = ScoreSettings(tau_s=30)
SPAN = ScoredSpan(int(JOBS.submit_time[100]), None)


def scheduled(jobs: Workload, case: PolicyCase) -> EstimatedSchedule:
    return simulate_with_estimator(jobs, case.policy, estimator_of(case.estimator, jobs))


def test_a_single_run_is_of_the_log_as_it_is() -> None:
    told: list[int] = []
    compared = compare_policies(
        JOBS, CASES, span=SPAN, settings=SETTINGS, class_metric="wait_mean_s", check=True,
        progress=told.append,
    )  # fmt: skip
    for place, case in enumerate(CASES):
        alone = scheduled(JOBS, case)
        expected = score(JOBS, alone, SETTINGS, SPAN).to_dict()
        assert {key: compared.figure(place, key).mean for key in METRICS} == expected
        assert all(compared.figure(place, key).interval is None for key in METRICS)
        run = compared.runs[0][place]
        np.testing.assert_array_equal(run.wait, alone.start_time - JOBS.submit_time)
        assert compared.jobs_per_s(place) > 0
        classes = scores_by_class(JOBS, alone, None, SETTINGS, SPAN)
        by_class = compared.by_class(place)
        assert [(value.size_class, value.length_class) for value in by_class] == list(classes.index)
        assert [value.jobs for value in by_class] == classes["jobs"].tolist()
        means = [np.nan if value.value is None else value.value for value in by_class]
        np.testing.assert_array_equal(means, classes["wait_mean_s"].to_numpy())
    assert told[-1] == len(JOBS) * len(CASES)
    assert told == sorted(told)


@pytest.mark.parametrize("repeats", [1, 2, 4])
def test_gains_are_those_of_the_pairs_comparison(repeats: int) -> None:
    """With the same seed, both vary the jobs and draw the weeks alike."""
    compared = compare_policies(
        JOBS, CASES, repeats=Repeats(repeats, seed=5), settings=SETTINGS, span=SPAN
    )
    for place, case in enumerate(CASES[1:], 1):

        def pair(jobs: Workload, _: int, case: PolicyCase = case) -> PairedRun:
            return PairedRun(scheduled(jobs, CASES[0]), scheduled(jobs, case))

        paired = compare(JOBS, pair, repeats=repeats, seed=5, settings=SETTINGS, span=SPAN)
        assert compared.interval_method == paired.interval_method
        for key in METRICS:
            assert compared.gain(place, key) == paired[key]
            assert compared.figure(place, key).mean == paired[key].adjusted


def test_the_first_case_is_the_baseline_and_gains_nothing_over_itself() -> None:
    compared = compare_policies(JOBS, CASES[:1], repeats=Repeats(3))
    gain = compared.gain(0, "wait_mean_s")
    assert gain.gain == 0
    interval = compared.figure(0, "wait_mean_s").interval
    assert interval is not None
    assert interval.low < interval.high


def test_wrong_cases_are_refused() -> None:
    with pytest.raises(InputError, match="no policy to run"):
        compare_policies(JOBS, [])
    with pytest.raises(InputError, match="'easy' is given twice"):
        compare_policies(JOBS, [CASES[0], CASES[0]])
    with pytest.raises(InputError, match="there is none of that name"):
        compare_policies(JOBS, [PolicyCase("x", Policy(), "crystal-ball")])
