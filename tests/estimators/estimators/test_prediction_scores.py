"""What a job adds to the scores of estimators: worked by hand, and recomputed plainly."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.estimators.prediction_scores import MEASURES, SCORES, measured
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from hypothesis import given
from hypothesis import strategies as st

REQUEST = JobRequest("1", "alice", "physics", 4, 3600, 100)
JOB = FinishedJob(REQUEST, 200, 1000, 800, Ending.COMPLETED)


def measures(predicted: int, job: FinishedJob) -> dict[str, float]:
    (row,) = measured(np.array([predicted]), job).tolist()
    return dict(zip(MEASURES, row, strict=True))


def test_a_prediction_of_twice_the_runtime_is_half_as_accurate() -> None:
    # 1600 s for 800 s: half as accurate as can be, and 0.1 of 800 s is its pinball loss.
    assert measures(1600, JOB) == pytest.approx(
        {
            "jobs": 1,
            "ratio": 0.5,
            "under": 0,
            "log_error": math.log(2),
            "error_s": 800,
            "pinball_s": 80,
            "cancelled_under": 0,
        }
    )


def test_a_prediction_too_short_costs_nine_times_as_much() -> None:
    found = measures(400, JOB)
    assert found["ratio"] == 0.5
    assert found["under"] == 1
    assert found["log_error"] == pytest.approx(math.log(2))
    assert found["pinball_s"] == pytest.approx(0.9 * 400)


def test_a_prediction_that_is_met_is_not_too_short() -> None:
    assert measures(800, JOB) == dict.fromkeys(MEASURES, 0) | {"jobs": 1, "ratio": 1}


def test_a_job_cut_at_its_limit_counts_as_its_request() -> None:
    cut = replace(JOB, actual_runtime=3625, ending=Ending.TIMED_OUT)
    assert measures(3600, cut)["ratio"] == 1
    assert measures(3600, cut)["under"] == 0
    # Killed a moment before its limit: it would have run longer.
    early = replace(JOB, actual_runtime=3590, ending=Ending.TIMED_OUT)
    assert measures(3595, early)["under"] == 1
    beyond = replace(JOB, actual_runtime=3700)
    assert measures(3600, beyond)["ratio"] == 1


def test_a_cancelled_job_tells_only_that_a_prediction_was_too_short() -> None:
    cancelled = replace(JOB, ending=Ending.CANCELLED)
    assert measures(700, cancelled) == dict.fromkeys(MEASURES, 0) | {"cancelled_under": 1}
    assert not any(measures(900, cancelled).values())


@pytest.mark.parametrize(
    "ending", [Ending.NODE_FAILED, Ending.PREEMPTED, Ending.REQUEUED, Ending.NEVER_STARTED]
)
def test_what_is_no_ending_of_the_program_does_not_count(ending: Ending) -> None:
    assert not any(measures(700, replace(JOB, ending=ending)).values())
    assert not any(measures(700, replace(JOB, start_time=None)).values())


def test_who_predicted_nothing_is_not_scored() -> None:
    both = measured(np.array([0, 1600]), JOB)
    assert not both[0].any()
    assert both[1].tolist() == measured(np.array([1600]), JOB)[0].tolist()


def test_a_job_of_no_time_counts_as_one_second() -> None:
    assert measures(1, replace(JOB, actual_runtime=0))["ratio"] == 1


ENDINGS = st.sampled_from([Ending.COMPLETED, Ending.FAILED, Ending.TIMED_OUT, Ending.CANCELLED])
JOBS = st.lists(
    st.tuples(st.integers(1, 10_000), st.integers(0, 12_000), st.integers(1, 10_000), ENDINGS),
    min_size=1,
    max_size=30,
)


@given(JOBS)
def test_scores_are_those_of_a_plain_recomputation(
    jobs: list[tuple[int, int, int, Ending]],
) -> None:
    total = np.zeros((1, len(MEASURES)))
    exact: list[tuple[int, int]] = []
    cancelled_short = 0
    for requested, ran, said, ending in jobs:
        predicted = min(said, requested)
        request = replace(REQUEST, requested_time=requested)
        job = FinishedJob(request, 200, 200 + ran, ran, ending)
        total += measured(np.array([predicted]), job)
        if ending is Ending.CANCELLED:
            cancelled_short += predicted < max(min(ran, requested), 1)
        elif ending is Ending.TIMED_OUT:
            exact.append((predicted, requested))
        else:
            exact.append((predicted, max(min(ran, requested), 1)))
    found = {name: float(score(total)[0]) for name, score in SCORES.items()}
    if not exact:
        assert math.isnan(found["accuracy"])
        return
    count = len(exact)
    short = sum(said < ran for said, ran in exact)
    assert found == pytest.approx(
        {
            "accuracy": sum(min(pair) / max(pair) for pair in exact) / count,
            "under_predicted": short / count,
            "covered": (count - short) / (count + cancelled_short),
            "log_error": sum(abs(math.log(said / ran)) for said, ran in exact) / count,
            "error_s": sum(abs(said - ran) for said, ran in exact) / count,
            "pinball_s": sum(
                0.9 * (ran - said) if ran > said else 0.1 * (said - ran) for said, ran in exact
            )
            / count,
        }
    )
    assert 0 < found["accuracy"] <= 1
