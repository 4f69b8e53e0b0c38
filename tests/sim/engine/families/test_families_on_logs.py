"""The families on real logs: the published figure, and the core is the reference job for job."""

from __future__ import annotations

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.schedule import Schedule, check_promises
from foretime_sim.policies.families import Backfill, Candidates, Compression, Conservative, Easy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.scores.metrics import bounded_slowdown
from foretime_sim.workloads.workload import Workload

from tests.support.plans.availability_profile import AvailabilityProfile
from tests.support.workloads.real_logs import KTH, LOGS, Load

pytestmark = pytest.mark.traces


def conservative(compression: Compression, event_order: EventOrder) -> Policy:
    return Policy(backfill=Conservative(compression), event_order=event_order)


def assert_same(one: Schedule, other: Schedule) -> None:
    for name in ("start_time", "end_time", "started_by", "corrections", "killed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    if one.first_planned_start is None or other.first_planned_start is None:
        assert one.first_planned_start is other.first_planned_start
    else:
        np.testing.assert_array_equal(one.first_planned_start, other.first_planned_start)
    assert one.counters == other.counters


@pytest.mark.parametrize(
    ("policy", "wait_s", "avebsld"),
    [
        # What two other simulators print.
        (conservative(Compression.ONE_BY_ONE, EventOrder.PER_EVENT), 7_313.68, 89.04),
        # Ours, so that a change shows.
        (conservative(Compression.ONE_BY_ONE, EventOrder.PER_TIMESTEP), 7_319.37, 89.01),
        (conservative(Compression.RESERVATION_ORDER, EventOrder.PER_TIMESTEP), 7_199.51, 89.14),
        (conservative(Compression.SUBMISSION_ORDER, EventOrder.PER_TIMESTEP), 7_939.61, 101.87),
        (Policy(backfill=Backfill.PLANNING), 7_939.61, 101.87),
        (Policy(backfill=Backfill.PLANNING, order=Order.SJF), 4_570.30, 45.40),
        (Policy(backfill=Easy(depth=10)), 7_867.48, 99.12),
        (Policy(backfill=Easy(depth=100)), 7_939.61, 101.87),
        (Policy(backfill=Backfill.FIRST_FIT), 5_721.71, 71.49),
    ],
    ids=lambda value: (
        f"{value.backfill}-{value.backfill.shown.get('depth', 1)}"
        if isinstance(value, Policy)
        else None
    ),
)
def test_kth_gives_the_figures_of_two_other_simulators(
    load: Load, policy: Policy, wait_s: float, avebsld: float
) -> None:
    jobs = load(KTH)
    schedule = simulate(jobs, policy, check=True)
    wait = schedule.start_time - jobs.submit_time
    slowdown = bounded_slowdown(wait, jobs.actual_runtime)
    assert (round(float(wait.mean()), 2), round(float(slowdown.mean()), 2)) == (wait_s, avebsld)
    if policy.backfill in (Conservative(), Conservative(Compression.ONE_BY_ONE)):
        check_promises(jobs, schedule)


@pytest.mark.parametrize(
    ("policy", "head"),
    [
        (conservative(Compression.RESERVATION_ORDER, EventOrder.PER_TIMESTEP), None),
        (conservative(Compression.ONE_BY_ONE, EventOrder.PER_EVENT), 8_000),
        (Policy(backfill=Easy(depth=4)), 12_000),
    ],
    ids=["conservative", "published", "depth-4"],
)
def test_the_core_is_the_reference_on_kth(load: Load, policy: Policy, head: int | None) -> None:
    jobs = load(KTH).head(head or len(load(KTH)))
    plain = reference.simulate(jobs, policy, new_profile=AvailabilityProfile)
    assert_same(simulate(jobs, policy), plain)


def underestimates(jobs: Workload) -> np.ndarray:
    """Scheduled times that many jobs outlive."""
    return (jobs.actual_runtime + jobs.requested_time) // 4


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize(
    "policy",
    [
        Policy(backfill=Backfill.CONSERVATIVE, correction=Correction.INCREMENTAL),
        Policy(backfill=Conservative(Compression.ONE_BY_ONE), correction=Correction.SLURM),
        Policy(backfill=Backfill.PLANNING, order=Order.WFP, correction=Correction.PBS),
        Policy(
            backfill=Easy(depth=3), correction=Correction.SLURM, event_order=EventOrder.PER_EVENT
        ),
        Policy(backfill=Easy(Candidates.SJBF, depth=2), correction=Correction.DOUBLING),
        Policy(backfill=Backfill.FIRST_FIT, order=Order.XF),
    ],
    ids=lambda policy: f"{policy.backfill}-{policy.correction}",
)
def test_the_core_is_the_reference_on_a_slice(load: Load, log: str, policy: Policy) -> None:
    whole = load(log)
    middle = len(whole) // 2
    jobs = whole.take(np.arange(middle, middle + 250))
    scheduled = underestimates(jobs)
    assert_same(simulate(jobs, policy, scheduled, check=True),
                reference.simulate(jobs, policy, scheduled))  # fmt: skip
