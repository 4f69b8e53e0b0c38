"""A change of a running job that has outlived its estimate leaves its estimate as it was."""

from __future__ import annotations

import pytest
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.policy import Correction, EventOrder, Policy


@pytest.mark.parametrize("correction", list(Correction))
@pytest.mark.parametrize("now", [100, 161, 470, 1_300, 5_000])
def test_a_change_of_nothing_changes_nothing(correction: Correction, now: int) -> None:
    engine = Engine(4, Policy(correction=correction))
    job = engine.submit(0, 4, 9_000, 10_000, 20)
    engine.submit(1, 4, 10, 100)
    engine.advance(now)
    engine.settle()
    before = engine.job(job)
    assert before.expected_end is not None
    assert before.expected_end > now
    engine.update(job, priority=7)
    engine.update(job, time_limit=10_000)
    engine.settle()
    after = engine.job(job)
    assert after.expected_end == before.expected_end
    assert after.corrections == before.corrections


@pytest.mark.parametrize("correction", [Correction.INCREMENTAL, Correction.DOUBLING])
@pytest.mark.parametrize("now", [161, 470, 1_300])
def test_a_new_plan_is_corrected_from_its_beginning(correction: Correction, now: int) -> None:
    changed, fresh = (Engine(4, Policy(correction=correction)) for _ in range(2))
    job = changed.submit(0, 4, 9_000, 10_000, 20)
    changed.advance(now)
    changed.update(job, scheduled_time=30)
    same = fresh.submit(0, 4, 9_000, 10_000, 30)
    fresh.advance(now)
    assert changed.job(job).expected_end == fresh.job(same).expected_end
    assert changed.job(job).corrections == fresh.job(same).corrections


@pytest.mark.parametrize("event_order", EventOrder)
@pytest.mark.parametrize("update", [True, False])
def test_slurms_rule_does_not_turn_the_clock_back(event_order: EventOrder, update: bool) -> None:
    """The last pass was at 0, from where half of the rest would be up at 500."""
    policy = Policy(backfill=Backfill.NONE, correction=Correction.SLURM, event_order=event_order)
    engine = Engine(2, policy)
    running = engine.submit(0, 1, 1000, 1000) if update else None
    head = engine.submit(0, 2, 10, 10) if update else None
    waiting = engine.submit(0 if update else 900, 1, 50, 50)
    engine.advance(900)
    if running is not None and head is not None:
        engine.update(running, scheduled_time=100)
        engine.cancel(head)
    else:
        running = engine.add_running(0, 1, 1000, 1000, scheduled_time=100)
    assert engine.job(running).expected_end == 950
    assert engine.settle().started.tolist() == [waiting]
    assert engine.now == engine.job(waiting).start_time == 900
    assert engine.job(running).corrections == 1
