"""When jobs end: waits and runtimes added up, worked by hand and against samples."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS, ends
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from hypothesis import given
from hypothesis import strategies as st

HOURS = st.floats(0, 100).map(lambda hours: hours * 3600)


def test_a_sure_wait_only_shifts_the_runtime() -> None:
    runtime = 100 * np.arange(20, dtype=np.float64)[np.newaxis]
    found = ends(np.full((1, len(LEVELS)), 600.0), runtime)
    assert found[0, MEDIAN] == pytest.approx(600 + 950)
    assert found[0, LEVELS.index(0.95)] == pytest.approx(600 + 1850)
    assert found[0, 0] == pytest.approx(600, abs=1)


def test_waits_and_runtimes_spread_together() -> None:
    """Two uniform hours: half of the sums are below an hour, 95% below 2 - sqrt(0.1)."""
    wait = 3600 * np.array([LEVELS])
    found = ends(wait, 3600 * np.array([RUNTIME_LEVELS]))
    assert found[0, MEDIAN] == pytest.approx(3600, rel=0.01)
    assert found[0, LEVELS.index(0.95)] == pytest.approx(3600 * (2 - 0.1**0.5), rel=0.02)
    assert found[0, LEVELS.index(0.25)] == pytest.approx(3600 * 0.5**0.5, rel=0.03)


@given(st.lists(HOURS, min_size=24, max_size=24), st.lists(HOURS, min_size=20, max_size=20))
def test_no_job_ends_before_it_starts(waits: list[float], runtimes: list[float]) -> None:
    wait_s, runtime_s = np.sort([waits]), np.sort([runtimes])
    found = ends(wait_s, runtime_s)
    assert (np.diff(found[0]) >= 0).all()
    assert (found >= wait_s + runtime_s[0, 0] - 1e-6).all()
    assert (found <= wait_s + runtime_s[0, -1] + 1e-6).all()


def test_a_long_tail_of_the_wait_leaves_the_job_its_runtime() -> None:
    """One wait in twenty is a week and the others are an hour: at 95% it still has to run."""
    wait = np.where(np.array([LEVELS]) >= 0.95, 7 * 86_400.0, 3600.0)
    found = ends(wait, np.full((1, 20), 7200.0))
    np.testing.assert_allclose(found, wait + 7200)
    spread = ends(wait, 7200 * np.array([RUNTIME_LEVELS]))
    middle, tail = (spread - wait)[0, [LEVELS.index(0.5), LEVELS.index(0.975)]]
    assert middle == pytest.approx(7200 * 0.5 / 0.95, rel=0.02)
    assert 3600 <= tail <= 7200 * 0.6, "the week begins between 92.5 and 95%"


def test_runtimes_of_alike_jobs_tell_quantiles() -> None:
    histories = RuntimeHistories()
    job = JobRequest("1", "ann", "p", 8, 3600, 0)
    rng = np.random.default_rng(1)
    assert histories.quantiles([], np.empty(0, np.int64), LEVELS).shape == (0, len(LEVELS))
    for runtime in range(600, 1200, 20):
        histories.learn_one(FinishedJob(job, 0, runtime, runtime, Ending.COMPLETED))
    for age in (0, 900):
        jobs, ages = [job, job], np.array([age, age])
        told = histories.quantiles(jobs, ages, LEVELS)
        drawn = histories.sample(jobs, ages, 2000, 20_000, rng)
        sampled = np.quantile(drawn[:, 0], LEVELS)
        np.testing.assert_allclose(told[0], sampled, rtol=0.03)
        assert (told > age).all()
        assert (told <= 3600).all()
