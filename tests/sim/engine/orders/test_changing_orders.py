"""Orders that change with time (XF, WFP) on queues of several blocks, whose first is kept in mind.

Many jobs are given scores that are the same or nearly so: a job on 8 processors that is planned for
twice as long as one on a single processor has the same WFP score, but for its rounding.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.families import Backfill, Candidates, Easy
from foretime_sim.policies.guard import Guard, GuardBy
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy
from foretime_sim.reference import flat as reference
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

MACHINE = 64
CHANGING = [Order.XF, Order.WFP]
families = st.sampled_from(
    [
        Backfill.NONE,
        Backfill.FIRST_FIT,
        Easy(),
        Easy(Candidates.SJBF),
        Easy(Candidates.SJBF, ageing_s=100),
        Easy(depth=3),
        Easy(guard=Guard(50)),
        Easy(Candidates.WSPT, guard=Guard(50)),
        Easy(guard=Guard(30, GuardBy.PLAIN_EASY_GRADUAL, 0.3)),
    ]
)
policies = st.builds(
    Policy,
    order=st.sampled_from(CHANGING),
    backfill=families,
    correction=st.sampled_from([Correction.REQUESTED, Correction.DOUBLING, Correction.SLURM]),
    event_order=st.sampled_from(EventOrder),
)


def crowd(seed: int, jobs: int, gap_s: int) -> tuple[Workload, np.ndarray]:
    """Give jobs that mostly wait, and scheduled times; few kinds of them, so that many tie."""
    rng = np.random.default_rng(seed)
    processors = rng.choice([1, 8, 27, 64, 2, 5], jobs)
    unit = rng.choice([7, 60, 61, 600], jobs)
    scheduled = np.cbrt(processors).round().astype(np.int64) * unit
    return (
        Workload(
            name="crowd",
            machine_processors=MACHINE,
            unix_start_time=None,
            job_id=np.arange(jobs),
            submit_time=np.sort(rng.integers(0, gap_s + 1, jobs)),
            processors=processors,
            actual_runtime=1 + (rng.random(jobs) * 1.2 * scheduled).astype(np.int64),
            requested_time=scheduled * rng.integers(1, 4, jobs),
        ),
        scheduled,
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    jobs=st.integers(70, 160),
    gap_s=st.sampled_from([0, 3, 100, 5_000]),
    policy=policies,
)
@settings(max_examples=60, deadline=None)
def test_a_deep_queue_starts_as_in_the_reference(
    seed: int, jobs: int, gap_s: int, policy: Policy
) -> None:
    workload, scheduled = crowd(seed, jobs, gap_s)
    native = simulate(workload, policy, scheduled, check=True)
    plain = reference.simulate(workload, policy, scheduled)
    np.testing.assert_array_equal(native.start_time, plain.start_time)
    np.testing.assert_array_equal(native.started_by, plain.started_by)
    assert native.counters == plain.counters


@pytest.mark.parametrize("order", CHANGING)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15, deadline=None)
def test_jobs_start_from_the_front_of_a_queue_that_changes(order: Order, seed: int) -> None:
    """Without backfilling, whatever is changed or cancelled while it waits."""
    rng = np.random.default_rng(seed)
    workload, scheduled = crowd(seed, 150, 3_000)
    engine = Engine(MACHINE, Policy(order, Backfill.NONE))
    rows = zip(
        workload.submit_time.tolist(),
        workload.processors.tolist(),
        workload.actual_runtime.tolist(),
        workload.requested_time.tolist(),
        scheduled.tolist(),
        strict=True,
    )
    for submit, processors, actual, requested, time in rows:
        engine.submit(submit, processors, actual, requested, time)
    begun = 0
    for now in np.sort(rng.integers(0, 20_000, 200)).tolist():
        engine.advance(now)
        for job in rng.permutation(engine.queue())[:3].tolist():
            if rng.random() < 0.1:
                engine.cancel(job)
            elif rng.random() < 0.5:
                engine.update(job, scheduled_time=int(rng.choice([7, 60, 61, 600, 1_800])))
        order_before = engine.queue().tolist()
        free, passes = engine.free_processors, engine.counters.passes
        engine.settle()
        left = set(engine.queue().tolist())
        started = [job for job in order_before if job not in left]
        assert started == order_before[: len(started)]
        begun += len(started)
        free -= int(workload.processors[started].sum())
        assert free >= 0
        if left and engine.counters.passes > passes:
            assert workload.processors[order_before[len(started)]] > free
    assert begun > 0


@pytest.mark.parametrize("backfill", [Backfill.EASY, Backfill.FIRST_FIT])
@pytest.mark.parametrize("order", CHANGING)
def test_a_thousand_jobs_that_fit_at_once_start_in_order(order: Order, backfill: Easy) -> None:
    """More than a walk by score gives without a heap, from the front and behind a wide head job."""
    workload, scheduled = crowd(3, 1_000, 50)
    wide = replace(
        workload,
        machine_processors=4_000,
        processors=np.where(np.arange(1_000) == 0, 4_000, workload.processors),
        submit_time=np.where(np.arange(1_000) < 2, 0, 10 + workload.submit_time),
    )
    policy = Policy(order, backfill)
    native = simulate(wide, policy, scheduled)
    plain = reference.simulate(wide, policy, scheduled)
    np.testing.assert_array_equal(native.start_time, plain.start_time)
    np.testing.assert_array_equal(native.started_by, plain.started_by)
