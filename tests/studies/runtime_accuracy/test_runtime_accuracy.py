"""Predictions along EASY's schedule, against an estimator told by hand; measures by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sim.engine.engine import simulate
from foretime_sim.policies.policy import Policy
from foretime_sim.workloads.workload import Workload
from foretime_studies.runtime_accuracy.study import (
    RuntimeAccuracy,
    predicted_along,
    report,
    study,
)


class Diary:
    """Predicts its request, and notes all that it is told."""

    oracle = False

    def __init__(self) -> None:
        self.entries: list[tuple[int, str, str]] = []

    def predict_one(self, job: JobRequest, now: int) -> int:
        self.entries.append((now, "asked", job.job_id))
        return job.requested_time

    def start_one(self, job: JobRequest, start_time: int) -> None:
        self.entries.append((start_time, "start", job.job_id))

    def learn_one(self, job: FinishedJob) -> None:
        self.entries.append((job.end_time, "end", job.request.job_id))

    def state(self) -> dict[str, object]:
        return {}

    def restore(self, state: object) -> None:
        pass


def made(jobs: int = 400) -> Workload:
    rng = np.random.default_rng(3)
    requested = rng.choice([600, 7_200, 36_000], jobs)
    return Workload(
        name="made",
        machine_processors=16,
        unix_start_time=None,
        job_id=np.arange(1, jobs + 1),
        submit_time=np.sort(rng.integers(0, 60 * 86_400, jobs)),
        processors=rng.integers(1, 17, jobs),
        requested_time=requested,
        actual_runtime=np.maximum(1, (requested * rng.random(jobs)).astype(np.int64)),
    )


def test_all_is_told_in_order_of_time_and_nothing_before_it_happens() -> None:
    workload, diary = made(), Diary()
    predicted = predicted_along(workload, [diary])
    assert (predicted[0] == workload.requested_time).all()
    rank = {"end": 0, "asked": 1, "start": 2}
    keys = [(time, rank[what]) for time, what, _ in diary.entries]
    assert keys == sorted(keys)
    assert len(keys) == 3 * len(workload)
    schedule = simulate(workload, Policy())
    starts = {int(job): time for time, what, job in diary.entries if what == "start"}
    assert [starts[int(job)] for job in workload.job_id] == schedule.start_time.tolist()


def test_measures_by_hand() -> None:
    workload = made(2)
    actual = np.array([100, 400])
    changed = Workload(
        name="two",
        machine_processors=16,
        unix_start_time=None,
        job_id=workload.job_id,
        submit_time=workload.submit_time,
        processors=workload.processors,
        requested_time=np.array([1_000, 1_000]),
        actual_runtime=actual,
    )
    found = RuntimeAccuracy.of(changed, "x", np.array([200, 100]))
    assert found.accuracy == pytest.approx((0.5 + 0.25) / 2)
    assert found.under == 0.5
    assert found.mae_s == 200
    assert found.log_error == pytest.approx((math.log(2) + math.log(4)) / 2)
    assert found.interval is None  # not six weeks


def test_the_report_has_means_over_logs_beside_what_is_published() -> None:
    done: list[int] = []
    found = study([made(), made(300)], ("requested", "last-two"), done.append)
    assert done == sorted(done)
    assert done[-1] == 700
    overall, published, logs = report(found).tables
    assert [row[0] for row in overall.rows] == ["requested", "last-two"]
    means = [each.accuracy for each in found if each.estimator == "requested"]
    assert overall.rows[0][1] == pytest.approx(sum(means) / 2)
    assert overall.rows[0][2] == 0
    assert len(logs.rows) == 4
    low, high = logs.rows[0][3], logs.rows[0][4]
    assert isinstance(low, float)
    assert isinstance(high, float)
    assert low < means[0] < high
    assert {row[1] for row in published.rows} == {0.80, 0.805}
