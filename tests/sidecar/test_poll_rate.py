"""The pause between two looks adapts to the scheduler's load, within its bounds."""

from __future__ import annotations

import pytest
from foretime_estimators.errors import InputError
from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.poll_rate import MOST_SHARE, PollRate
from foretime_sidecar.settings import SchedulerSettings
from foretime_sidecar.settings_file import parse_settings
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = SchedulerSettings(
    poll_interval_s=60, longest_poll_interval_s=300, busy_server_threads=64, busy_cycle_s=5.0
)
IDLE, BUSY = ControllerLoad(3), ControllerLoad(64)


def test_the_pause_doubles_while_busy_and_halves_after() -> None:
    rate = PollRate(SETTINGS)
    loads = [IDLE, BUSY, BUSY, BUSY, BUSY, IDLE, IDLE, IDLE, IDLE]
    assert [rate.adapt(load, 0) for load in loads] == [60, 120, 240, 300, 300, 150, 75, 60, 60]


@pytest.mark.parametrize(
    ("load", "pause_s"),
    [
        (None, 60),
        (ControllerLoad(63, scheduling_cycle_s=4.9), 60),
        (ControllerLoad(0, scheduling_cycle_s=5.0), 120),
        (ControllerLoad(256), 120),
    ],
)
def test_what_busy_means(load: ControllerLoad | None, pause_s: int) -> None:
    assert PollRate(SETTINGS).adapt(load, 0) == pause_s


def test_slow_answers_lengthen_the_pause() -> None:
    rate = PollRate(SETTINGS)
    assert rate.adapt(IDLE, 3) == 60
    assert rate.adapt(IDLE, 5.01) == 101
    assert rate.adapt(IDLE, 1000) == 300
    assert rate.adapt(IDLE, 0) == 150


@given(
    st.lists(st.tuples(st.sampled_from([None, IDLE, BUSY]), st.floats(0, 1000)), max_size=20),
    st.integers(1, 200),
    st.integers(0, 500),
)
def test_the_pause_keeps_its_bounds(
    polls: list[tuple[ControllerLoad | None, float]], shortest: int, more: int
) -> None:
    settings = SchedulerSettings(poll_interval_s=shortest, longest_poll_interval_s=shortest + more)
    rate = PollRate(settings)
    for load, took_s in polls:
        pause_s = rate.adapt(load, took_s)
        assert shortest <= pause_s <= shortest + more
        assert pause_s >= min(took_s / MOST_SHARE, shortest + more)


def test_bounds_that_cross_are_refused() -> None:
    with pytest.raises(InputError, match=r"f:3: scheduler.longest_poll_interval_s = 10: .* = 20"):
        parse_settings("[scheduler]\npoll_interval_s = 20\nlongest_poll_interval_s = 10", "f")
