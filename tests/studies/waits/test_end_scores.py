"""Forecasts of ends are scored by the end that came, whatever the forecast is made of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sidecar.forecasts.job_ends import RUNTIME_LEVELS
from foretime_sim.waits.forecaster import LEVELS, MEDIAN
from foretime_sim.workloads.workload import Workload
from foretime_studies.waits.end_scores import (
    LIMIT_PLAN,
    PLAIN,
    RUNTIME_KNOWN,
    WAIT_KNOWN,
    end_outcomes,
)
from foretime_studies.waits.runs import (
    FORWARD,
    OURS,
    PLAN,
    SIMULATED,
    WaitsRun,
    WaitsSettings,
    run_log,
)


@pytest.fixture(scope="module")
def run(kth: Workload) -> WaitsRun:
    log = replace(kth.take(np.arange(7_600, 7_900)), name="days")
    return run_log(log, SIMULATED, WaitsSettings(submissions=40, first_weeks=0, samples=8))


def test_every_end_is_start_and_runtime(run: WaitsRun, kth: Workload) -> None:
    every = np.ones(len(run.records), dtype=np.bool_)
    found = end_outcomes(run, every)
    assert list(found) == [LIMIT_PLAN, FORWARD, PLAIN, OURS, RUNTIME_KNOWN, WAIT_KNOWN]
    assert run.runtimes is not None
    jobs = 7_600 + run.records.job
    end_s = run.records.waited_s + kth.actual_runtime[jobs]
    for rows in found.values():
        assert rows.wait_s.tolist() == end_s.tolist()
        assert rows.forecast_to_wait.all()
        assert (np.diff(rows.forecasts.wait_s, axis=1) >= 0).all()
    planned_s = run.records.of(PLAN).wait_s[:, MEDIAN] + kth.requested_time[jobs]
    assert found[LIMIT_PLAN].median_s.tolist() == planned_s.tolist()
    # Only the runtimes of ours are calibrated.
    assert (found[PLAIN].forecasts.wait_s != found[OURS].forecasts.wait_s).any()
    # Who knows the wait is off by the runtime only, and the other way round.
    limit_s = kth.requested_time[jobs]
    assert (found[WAIT_KNOWN].forecasts.wait_s[:, -1] <= run.records.waited_s + limit_s).all()
    off_s = found[RUNTIME_KNOWN].forecasts.wait_s - run.records.of(OURS).wait_s
    assert (off_s == run.runtimes.runtime_s[:, np.newaxis]).all()


def test_runtimes_are_forecast_when_the_job_is_asked_about(run: WaitsRun) -> None:
    """Nothing of the job itself is known then, and more of others with each end."""
    assert run.runtimes is not None
    quantiles_s = run.runtimes.plain_s
    assert quantiles_s.shape == (len(run.records), len(RUNTIME_LEVELS))
    assert (np.diff(quantiles_s, axis=1) >= 0).all()
    assert (quantiles_s <= run.runtimes.limit_s[:, np.newaxis]).all()
    log = np.log(quantiles_s[:, len(RUNTIME_LEVELS) // 2] + 60)
    assert np.corrcoef(log, np.log(run.runtimes.runtime_s + 60))[0, 1] > 0.3
    assert len(np.unique(quantiles_s[:, 0])) > 10


def test_the_runs_part_is_scored(run: WaitsRun) -> None:
    later = run.records.after_s > 0
    rows = end_outcomes(run, later)[OURS]
    assert len(rows) == later.sum()
    assert rows.forecasts.wait_s.shape[1] == len(LEVELS)


def test_without_runtimes_there_is_nothing_to_score(run: WaitsRun) -> None:
    assert end_outcomes(replace(run, runtimes=None), run.records.after_s == 0) == {}
