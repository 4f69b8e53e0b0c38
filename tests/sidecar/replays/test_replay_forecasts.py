"""Forecasts served in a replay, at virtual times, and scored when the jobs start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics
from foretime_sidecar.store.store import Store
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonOrder
from foretime_sim.waits.forecaster import LEVELS

from tests.support.replay_runs import CLOCK, made_workload
from tests.support.workloads.real_logs import KTH, read_workload


def replayed(folder: Path, jobs: int, **options: object) -> AdjustedStatistics:
    workload = made_workload(jobs, days=5)
    replay = Replay(Policy(), state_dir=folder, **options)  # type: ignore[arg-type]
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    return statistics


def test_what_came_of_each_forecast_is_what_the_schedule_says(tmp_path: Path) -> None:
    statistics = replayed(tmp_path, 150, forecast_interval_s=1800)
    done = statistics.forecasts
    assert done is not None
    store = Store(tmp_path / "repeat-0" / "foretime.sqlite")
    rows = store.rows(
        "SELECT job_id, made_at, waited_s, outcome FROM served_forecasts WHERE job_id IS NOT NULL"
    )
    store.close()
    assert done.scored == len(rows) > 100
    starts = CLOCK + made_workload(150, days=5).submit_time + statistics.wait
    for job_id, made_at, waited_s, outcome in rows:
        assert outcome == "started"
        assert made_at + waited_s == starts[int(job_id.rpartition("_")[2]) - 1]


@pytest.mark.traces
@pytest.mark.slow
def test_forecasts_of_a_log_slice_hold_about_as_often_as_they_say(
    tmp_path: Path, trace: Callable[[str], Path]
) -> None:
    log = read_workload(trace(f"{KTH}.swf.gz"))
    # The second month, busy, and what was known when it began.
    workload, history = log.take(np.arange(4_000, 4_700)), log.take(np.arange(4_000))
    replay = Replay(Policy(), state_dir=tmp_path, history=history, forecast_interval_s=3600)
    statistics = replay(workload, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    done = statistics.forecasts
    assert done is not None
    assert done.scored > 300
    shares = dict(zip(LEVELS, done.share_within, strict=True))
    # Ten days have few queues that are independent of each other: nothing may be grossly off.
    for level, slack in ((0.5, 0.25), (0.75, 0.2), (0.9, 0.15), (0.95, 0.1)):
        share = shares[level]
        assert share is not None
        assert share == pytest.approx(level, abs=slack)


def test_forecasts_change_nothing_that_is_scheduled(tmp_path: Path) -> None:
    plain = replayed(tmp_path / "plain", 250)
    served = replayed(tmp_path / "served", 250, forecast_interval_s=3600)
    assert plain.forecasts is None
    np.testing.assert_array_equal(plain.wait, served.wait)
    assert plain.hook is not None
    assert served.hook is not None
    assert plain.hook.adjusted == served.hook.adjusted


def test_a_policy_in_python_can_not_be_run_forward(tmp_path: Path) -> None:
    order = PythonOrder(lambda queue, now: -queue.submit_time, "mine")
    replay = Replay(replace(Policy(), order=order), state_dir=tmp_path, forecast_interval_s=900)
    with pytest.raises(InputError, match="no policy in Python"):
        replay(made_workload(5, days=1), 0)


@pytest.mark.parametrize("backfill", [Backfill.SLACK, Backfill.EASY_WSPT])
def test_what_forecasts_can_not_run_forward_is_refused(
    tmp_path: Path, backfill: Backfilling
) -> None:
    replay = Replay(Policy(backfill=backfill), state_dir=tmp_path, forecast_interval_s=900)
    with pytest.raises(InputError, match=f"backfilling is {backfill}: forecasts can't run"):
        replay(made_workload(5, days=1), 0)
