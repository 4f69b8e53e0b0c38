"""Scores of models of runtimes: by hand, and on a workload whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.runtime_distribution import RuntimeDistribution
from foretime_estimators.estimators.estimator import Memoryless
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.scores.wait_sources import LoggedWaits
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload
from foretime_studies.waits.runtime_scores import (
    LastRuntimes,
    RequestedRuntimes,
    crps,
    models_compared,
    score_runtimes,
    score_table,
)

LIMIT = 10_000


def workload(jobs: int = 400) -> Workload:
    """Runtimes uniform up to the limit; half of the jobs wait, of three users."""
    rng = np.random.default_rng(1)
    return Workload(
        name="uniform",
        machine_processors=1_000,
        unix_start_time=None,
        job_id=np.arange(jobs),
        submit_time=np.arange(jobs) * 500,
        processors=np.ones(jobs, dtype=np.int64),
        actual_runtime=rng.integers(1, LIMIT + 1, jobs),
        requested_time=np.full(jobs, LIMIT),
        logged_wait=np.ma.MaskedArray(rng.integers(0, 2, jobs) * 3_000),
        users=Labels((np.arange(jobs) % 3).astype(np.int32), ("u0", "u1", "u2")),
    )


class Truth(Memoryless):
    """Knows how runtimes are made."""

    def sample(
        self,
        jobs: Sequence[JobRequest],
        age: Int64Array,
        now: int,
        samples: int,
        rng: np.random.Generator,
    ) -> Int64Array:
        return rng.integers(age + 1, LIMIT + 1, size=(samples, len(jobs)))


class ToldTheFuture(Truth):
    """Fails if it is told of a job before its end."""

    def __init__(self) -> None:
        self.latest = 0

    def learn_one(self, job: FinishedJob) -> None:
        assert job.end_time >= self.latest
        self.latest = job.end_time

    def sample(self, jobs: Sequence[JobRequest], age: Int64Array, now: int, *rest: Any) -> Any:
        assert self.latest <= now
        assert all(job.submit_time <= now for job in jobs)
        return super().sample(jobs, age, now, *rest)


def test_the_crps_is_its_formula() -> None:
    drawn = np.array([[0.0, 5.0], [2.0, 5.0]])
    # |0-1|, |2-1| average 1, less half of |0-2|; a forecast of one number: its error.
    assert crps(drawn, np.array([1.0, 8.0])).tolist() == [0.0, 3.0]
    rng = np.random.default_rng(2)
    many, outcome = rng.normal(size=(9, 3)), rng.normal(size=3)
    apart = [np.abs(a - b) for i, a in enumerate(many) for j, b in enumerate(many) if i != j]
    wanted = np.abs(many - outcome).mean(axis=0) - np.mean(apart, axis=0) / 2
    assert crps(many, outcome) == pytest.approx(wanted)


def test_the_truth_is_uniform_and_best() -> None:
    log = workload()
    models: dict[str, RuntimeDistribution] = {
        "truth": ToldTheFuture(),
        "requested": RequestedRuntimes(),
    }
    scores = score_runtimes(LoggedWaits(log, Policy()), models, moments=300, samples=100)
    for group in ("submitted", "waiting", "running"):
        truth, requested = (scores[name][group] for name in models)
        assert truth.distance() < 0.07
        assert truth.crps < requested.crps
        assert truth.log_crps < requested.log_crps
        assert truth.outcomes == requested.outcomes > 100
    assert scores["truth"]["submitted"].outcomes == 300
    assert scores["truth"]["all work"].distance() < 0.15
    assert scores["requested"]["all work"].within()[0] == 1


def test_all_models_can_be_compared() -> None:
    scores = score_runtimes(
        LoggedWaits(workload(), Policy()), models_compared(), moments=20, samples=10
    )
    table = " ".join(score_table(scores).to_markdown().split())
    for name in models_compared():
        assert f"| submitted | {name} |" in table
        assert f"| all work | {name} |" in table


def test_the_last_runtimes(finished_job: Any) -> None:
    model = LastRuntimes(3, by_user=True)
    rng = np.random.default_rng(1)
    mine, other = finished_job(1, user="me").request, finished_job(1, user="other").request

    def drawn(job: JobRequest, age: int) -> set[int]:
        return set(model.sample([job], np.array([age]), 0, 200, rng)[:, 0].tolist())

    assert drawn(mine, 0) == {LIMIT}
    for taken in (10, 20, 30, 40):
        model.learn_one(finished_job(taken, user="me"))
    assert drawn(mine, 0) == drawn(other, 0) == {20, 30, 40}
    assert drawn(mine, 20) == {30, 40}
    assert drawn(mine, 40) == {LIMIT}
    model.learn_one(finished_job(99, user="you"))
    assert drawn(mine, 0) == {20, 30, 40}
    assert drawn(other, 0) == {30, 40, 99}
    again = LastRuntimes(3, by_user=True)
    state: Mapping[str, Any] = model.state()
    again.restore(state)
    assert again.state() == state
    with pytest.raises(StateError, match="another model"):
        LastRuntimes(3, by_user=False).restore(state)
    with pytest.raises(InputError, match="0 jobs"):
        LastRuntimes(0, by_user=False)


@pytest.fixture
def finished_job() -> Any:
    def build(runtime: int, user: str) -> FinishedJob:
        request = JobRequest("1", user, None, 1, LIMIT, 0)
        return FinishedJob(request, 0, runtime, runtime, Ending.COMPLETED)

    return build
