"""Who waits longer: users by their mean waits, and only those with enough jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sim.models.lublin2003 import generate
from foretime_sim.scores.user_waits import FEWEST_JOBS, WorseOff, waits_by_user, worse_off
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import Workload

ANN, BOB, CARL = FEWEST_JOBS, FEWEST_JOBS, FEWEST_JOBS - 1
NOBODY = 7


def jobs_of_three() -> Workload:
    codes = np.repeat(np.array([0, 1, 2, -1], dtype=np.int32), [ANN, BOB, CARL, NOBODY])
    jobs = generate(len(codes), processors=64, seed=1)
    return replace(jobs, users=Labels(codes, ("ann", "bob", "carl")))


def names(worse: list[WorseOff]) -> list[str]:
    return [each.name for each in worse]


def test_means_are_of_the_jobs_of_each_user() -> None:
    jobs = jobs_of_three()
    before = np.arange(len(jobs), dtype=np.int64)
    waits = waits_by_user(jobs, before, 2 * before)
    assert waits.index.tolist() == ["ann", "bob", "carl"]
    assert waits["jobs"].tolist() == [ANN, BOB, CARL]
    assert waits.loc["bob", "baseline"] == pytest.approx(before[ANN : ANN + BOB].mean())
    assert waits.loc["bob", "adjusted"] == pytest.approx(2 * before[ANN : ANN + BOB].mean())


def test_the_worst_come_first_and_few_jobs_are_not_judged() -> None:
    jobs = jobs_of_three()
    before = np.full(len(jobs), 1000)
    factors = np.repeat([1.06, 1.2, 9.0, 9.0], [ANN, BOB, CARL, NOBODY])
    after = (before * factors).astype(np.int64)
    assert names(worse_off(waits_by_user(jobs, before, after))) == ["bob", "ann"]
    assert not worse_off(waits_by_user(jobs, before, (before * 1.05).astype(np.int64)))


def test_who_never_waited_and_now_does_is_the_worst_off() -> None:
    jobs = jobs_of_three()
    before = np.repeat([100, 0, 0, 0], [ANN, BOB, CARL, NOBODY])
    after = np.repeat([900, 1, 0, 0], [ANN, BOB, CARL, NOBODY])
    assert names(worse_off(waits_by_user(jobs, before, after))) == ["bob", "ann"]


def test_a_log_without_users_has_nobody() -> None:
    jobs = generate(100, processors=64, seed=1)
    jobs = replace(jobs, users=None)
    wait = np.ones(100, dtype=np.int64)
    assert waits_by_user(jobs, wait, wait).empty
