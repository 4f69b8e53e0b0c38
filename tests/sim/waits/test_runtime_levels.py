"""Levels of runtime forecasts: calibrated by ends, and left alone where nothing is known."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.arrays import Float64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.waits.calibration.runtime_levels import (
    JUDGED_EVERY,
    JUDGED_LEVELS,
    RuntimeLevels,
    RuntimeLevelsSettings,
)
from hypothesis import given
from hypothesis import strategies as st

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95)
LIMIT_S = 100_000


class Told(RuntimeHistories):
    """Expects the same of every job: a quantile at each level, made of the level."""

    def __init__(self, least_s: float, most_s: float) -> None:
        super().__init__()
        self.least_s, self.most_s = least_s, most_s

    def quantiles(self, jobs: object, age: object, levels: object) -> Float64Array:
        """Uniform."""
        told_s = self.least_s + (self.most_s - self.least_s) * np.array(levels)
        return told_s[np.newaxis, :]


def ended(number: int, runtime_s: float, ending: Ending = Ending.COMPLETED) -> FinishedJob:
    job = JobRequest(str(number), "ann", None, 4, LIMIT_S, 0)
    return FinishedJob(job, 0, round(runtime_s), round(runtime_s), ending)


def learned(told: Told, runtimes_s: Float64Array) -> RuntimeLevels:
    levels = RuntimeLevels()
    for number, runtime_s in enumerate(runtimes_s.tolist()):
        levels.judge(ended(number, runtime_s), told)
    return levels


@given(st.integers(0, 2**32 - 1))
def test_levels_come_true_as_often_as_they_say(seed: int) -> None:
    """Jobs run from 0 to 20,000 s, and are expected to run from 5,000 to 15,000 s."""
    rng = np.random.default_rng(seed)
    told = Told(5_000, 15_000)
    found = learned(told, rng.uniform(1, 20_000, 8_000)).calibrated(LEVELS)
    assert found == sorted(found)
    for wanted in (0.05, 0.95):  # beyond all that is expected: as far out as is known
        level = found[LEVELS.index(wanted)]
        assert level == pytest.approx(JUDGED_LEVELS[0 if wanted < 0.5 else -1], abs=0.002)
    assert found[LEVELS.index(0.5)] == pytest.approx(0.5, abs=0.15)
    # Of 20,000 s a quarter is at 5,000 s.
    quarter_s = told.quantiles(None, None, found)[0, LEVELS.index(0.25)]
    assert quarter_s == pytest.approx(5_000, abs=1_500)


@given(st.integers(0, 2**32 - 1))
def test_right_forecasts_are_left_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = learned(Told(1, 10_000), rng.uniform(1, 10_000, 6_000)).calibrated(LEVELS)
    assert found == pytest.approx(list(LEVELS), abs=0.08)


def test_ends_at_a_limit_that_is_many_levels_are_shared_out() -> None:
    """All are told the same second, and take it: no level is truer than another."""
    told = Told(3_600, 3_600)
    found = learned(told, np.full(400, 3_600.0)).calibrated(LEVELS)
    assert found == pytest.approx(list(LEVELS))


def test_few_ends_move_little() -> None:
    told = Told(1, 10_000)
    few = learned(told, np.full(2 * JUDGED_EVERY, 20_000.0)).calibrated([0.95])
    many = learned(told, np.full(200 * JUDGED_EVERY, 20_000.0)).calibrated([0.95])
    assert 0.95 < few[0] < 0.999 == pytest.approx(many[0], abs=0.002)


def test_what_the_machine_ended_tells_nothing() -> None:
    levels = RuntimeLevels()
    for number in range(100):
        levels.judge(ended(number, 20_000, Ending.NODE_FAILED), Told(1, 10_000))
    assert levels.calibrated(LEVELS) == pytest.approx(list(LEVELS))


def test_more_jobs_than_are_alike_run_longer_than_is_known_of_them() -> None:
    """Real histories: every user's runtimes drift, so that what is known is too narrow."""
    rng = np.random.default_rng(3)
    histories, levels = RuntimeHistories(), RuntimeLevels()
    runtime_s = 1_000.0
    plain: list[bool] = []
    calibrated: list[bool] = []
    for number in range(3_000):
        runtime_s = float(np.clip(runtime_s * np.exp(rng.normal(0, 0.4)), 100, 50_000))
        job = ended(number, runtime_s)
        if number > 1_000:
            for held, level in ((plain, 0.95), (calibrated, levels.calibrated([0.95])[0])):
                told_s = histories.quantiles([job.request], np.zeros(1, np.int64), [level])
                held.append(bool(job.actual_runtime <= round(told_s[0, 0])))
        levels.judge(job, histories)
        histories.learn_one(job)
    assert np.mean(plain) < 0.93
    assert abs(np.mean(calibrated) - 0.95) < abs(np.mean(plain) - 0.95)


@pytest.mark.parametrize("name", ["half_life", "prior"])
def test_impossible_settings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0: give more than 0"):
        RuntimeLevelsSettings(**{name: 0})
