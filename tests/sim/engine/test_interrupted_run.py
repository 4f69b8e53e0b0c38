"""A run in the core ends on Ctrl-C, however long it would take."""

from __future__ import annotations

import pytest
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.policy import Correction, EventOrder, Policy

LONG_S = 30_000_000


@pytest.mark.parametrize("event_order", EventOrder)
def test_a_signal_stops_a_run_between_two_events(
    event_order: EventOrder, soon_interrupted: type[Exception]
) -> None:
    # Its estimate expires every second: tens of millions of events.
    engine = Engine(2, Policy(correction=Correction.PBS, event_order=event_order))
    running = engine.submit(0, 2, LONG_S, LONG_S, scheduled_time=1)
    waiting = engine.submit(0, 1, 5, 5)
    with pytest.raises(soon_interrupted):
        engine.finish()
    assert 0 < engine.now < LONG_S
    assert engine.job(running).state == "running"
    engine.update(running, time_limit=1)  # and it can go on
    stopped_at = engine.now
    assert engine.finish().finished.tolist() == [running, waiting]
    assert engine.job(waiting).start_time == stopped_at
