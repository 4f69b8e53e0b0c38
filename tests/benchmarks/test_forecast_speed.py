"""Speed of our forecasts of waits: a deep queue, and a real log's submissions.

Goals: with 1,000 queued and 500 running jobs, all of different kinds, one what-if of 200 samples in
well under 0.5 s; 5 ms for a job of KTH's that does not start at once; its 28,000 submissions
forecast by a plan in well under a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.engine.estimated_run import estimator_of
from foretime_sim.logs.filters import workload_of_log
from foretime_sim.logs.log_files import read_log
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forward_forecaster import ForwardForecaster, our_forecaster
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.plan_forecaster import PlanForecaster
from foretime_sim.waits.scores.moments import Asking, ask_forecasters, sampled_evenly
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.workload import Workload

from tests.benchmarks.test_forward_speed import NOW, QUEUED, RUNNING, crowded

USERS, FINISHED = 80, 8_000
GROUP = "forecasts of waits: goals"


def crowded_moment(rng: np.random.Generator) -> Moment:
    """Give a deep queue of many users' jobs, none asked about yet."""
    snapshot = crowded()
    running, pending = snapshot.running, snapshot.pending
    columns = (
        np.concatenate([running.processors, pending.processors]),
        np.concatenate([running.requested_time, pending.requested_time]),
        np.concatenate([running.start_time, pending.submit_time]),
    )
    users = rng.integers(0, USERS, len(snapshot)).tolist()
    rows = zip(*(column.tolist() for column in columns), strict=True)
    requests = [
        JobRequest(str(job), f"user{users[job]}", None, *row) for job, row in enumerate(rows)
    ]
    return Moment(snapshot, Policy(), requests, np.zeros(0, dtype=np.int64))


def taught(moment: Moment, rng: np.random.Generator) -> ForwardForecaster:
    """Give a forecaster that knows what jobs like these took."""
    forecaster = our_forecaster(threads=None)
    done = []
    for job in range(FINISHED):
        like = moment.requests[int(rng.integers(len(moment.requests)))]
        runtime = int(rng.integers(1, like.requested_time + 1))
        start = NOW - 60 * 86_400 + 600 * job
        before = replace(like, job_id=f"before{job}", submit_time=start)
        forecaster.submitted(before)
        done.append(FinishedJob(before, start, start + runtime, runtime, Ending.COMPLETED))
    for each in sorted(done, key=lambda job: job.end_time):
        forecaster.finished(each)
    return forecaster


@pytest.mark.parametrize("asked", [1, QUEUED])
def test_a_deep_queue(benchmark: Any, asked: int) -> None:
    benchmark.group = GROUP
    rng = np.random.default_rng(0)
    moment = crowded_moment(rng)
    forecaster = taught(moment, rng)
    last = np.arange(RUNNING + QUEUED - asked, RUNNING + QUEUED)
    about = Moment(moment.snapshot, moment.policy, moment.requests, last)
    benchmark.pedantic(forecaster.forecast, args=(about,), rounds=5, warmup_rounds=1)
    if asked == 1:
        benchmark.extra_info["goal_s"] = 0.5


@pytest.fixture(scope="module")
def kth(trace: Callable[[str], Path]) -> Workload:
    return workload_of_log(read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz")))[0]


def test_a_plan_at_each_submission(benchmark: Any, kth: Workload) -> None:
    benchmark.group = GROUP
    plan = PlanForecaster("plan-req", estimator_of("requested", kth))
    benchmark.pedantic(ask_forecasters, args=(SimulatedWaits(kth, Policy()), [plan]), rounds=1)
    benchmark.extra_info.update(goal_s=30, jobs=len(kth))


def test_forward_runs_at_submissions(benchmark: Any, kth: Workload) -> None:
    benchmark.group = GROUP
    jobs = kth.head(len(kth) // 3)
    forward = our_forecaster()
    asking = Asking(sampled_evenly(jobs, 1_000, seed=1))
    records = benchmark.pedantic(
        ask_forecasters, args=(SimulatedWaits(jobs, Policy()), [forward], asking), rounds=1
    )
    waiting = int((~records.started_now).sum())
    benchmark.extra_info["ms_per_forecast_of_who_waits"] = records.seconds[0] / waiting * 1e3
