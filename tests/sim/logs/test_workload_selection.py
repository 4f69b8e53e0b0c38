"""Splitting, heads, jitter and ties of workloads."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.swf import format_swf, parse_swf
from foretime_sim.models.lublin2003 import generate
from foretime_sim.workloads.job_log import log_of_workload
from hypothesis import given
from hypothesis import strategies as st

WORKLOAD = generate(300, processors=16, seed=3)


@given(st.integers(0, 2**32 - 1), st.integers(0, 120))
def test_jitter_moves_each_job_a_little(seed: int, seconds: int) -> None:
    moved = WORKLOAD.jittered(np.random.default_rng(seed), seconds)
    assert (np.diff(moved.submit_time) >= 0).all()
    back = np.argsort(moved.job_id)
    assert np.array_equal(moved.job_id[back], WORKLOAD.job_id)
    assert np.abs(moved.submit_time[back] - WORKLOAD.submit_time).max() <= seconds
    assert np.array_equal(moved.actual_runtime[back], WORKLOAD.actual_runtime)


@given(st.integers(0, 2**32 - 1))
def test_shuffled_ties_only_swaps_ties(seed: int) -> None:
    tied = replace(WORKLOAD, submit_time=WORKLOAD.submit_time // 86_400)
    shuffled = tied.shuffled_ties(np.random.default_rng(seed))
    assert np.array_equal(shuffled.submit_time, tied.submit_time)
    assert np.array_equal(np.sort(shuffled.job_id), tied.job_id)


def test_negative_jitter_is_refused() -> None:
    with pytest.raises(InputError, match="jitter of -1 s"):
        WORKLOAD.jittered(np.random.default_rng(0), -1)


def test_a_split_parts_jobs_by_submission_and_a_head_takes_the_first() -> None:
    middle = int(WORKLOAD.submit_time[150])
    history, test = WORKLOAD.split(middle)
    assert len(history) + len(test) == 300
    assert history.submit_time[-1] < middle <= test.submit_time[0]
    assert len(WORKLOAD.head(10)) == 10
    with pytest.raises(InputError, match="no job was submitted before the split"):
        WORKLOAD.split(0)
    with pytest.raises(InputError, match="at least one"):
        WORKLOAD.head(0)


def test_dates_are_the_logs_seconds_and_back() -> None:
    date = datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)
    assert WORKLOAD.seconds_at(date) == 86_400
    assert WORKLOAD.seconds_at(date.replace(tzinfo=None)) == 86_400
    assert WORKLOAD.moment(86_400) == "2024-01-02 00:00"
    undated = replace(WORKLOAD, unix_start_time=None)
    assert undated.moment(43_200) == "day 0.5"
    with pytest.raises(InputError, match="UnixStartTime"):
        undated.seconds_at(date)


def test_a_schedule_can_be_written_as_swf() -> None:
    wait = np.arange(300, dtype=np.int64)
    log = parse_swf(format_swf(log_of_workload(WORKLOAD, wait, ["Note: made up"])), source="x")
    assert log.wait.tolist() == list(range(300))
    assert log.comments[0] == "; Note: made up"
    assert log.machine_processors == 16
    assert log.unix_start_time == WORKLOAD.unix_start_time
    assert log.users is not None
    assert WORKLOAD.users is not None
    assert log.users.names == WORKLOAD.users.names


def test_a_job_is_given_as_its_user_wrote_it() -> None:
    request = WORKLOAD.job_request(0)
    assert request.job_id == "1"
    assert request.user is not None
    assert request.user.startswith("user")
    assert request.requested_time == WORKLOAD.requested_time[0]
    assert WORKLOAD.ending(0) is not None
