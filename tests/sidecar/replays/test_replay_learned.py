"""Replays with the scheme learned, against plain Python, the baseline, the engine and the laws."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.jobs.endings import Evidence, evidence_of
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.replays.replay import Replay
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics, ReplaySchedule
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sim.engine.engine import simulate
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Policy
from foretime_sim.scores.comparison import PairedRun
from foretime_sim.workloads.workload import Workload

from tests.support.replay_runs import (
    CLOCK,
    FEW_JOBS,
    INTERVAL_S,
    WORKLOAD,
    made_workload,
    replay_of,
    run,
    same_schedule,
    whole_minutes,
)

JOBS = WORKLOAD.head(400)
BUSY = made_workload(300, days=1)
POLICY = Policy(backfill=Backfill.EASY_SJBF)
THRESHOLD = 3
GROUP = 5


def learned_replay(
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT,
    estimator: str = "last-two",
    *,
    rule: AccuracySettings = FEW_JOBS,
    **more: Any,
) -> Replay:
    settings = {"estimator": estimator, "threshold": THRESHOLD, "refine": False} | more
    learned = LearnedSettings.model_validate(settings)
    # Without the guard, which plans on requested times where the queue is long.
    return replay_of(mechanism, rule, policy=POLICY, scheme="learned", learned=learned)


@pytest.mark.parametrize("mechanism", Mechanism)
def test_an_estimator_that_says_the_request_changes_nothing(mechanism: Mechanism) -> None:
    baseline, adjusted = run(learned_replay(mechanism, "requested", refine=True), JOBS)
    same_schedule(baseline, adjusted)
    np.testing.assert_array_equal(adjusted.scheduled_time, JOBS.requested_time)


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize(
    "estimator", ["last-two", "similar", "regression:squared-linear-large-area"]
)
def test_the_laws_hold_and_the_hook_never_fails(mechanism: Mechanism, estimator: str) -> None:
    statistics = []
    task = learned_replay(mechanism, estimator, refine=True)

    def replay(workload: Workload, repeat: int) -> PairedRun:
        pair = task(workload, repeat)
        statistics.append(pair.statistics)
        return pair

    run(replay, BUSY)
    (found,) = statistics
    assert isinstance(found, AdjustedStatistics)
    assert found.hook is not None
    assert found.hook.errors == 0
    assert found.hook.adjusted > len(BUSY) // 4


def test_the_engine_given_the_same_times_gives_the_same_schedule() -> None:
    task = learned_replay()
    _, adjusted = run(task, JOBS)
    plain = simulate(JOBS, task.policy, adjusted.scheduled_time, check=True)
    same_schedule(adjusted, ReplaySchedule.of(JOBS, plain, adjusted.scheduled_time))


def test_waiting_jobs_are_refined_and_those_that_run_are_not() -> None:
    refined, plain = (run(learned_replay(refine=refine), BUSY)[1] for refine in (True, False))
    assert (refined.start_time != plain.start_time).any()
    again = run(learned_replay(refine=True), BUSY)[1]
    same_schedule(refined, again)


@dataclass
class Kind:
    """One user's jobs of a kind, for the plain reading below."""

    latest: JobRequest | None = None
    largest: int = 0
    singles: int = 0
    arrays: set[str] = field(default_factory=set)


