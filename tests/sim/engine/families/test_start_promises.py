"""How promised starts fare: by hand, and against the runs that keep and break them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import EstimatedSchedule
from foretime_sim.engine.schedule import ScheduleError, check_promises
from foretime_sim.policies.families import Backfill, Compression, Conservative, Slack
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import SlackJobs, SlackSettings
from foretime_sim.scores.start_promises import StartPromises, mean_promises, promised_starts

from tests.sim.engine.families.test_families import workload_of

JOBS = workload_of([(0, 4, 12, 20), (1, 4, 5, 5), (4, 4, 5, 5)], 4)
SLACK = Policy(backfill=Slack(SlackSettings(average_wait_s=10.0)))
CONSERVATIVE = Policy(backfill=Backfill.CONSERVATIVE)


def fared(policy: Policy, *thought: int, slack_jobs: SlackJobs | None = None) -> StartPromises:
    times = np.array(thought or JOBS.requested_time, dtype=np.int64)
    schedule = simulate(JOBS, policy, times, slack_jobs=slack_jobs)
    estimated = EstimatedSchedule(schedule, times)
    found = StartPromises.of(JOBS, estimated, promised_starts(policy, schedule))
    assert found is not None
    return found


def test_conservative_backfilling_promises_the_first_plan() -> None:
    """Planned for 20 and 25, the jobs start at 12 and 17; the second comes at 1, the third at 5."""
    found = fared(CONSERVATIVE)
    assert (found.promised_jobs, found.promised_waiting_jobs, found.promises_kept) == (3, 2, 3)
    assert (found.promise_margin_p50_s, found.promise_margin_p95_s) == (8, 8)
    assert (found.promised_wait_p50_s, found.promised_wait_p95_s) == (19, 20)
    assert (found.broken, found.promise_latest_by_s, found.promise_outlived_jobs) == (0, 0, 0)


def test_slack_promises_its_slack_besides() -> None:
    """SP of both is 0.95 and 1, so that slack is (1 - SP / 3) * 3 * 10: 20 s."""
    found = fared(SLACK)
    assert (found.promise_margin_p50_s, found.promise_margin_p95_s) == (28, 28)
    assert (found.promised_wait_p50_s, found.promised_wait_p95_s) == (39, 40)


def test_a_promise_is_broken_by_who_outlives_an_estimate() -> None:
    """The second was told 5; as the third comes the first is known to take longer."""
    found = fared(CONSERVATIVE, 5, 5, 5)
    assert (found.promises_kept, found.broken) == (2, 1)
    assert (found.promise_latest_by_s, found.promise_outlived_jobs) == (7, 1)


def test_nothing_is_promised_to_jobs_over_quota_or_by_others() -> None:
    over = SlackJobs(np.zeros(3), np.array([0, -np.inf, 0]))
    assert fared(SLACK, slack_jobs=over).promised_jobs == 2
    for policy in (Policy(), Policy(backfill=Conservative(Compression.SUBMISSION_ORDER))):
        schedule = simulate(JOBS, policy)
        assert promised_starts(policy, schedule) is None
        assert (
            StartPromises.of(JOBS, EstimatedSchedule(schedule, JOBS.requested_time), None) is None
        )


def test_who_starts_at_once_needs_no_promise() -> None:
    alone = workload_of([(0, 4, 12, 20)], 4)
    schedule = simulate(alone, SLACK)
    judged = EstimatedSchedule(schedule, alone.requested_time)
    found = StartPromises.of(alone, judged, promised_starts(SLACK, schedule))
    assert found is not None
    assert (found.promised_jobs, found.promised_waiting_jobs, found.promises_kept) == (1, 0, 1)
    assert found.promise_margin_p50_s is found.promised_wait_p95_s is None


def test_only_scored_jobs_count() -> None:
    schedule = simulate(JOBS, CONSERVATIVE)
    judged = EstimatedSchedule(schedule, JOBS.requested_time)
    scored = np.array([False, True, False])
    found = StartPromises.of(JOBS, judged, promised_starts(CONSERVATIVE, schedule), scored)
    assert found is not None
    assert (found.promised_jobs, found.promised_wait_p50_s) == (1, 19)


def test_repeats_are_averaged_without_those_that_promise_nothing() -> None:
    together = mean_promises([fared(CONSERVATIVE), fared(CONSERVATIVE, 5, 5, 5), None])
    assert together is not None
    assert (together.promised_jobs, together.promises_kept, together.promise_latest_by_s) == (
        3,
        2.5,
        3.5,
    )
    assert mean_promises([None, None]) is None


def test_latest_starts_can_be_checked() -> None:
    schedule = simulate(JOBS, SLACK)
    check_promises(JOBS, schedule)
    assert schedule.latest_start is not None
    late = replace(schedule, latest_start=schedule.latest_start - 29)
    with pytest.raises(ScheduleError, match="job 1 was promised 11 and started at 12"):
        check_promises(JOBS, late)
