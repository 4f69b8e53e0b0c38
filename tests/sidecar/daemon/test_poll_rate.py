"""The pause between two looks adapts to the scheduler's load, within its bounds."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.client import ControllerLoad
from foretime_sidecar.daemon.poll_rate import MOST_SHARE, Pause, PollRate, why_busy
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.settings.settings_file import parse_settings, to_toml
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = SchedulerSettings(
    poll_interval_s=60, longest_poll_interval_s=300, busy_server_threads=64, busy_cycle_s=5.0
)
BUSY = "slurmctld serves 64 requests at once"


def test_the_pause_doubles_while_busy_and_halves_after() -> None:
    rate = PollRate(SETTINGS)
    states = ["", BUSY, BUSY, BUSY, BUSY, "", "", "", ""]
    pauses = [rate.adapt(busy, 0) for busy in states]
    assert [pause.seconds for pause in pauses] == [60, 120, 240, 300, 300, 150, 75, 60, 60]
    before = "the scheduler was busy until now"
    assert [pause.reason for pause in pauses] == ["", *[BUSY] * 4, before, before, "", ""]


@pytest.mark.parametrize(
    ("load", "said"),
    [
        (None, ""),
        (ControllerLoad(63, scheduling_cycle_s=4.9), ""),
        (
            ControllerLoad(0, scheduling_cycle_s=5.0),
            "slurmctld's last scheduling cycle took 5.0 s (scheduler.busy_cycle_s = 5)",
        ),
        (
            ControllerLoad(256),
            "slurmctld serves 256 requests at once (scheduler.busy_server_threads = 64)",
        ),
    ],
)
def test_a_scheduler_is_busy_by_its_load(load: ControllerLoad | None, said: str) -> None:
    assert why_busy(load, SETTINGS) == said


def test_slow_answers_lengthen_the_pause() -> None:
    rate = PollRate(SETTINGS)
    assert rate.adapt("", 3) == Pause(60)
    said = "the scheduler took {} s to answer the last requests, which may take 5% of its time"
    assert rate.adapt("", 5.01) == Pause(101, said.format("5.0"))
    assert rate.adapt("", 1000) == Pause(300, said.format("1000.0"))
    assert rate.adapt("", 0) == Pause(150, "the scheduler was busy until now")
    assert rate.adapt(BUSY, 3) == Pause(300, BUSY)


@given(
    st.lists(st.tuples(st.sampled_from(["", BUSY]), st.floats(0, 1000)), max_size=20),
    st.integers(1, 200),
    st.integers(0, 500),
)
def test_the_pause_keeps_its_bounds_and_a_longer_one_has_a_reason(
    polls: list[tuple[str, float]], shortest: int, more: int
) -> None:
    settings = SchedulerSettings(poll_interval_s=shortest, longest_poll_interval_s=shortest + more)
    rate = PollRate(settings)
    for busy, answering_s in polls:
        pause = rate.adapt(busy, answering_s)
        assert shortest <= pause.seconds <= shortest + more
        assert pause.seconds >= min(answering_s / MOST_SHARE, shortest + more)
        assert bool(pause.reason) is (pause.seconds > shortest)


def test_bounds_that_cross_are_refused() -> None:
    with pytest.raises(InputError, match=r"f:3: scheduler.longest_poll_interval_s = 10: .* = 20"):
        parse_settings("[scheduler]\npoll_interval_s = 20\nlongest_poll_interval_s = 10", "f")


ENFORCED = (
    "[hook]\nmode = '{mode}'\n[scheduler]\nlongest_poll_interval_s = {longest}\n"
    "[accuracy]\nminimum_scheduled_time_s = {least}"
)


@pytest.mark.parametrize(
    ("longest", "least", "most"),
    [
        (120, 300, None),
        (121, 300, 120),
        (300, 660, None),
        (301, 660, 300),
        (60, 60, None),  # it never grows
        (61, 60, 60),
    ],
)
def test_under_enforce_limits_can_be_given_back_before_they_end_a_job(
    longest: int, least: int, most: int | None
) -> None:
    text = ENFORCED.format(mode="enforce", longest=longest, least=least)
    if most is None:
        assert parse_settings(text, "f").scheduler.longest_poll_interval_s == longest
    else:
        with pytest.raises(InputError, match=rf"f:4: .*_s = {longest}: .*at most {most}: two"):
            parse_settings(text, "f")
    for mode in ("observe", "advise"):
        parse_settings(ENFORCED.format(mode=mode, longest=longest, least=least), "f")


def test_a_job_that_waits_for_its_limit_outlasts_two_looks_and_the_watchdog() -> None:
    """The bound is what it is for: whatever is accepted leaves time."""
    for least in range(60, 1200, 7):
        for longest in range(60, 600, 13):
            text = ENFORCED.format(mode="enforce", longest=longest, least=least)
            try:
                settings = parse_settings(text)
            except InputError:
                continue
            if longest > settings.scheduler.poll_interval_s:
                assert 2 * longest + 60 <= least
                assert longest + 120 <= least


def test_the_defaults_can_be_enforced() -> None:
    written = to_toml(Settings()).replace('mode = "observe"', 'mode = "enforce"')
    assert parse_settings(written).hook.mode == "enforce"


def test_pbs_ends_no_job_at_its_soft_walltime() -> None:
    parse_settings(
        "[scheduler]\nkind = 'pbs'\nlongest_poll_interval_s = 450\n"
        "[hook]\nmode = 'enforce'\nmechanism = 'pbs-soft-walltime'"
    )


def test_a_silence_that_the_watchdog_takes_for_death_is_refused() -> None:
    with pytest.raises(InputError, match=r"watchdog_after_s = 900: .* at least 902, twice"):
        parse_settings("[scheduler]\nlongest_poll_interval_s = 451", "f")