def plain_scheduled_times(workload: Workload, adjusted: ReplaySchedule) -> list[int]:
    """t_sched as docs/learned.md has it: no Lua, no table, no sidecar, no accounting, no feed."""
    bounds, sizes = FEW_JOBS.class_bounds_s, LearnedSettings().size_bounds
    begin = int(workload.submit_time[0])
    by_end = sorted(range(len(workload)), key=lambda job: int(adjusted.end_time[job]))
    estimator, known = LastTwo(), 0
    kinds: dict[tuple[object, ...], dict[str, Kind]] = defaultdict(lambda: defaultdict(Kind))

    def request(job: int) -> JobRequest:
        written = workload.job_request(job)
        return replace(written, requested_time=whole_minutes(written.requested_time))

    def keys(job: JobRequest) -> list[tuple[object, ...]]:
        time = sum(bound < job.requested_time for bound in bounds)
        size = sum(bound < job.processors for bound in sizes)
        found: list[tuple[object, ...]] = []
        if job.user is not None:
            found += [
                ("user", job.user, "exactly", job.requested_time, size),
                ("user", job.user, "exactly", job.requested_time),
                ("user", job.user, time, size),
                ("user", job.user, time),
            ]
        if job.project is not None:
            found += [("project", job.project, time, size), ("project", job.project, time)]
        return [*found, ("all", time, size), ("all", time)]

    def row(key: tuple[object, ...]) -> tuple[int, int] | None:
        """A in millionths, and the largest job."""
        of_users = kinds.get(key, {})
        votes = []
        for kind in of_users.values():
            assert kind.latest is not None
            said = estimator.predict_one(kind.latest, 0)
            votes.append(said * 1_000_000 // kind.latest.requested_time)
        sizes_run = sorted((kind.largest for kind in of_users.values()), reverse=True)
        if key[0] == "user":
            counted = [kind.singles + len(kind.arrays) for kind in of_users.values()]
            return (votes[0], sizes_run[0]) if counted and counted[0] >= THRESHOLD else None
        if len(votes) < GROUP:
            return None
        covered = -(-len(votes) * 4 // 5)  # the 80th percentile
        return sorted(votes)[covered - 1], sizes_run[GROUP - 1]

    expected = []
    for job in range(len(workload)):
        submit = int(workload.submit_time[job])
        published_at = submit - (submit - begin) % INTERVAL_S
        while known < len(by_end) and adjusted.end_time[by_end[known]] <= published_at:
            done = by_end[known]
            known += 1
            start, end = int(adjusted.start_time[done]), int(adjusted.end_time[done])
            ending = workload.ending(done) or Ending.COMPLETED
            if end - start >= workload.requested_time[done]:
                ending = Ending.TIMED_OUT
            asked = request(done)
            finished = FinishedJob(asked, start + CLOCK, end + CLOCK, end - start, ending)
            estimator.learn_one(finished)
            if asked.user is None or evidence_of(finished) is not Evidence.EXACT:
                continue
            for key in keys(asked):
                kind = kinds[key][asked.user]
                kind.latest = asked
                kind.largest = max(kind.largest, asked.processors * asked.requested_time)
                if asked.array_id is None:
                    kind.singles += 1
                else:
                    kind.arrays.add(asked.array_id)
        asked, planned = request(job), None
        for key in keys(asked):
            found = row(key)
            if found and asked.processors * asked.requested_time <= found[1]:
                planned = max(found[0], 50_000) * asked.requested_time
                break
        seconds = asked.requested_time
        if planned is not None:
            seconds = min(seconds, max(300, -(-planned // 60_000_000) * 60))
        expected.append(min(seconds, int(workload.requested_time[job])))
    return expected


@pytest.mark.parametrize("lua_version", ["5.1", "5.4"])
def test_every_scheduled_time_is_the_plain_ones(lua_version: str) -> None:
    task = replace(learned_replay(), lua_version=lua_version)
    _, adjusted = run(task, JOBS)
    assert adjusted.scheduled_time.tolist() == plain_scheduled_times(JOBS, adjusted)
    assert (adjusted.scheduled_time < JOBS.requested_time).mean() > 0.25, "or it says nothing"


@pytest.mark.parametrize("jobs", [1, 50, 200])
def test_the_jobs_of_a_log_do_not_know_how_it_goes_on(jobs: int) -> None:
    _, whole = run(learned_replay(refine=True), BUSY)
    _, first = run(learned_replay(refine=True), BUSY.head(jobs))
    np.testing.assert_array_equal(first.scheduled_time, whole.scheduled_time[:jobs])
