"""Nobody gains much by jobs that only look short: on what is expected, and under Slurm's model."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sim.engine.estimated_run import role_predictor
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

from tests.sidecar.ordering.attack_trial import ROBUST, Outcome, outcome, started_by
from tests.sidecar.ordering.attacks import ATTACKS, FRIENDS, MALLORY, Scene, honest_scene
from tests.support.slurm.ordered_slurm import submission

NOW = 1_800_000_000
HOUR = 3600
JOBS = 400


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    return [honest_scene(seed, JOBS) for seed in (1, 2)]


def test_each_attack_does_the_same_work(scenes: list[Scene]) -> None:
    honest = scenes[0]
    at_once = {job.submit_time for job in honest.jobs if job.user == MALLORY}
    assert len(at_once) == JOBS // 25
    for name, attack in ATTACKS.items():
        scene = attack(honest)
        assert np.array_equal(np.unique(scene.work), np.unique(honest.work)), name
        mine = {MALLORY, *FRIENDS}
        theirs = [job for job in scene.jobs if job.user not in mine]
        assert theirs == [job for job in honest.jobs if job.user not in mine], name
        for piece in range(len(honest.ready)):
            done = sum(job.runtime for job in scene.jobs if job.work == piece)
            assert done >= honest.runtime[piece], name
        assert -1e-9 <= scene.burnt(honest) < 0.05, name
        assert (scene.waits(scene.workload.submit_time) <= 0).all(), "none before it is started"


def test_a_job_of_a_second_before_each_brings_little(scenes: list[Scene]) -> None:
    """Where it did bring much."""
    attack = ATTACKS["one job of a second before each"]
    plainly, robustly = (outcome(started_by(name), attack, scenes) for name in ("expected", ROBUST))
    assert plainly.own < 0.8, "or nothing is shown"
    assert robustly.own > 0.93
    assert isinstance(robustly, Outcome)


def _expected_of(job: JobRequest, *done: FinishedJob) -> int:
    estimator = parse_estimator(ROBUST)
    for each in sorted(done, key=lambda one: one.end_time):
        estimator.learn_one(each)
    return role_predictor(estimator)(job, NOW).queue


def _ran(
    number: int, user: str, runtime: int, project: str = "p", **changed: object
) -> FinishedJob:
    request = JobRequest(f"{number}", user, project, 4, 10 * HOUR, 0, "main")
    done = FinishedJob(request, 60 * number, 60 * number + runtime, runtime, Ending.COMPLETED)
    return dataclasses.replace(done, **changed)  # type: ignore[arg-type]


ASKED = JobRequest("99", MALLORY, "p", 4, 10 * HOUR, NOW, "main")
LONG = [_ran(number, MALLORY, 8 * HOUR) for number in range(10)]


def test_jobs_that_never_ran_or_were_lost_tell_nothing() -> None:
    """Submitted and cancelled, or submitted anew, as often as one likes."""
    tricks = [
        _ran(100 + number, MALLORY, 0, start_time=None, ending=Ending.NEVER_STARTED)
        for number in range(50)
    ] + [_ran(200 + number, MALLORY, 1, ending=Ending.REQUEUED) for number in range(50)]
    assert _expected_of(ASKED, *LONG, *tricks) == _expected_of(ASKED, *LONG)


def test_another_size_or_request_of_ones_own_does_not_help() -> None:
    """The user's coarser kinds hold the long jobs, too."""
    before = _expected_of(ASKED, *LONG)
    for changed in ({"processors": 1}, {"requested_time": 9 * HOUR}):
        asked = dataclasses.replace(ASKED, **changed)  # type: ignore[arg-type]
        sleeps = [
            dataclasses.replace(_ran(100 + number, MALLORY, 1), request=asked)
            for number in range(8)
        ]
        assert _expected_of(ASKED, *LONG, *sleeps) > 0.95 * before


def test_friends_in_one_account_can_not_lend_their_short_jobs() -> None:
    before = _expected_of(ASKED, *LONG)
    sleeps = [_ran(100 + number, FRIENDS[number % 3], 1) for number in range(200)]
    assert _expected_of(ASKED, *LONG, *sleeps) > 0.95 * before


def test_whose_a_job_is_says_the_scheduler_and_its_name_counts_for_nothing() -> None:
    """A user can't be chosen, and what a job is called does not reach an estimator."""
    slurm = MockSlurm(SlurmSetup(processors=8), Policy(), None, NOW)
    slurm.submit(submission(8, HOUR))
    (queued,) = SlurmCommands(slurm.run).queue().jobs
    assert queued.request.user == "ann"
    assert queued.request.executable is None
