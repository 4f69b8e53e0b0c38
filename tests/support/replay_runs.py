"""A made workload, its replays, and what its hook must plan: for the tests of replays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from foretime_estimators.accuracy.accuracy import AccuracyModel, AccuracySettings, Scheme
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import ReplaySchedule
from foretime_sidecar.settings.settings import (
    AccuracySection,
)
from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
from foretime_sim.policies.families import Easy
from foretime_sim.policies.guard import Guard
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import PairedRun
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import ENDINGS, Workload

DAY_S = 86_400
CLOCK = 1_200_000_000
INTERVAL_S = 3600
PROCESSORS = 32

FEW_JOBS = replace(AccuracySettings.production(), threshold=5)
PAPER = replace(AccuracySettings.tang2010(), threshold=5)
BEYOND_REACH = replace(AccuracySettings.production(), threshold=1_000_000)


def made_workload(jobs: int = 1200, days: float = 40, seed: int = 7) -> Workload:
    """Give jobs of users who ask for far too much, some without names, all submitted apart."""
    rng = np.random.default_rng(seed)
    submit_time = np.sort(rng.choice(int(days * DAY_S), size=jobs, replace=False))
    users = rng.integers(-1, 6, size=jobs).astype(np.int32)
    projects = np.where(rng.random(jobs) < 0.1, -1, users % 3).astype(np.int32)
    habit = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 0.95, 0.3])[users]  # the last for no name
    requested = rng.choice(
        [1000, 3600, 7200, 40_000, 90_061], size=jobs, p=[0.1, 0.1, 0.4, 0.3, 0.1]
    )
    share = np.minimum(habit * rng.lognormal(0, 0.3, size=jobs), 1)
    endings = rng.choice(
        len(ENDINGS) - 1, size=jobs, p=[0.8, 0.1, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01]
    )
    return Workload(
        name="made",
        machine_processors=PROCESSORS,
        unix_start_time=CLOCK,
        job_id=np.arange(1, jobs + 1),
        submit_time=submit_time.astype(np.int64),
        processors=rng.choice([1, 2, 4, 8, 32], size=jobs, p=[0.4, 0.3, 0.2, 0.08, 0.02]),
        actual_runtime=np.maximum((requested * share).astype(np.int64), 1),
        requested_time=requested.astype(np.int64),
        endings=np.ma.MaskedArray(endings.astype(np.int8), mask=rng.random(jobs) < 0.1),
        users=Labels(users, tuple(f"user{n}" for n in range(6))),
        projects=Labels(projects, ("physics", "name with space", "größe")),
        array_ids=Labels(
            np.where(rng.random(jobs) < 0.3, rng.integers(0, 40, size=jobs), -1).astype(np.int32),
            tuple(str(n) for n in range(40)),
        ),
    )


WORKLOAD = made_workload()


def replay_of(
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT,
    rule: AccuracySettings = FEW_JOBS,
    *,
    policy: Policy | None = None,
    **more: Any,
) -> Replay:
    return Replay(
        policy=mechanism_policy(mechanism, policy or Policy(backfill=Easy(guard=Guard(6 * 3600)))),
        mechanism=mechanism,
        accuracy=AccuracySection.of_model(rule),
        publish_interval_s=INTERVAL_S,
        **more,
    )


def run(
    task: Callable[[Workload, int], PairedRun], workload: Workload = WORKLOAD
) -> tuple[ReplaySchedule, ReplaySchedule]:
    """Give the baseline and the adjusted schedule, lawful and without a job killed early."""
    pair = task(workload, 0)
    for judged in (pair.baseline, pair.adjusted):
        assert isinstance(judged, ReplaySchedule)
        ran = judged.end_time - judged.start_time
        promised = np.minimum(workload.actual_runtime, workload.requested_time)
        np.testing.assert_array_equal(ran, promised)
        assert not judged.killed.any()
        assert (judged.scheduled_time >= 1).all()
        assert (judged.scheduled_time <= workload.requested_time).all()
        check_processors(workload, judged)
    assert isinstance(pair.baseline, ReplaySchedule)
    assert isinstance(pair.adjusted, ReplaySchedule)
    return pair.baseline, pair.adjusted


@functools.cache
def plain_run() -> tuple[ReplaySchedule, ReplaySchedule]:
    """Give what `run` gives of a replay with nothing set."""
    return run(replay_of())


def check_processors(workload: Workload, judged: ReplaySchedule) -> None:
    """Starts are after submissions, and never are more processors in use than there are."""
    assert (judged.start_time >= workload.submit_time).all()
    moments = np.concatenate([judged.end_time, judged.start_time])
    change = np.concatenate([-workload.processors, workload.processors])
    in_use = np.cumsum(change[np.lexsort((change, moments))])
    assert in_use.max() <= workload.machine_processors
    assert in_use[-1] == 0


def same_schedule(one: ReplaySchedule, other: ReplaySchedule) -> None:
    np.testing.assert_array_equal(one.start_time, other.start_time)
    np.testing.assert_array_equal(one.end_time, other.end_time)
    np.testing.assert_array_equal(one.started_by, other.started_by)


def whole_minutes(seconds: int) -> int:
    return -(-seconds // 60) * 60


def expected_scheduled_times(
    workload: Workload,
    adjusted: ReplaySchedule,
    rule: AccuracySettings,
    scheme: Scheme = Scheme.COMBINED,
    last_publication: int | None = None,
) -> list[int]:
    """t_sched by the accuracy model alone: no Lua, no table, no sidecar, no accounting."""

    def request(job: int) -> JobRequest:
        written = workload.job_request(job)
        return replace(written, requested_time=whole_minutes(written.requested_time))

    begin = int(workload.submit_time[0])
    by_end = sorted(range(len(workload)), key=lambda job: int(adjusted.end_time[job]))
    model = AccuracyModel(rule)
    learned, expected = 0, []
    for job in range(len(workload)):
        submit = int(workload.submit_time[job])
        published_at = submit - (submit - begin) % INTERVAL_S
        if last_publication is not None:
            published_at = min(published_at, last_publication)
        while learned < len(by_end) and adjusted.end_time[by_end[learned]] <= published_at:
            done = by_end[learned]
            start, end = int(adjusted.start_time[done]), int(adjusted.end_time[done])
            ending = workload.ending(done) or Ending.COMPLETED
            if end - start >= workload.requested_time[done]:
                ending = Ending.TIMED_OUT
            finished = FinishedJob(request(done), start + CLOCK, end + CLOCK, end - start, ending)
            model.learn_one(finished)
            learned += 1
        model.advance(published_at + CLOCK)
        planned = model.scheduled_time(request(job), scheme)
        expected.append(min(planned, int(workload.requested_time[job])))
    return expected
