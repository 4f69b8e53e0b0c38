"""Slack-based backfilling on real logs: promises are kept, and the figures on docs/slack.md."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from foretime_sidecar.wording.durations import format_duration
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import EstimatedSchedule
from foretime_sim.engine.schedule import check_promises
from foretime_sim.policies.families import Backfill, Slack
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import InsertionOrder, Overruns, SlackJobs, SlackSettings
from foretime_sim.reference import flat as reference
from foretime_sim.scores.metrics import score
from foretime_sim.scores.start_promises import StartPromises, promised_starts

from tests.support.plans.availability_profile import AvailabilityProfile
from tests.support.workloads.real_logs import CTC, KTH, SDSC_BLUE, SDSC_SP2, Load


@pytest.mark.parametrize("log", [KTH, CTC, SDSC_SP2, SDSC_BLUE])
@pytest.mark.parametrize("order", InsertionOrder)
def test_promises_are_kept(load: Load, log: str, order: InsertionOrder) -> None:
    jobs = load(log).head(4000)
    policy = Policy(backfill=Slack(SlackSettings(insertion_order=order)))
    schedule = simulate(jobs, policy, check=True)
    check_promises(jobs, schedule)
    assert schedule.latest_start is not None
    assert schedule.first_planned_start is not None
    assert (schedule.start_time > schedule.first_planned_start).any(), "somebody used his slack"


@pytest.mark.parametrize("order", InsertionOrder)
def test_the_core_agrees_with_the_specification(load: Load, order: InsertionOrder) -> None:
    """On priorities and quotas of all kinds, with weights that no double shows exactly."""
    jobs = load(KTH).head(700)
    rng = np.random.default_rng(4)
    over = rng.random(len(jobs)) < 0.05
    told = SlackJobs(rng.random(len(jobs)), np.where(over, -np.inf, rng.random(len(jobs))))
    chosen = SlackSettings(
        insertion_order=order, time_weight=0.7, utilization_weight=0.9, priority_weight=0.3
    )
    policy = Policy(backfill=Slack(chosen))
    native = simulate(jobs, policy, slack_jobs=told)
    plain = reference.simulate(jobs, policy, slack_jobs=told, new_profile=AvailabilityProfile)
    assert np.array_equal(native.start_time, plain.start_time)
    assert native.latest_start is not None
    assert plain.latest_start is not None
    assert np.array_equal(native.latest_start, plain.latest_start)


@pytest.mark.parametrize("overruns", [Overruns.KILL_BLOCKING, Overruns.EXTEND])
def test_promises_are_kept_whoever_overruns(load: Load, overruns: Overruns) -> None:
    """Every fourth job asks for two thirds of what it takes."""
    jobs = load(KTH).head(4000)
    less = np.maximum(jobs.actual_runtime * 2 // 3, 1)
    jobs = replace(
        jobs, requested_time=np.where(np.arange(len(jobs)) % 4, jobs.requested_time, less)
    )
    policy = Policy(backfill=Slack(SlackSettings(overruns=overruns)))
    schedule = simulate(jobs, policy, check=True)
    check_promises(jobs, schedule)
    assert (schedule.end_time - schedule.start_time > jobs.requested_time).any()


CASES = {
    "easy": Policy(),
    "conservative": Policy(backfill=Backfill.CONSERVATIVE),
    **{
        f"slack, SF {factor}": Policy(backfill=Slack(SlackSettings(slack_factor=factor)))
        for factor in (1, 3, 9, 30)
    },
}


@pytest.mark.parametrize(("name", "policy"), CASES.items(), ids=list(CASES))
def test_the_figures_of_the_page_come_out(
    load: Load, repository: Path, name: str, policy: Policy
) -> None:
    jobs = load(KTH)
    schedule = simulate(jobs, policy)
    judged = EstimatedSchedule(schedule, jobs.requested_time)
    scores = score(jobs, judged)
    promised = StartPromises.of(jobs, judged, promised_starts(policy, schedule))
    told = "| – | – |"
    if promised is not None:
        assert promised.broken == 0
        assert promised.promised_wait_p50_s is not None
        assert promised.promise_margin_p50_s is not None
        times = (promised.promised_wait_p50_s, promised.promise_margin_p50_s)
        told = "".join(f"| {format_duration(round(time))} " for time in times) + "|"
    row = (
        f"| {name} | {scores.wait.mean:,.0f} | {format_duration(round(scores.wait.p99))}"
        f" | {scores.bounded_slowdown.mean:.1f} {told}"
    )
    assert row in (repository / "docs" / "slack.md").read_text(), row
