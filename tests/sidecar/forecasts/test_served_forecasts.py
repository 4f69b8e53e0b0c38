"""Forecasts as they were served: which are kept, what came of them, how well they have done."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.forecasts.forecast_log import Served, ServedForecasts
from foretime_sidecar.forecasts.forecast_reliability import reliability
from foretime_sidecar.queue.queue_events import END, START, SUBMISSION, Event
from foretime_sidecar.store.store import Store
from foretime_sim.waits.forecaster import LEVELS
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1_700_000_000
DAY_S = 86_400


def request(job_id: str, user: str = "ann", submit_time: int = NOW) -> JobRequest:
    return JobRequest(job_id, user, "physics", 8, 3600, submit_time, "main")


def waits(scale_s: int = 1000, starts_now: float = 0.0) -> Waits:
    """A wait that is uniform from nothing to a number of seconds."""
    return Waits(tuple(round(level * scale_s) for level in LEVELS), starts_now)


def started(job: JobRequest, at: int) -> Event:
    return Event(at, START, job)


def withdrawn(job: JobRequest, at: int) -> Event:
    return Event(at, END, job, FinishedJob(job, None, at, 0, Ending.NEVER_STARTED))


class World:
    """A store, and what keeps forecasts in it."""

    def __init__(self) -> None:
        self.store = Store(":memory:")
        self.again()

    def again(self) -> None:
        """As after a restart."""
        self.served = ServedForecasts(self.store, threading.RLock(), 5)

    def kept(self, columns: str) -> list[tuple[object, ...]]:
        return self.store.rows(f"SELECT {columns} FROM served_forecasts ORDER BY seq")


@pytest.fixture
def world() -> World:
    return World()


def test_the_first_forecast_and_one_for_each_doubling_of_the_wait_are_kept(world: World) -> None:
    for minute in range(0, 100, 1):
        world.served.keep(NOW + 60 * minute + 5, [(request("1"), waits())])
    made = [(kind, made_at) for kind, made_at in world.kept("kind, made_at")]
    assert made == [
        ("submission", NOW + 5), ("later", NOW + 605), ("later", NOW + 1205), ("later", NOW + 2405),
        ("later", NOW + 4805),
    ]  # fmt: skip
    # One that had waited before we came is none of a submission.
    world.served.keep(NOW + 700, [(request("2"), waits())])
    assert world.kept("kind, job_id")[-1] == ("later", "2")


def test_a_forecast_is_kept_with_what_came_of_it(world: World) -> None:
    world.served.keep(NOW + 40, [(request("1"), waits(1000, 0.25))])
    assert world.served.waits_for(started(request("1"), NOW + 440))
    world.served.learn([started(request("1"), NOW + 440)])
    (row,) = world.kept(
        "outcome, waited_s, held_from, pinball_s, wait_s, likely_wait_s, starts_now"
    )
    outcome, waited_s, held_from, pinball_s, wait_s, likely_s, now = row
    assert (outcome, waited_s, wait_s, likely_s, now) == ("started", 400, None, 500, 0.25)
    assert held_from == LEVELS.index(0.4)
    # The pinball loss integrated over the levels is half the CRPS: for a uniform distribution on
    # (0, 1) and an outcome x that is (x^3 + (1 - x)^3) / 3.
    assert pinball_s == pytest.approx(1000 * (0.4**3 + 0.6**3) / 3 / 2, rel=0.03)
    # It is over.
    assert not world.served.waits_for(started(request("1"), NOW + 500))


def test_an_array_requeued_job_or_number_used_again_is_another(world: World) -> None:
    world.served.keep(NOW, [(request("1"), waits())])
    world.served.learn([started(request("1", submit_time=NOW + 50), NOW + 60)])
    assert world.kept("outcome") == [(None,)]


def test_a_start_while_nobody_looked_is_scored_after_a_restart(world: World) -> None:
    world.served.keep(NOW, [(request("1"), waits())])
    world.again()
    world.served.keep(NOW + 60, [(request("2", submit_time=NOW + 60), waits())])
    world.served.learn([started(request("1"), NOW + 100)])
    assert world.kept("outcome") == [("started",), (None,)]


def test_a_withdrawn_job_is_no_start(world: World) -> None:
    world.served.keep(NOW, [(request("1"), waits())])
    world.served.learn([withdrawn(request("1"), NOW + 100)])
    assert world.kept("outcome, waited_s, pinball_s") == [("withdrawn", 100, None)]


def test_answers_to_questions_are_kept_so_many_of_a_job(world: World) -> None:
    for minute in range(30):
        world.served.add([Served("asked", NOW + minute, request("1"), waits())])
    assert len(world.kept("seq")) == 20
    world.served.learn([started(request("1"), NOW + 100)])
    assert set(world.kept("outcome")) == {("started",)}


def test_a_what_if_is_linked_to_the_job_that_is_then_submitted(world: World) -> None:
    what_if = request("", submit_time=NOW)
    others = [
        JobRequest("", "bob", "physics", 8, 3600, NOW, "main"),
        JobRequest("", "ann", "physics", 16, 3600, NOW, "main"),
        JobRequest("", "ann", "physics", 8, 7200, NOW, "main"),
        JobRequest("", "ann", "chemistry", 8, 3600, NOW, "main"),
        JobRequest("", "ann", "physics", 8, 3600, NOW, "debug"),
    ]
    world.served.add([Served("what-if", NOW, each, waits()) for each in (*others, what_if)])
    world.served.add([Served("what-if", NOW - 10, what_if, waits())])
    job = request("7", submit_time=NOW + 100)
    world.served.learn([Event(NOW + 100, SUBMISSION, job), started(job, NOW + 350)])
    rows = world.kept("made_at, job_id, submit_time, waited_s, outcome")
    # The latest one that is as asked, and its wait counts from the submission.
    assert rows[5] == (NOW, "7", NOW + 100, 250, "started")
    assert {row[1] for row in (*rows[:5], rows[6])} == {None}


def test_a_what_if_of_long_ago_or_without_names_is_not_missed_by_them(world: World) -> None:
    unnamed = JobRequest("", "ann", None, 8, 3600, NOW)
    world.served.add([Served("what-if", NOW, unnamed, waits())])
    late = request("8", submit_time=NOW + 3601)
    world.served.learn([Event(NOW + 3601, SUBMISSION, late)])
    assert world.kept("job_id") == [(None,)]
    # It left slurm_partition and account open.
    job = request("7", submit_time=NOW + 100)
    world.served.learn([Event(NOW + 100, SUBMISSION, job)])
    assert world.kept("job_id, submit_time") == [("7", NOW + 100)]


def many(world: World, users: int, of_each: int, waited_s: list[int], made_at: int = NOW) -> None:
    """Keep forecasts that are uniform from 0 to 1000 s, and let their jobs start."""
    number = 0
    for user in range(users):
        for _ in range(of_each):
            job = request(f"{made_at}.{number}", f"u{user}", made_at)
            world.served.keep(made_at, [(job, waits())])
            world.served.learn([started(job, made_at + waited_s[number % len(waited_s)])])
            number += 1


def test_each_level_holds_as_often_as_the_waits_say(world: World) -> None:
    # A tenth of the waits each of 50, 150, ..., 950 s: each level holds as often as it says.
    many(world, 5, 10, list(range(50, 1000, 100)))
    done = reliability(world.store, NOW + DAY_S, 30, 5)
    assert (done.scored, done.users, done.levels) == (50, 5, LEVELS)
    shares = dict(zip(done.levels, done.share_within, strict=True))
    for level in (0.1, 0.2, 0.5, 0.9, 0.99):
        assert shares[level] == pytest.approx(round(level, 1))
    assert done.median_error_s == 250
    assert done.brier_now == pytest.approx(0.1)  # 50 s is at once, and was said to be unlikely
    assert done.pinball_s == pytest.approx(1000 / 12, rel=0.05)
    (day,) = done.by_day
    assert (day.day % DAY_S, day.scored, day.within_95) == (0, 50, 1.0)


def test_a_bound_is_missed_as_soon_as_it_is_waited_past(world: World) -> None:
    many(world, 5, 10, [500])
    world.served.keep(NOW, [(request("waits"), waits())])
    early = reliability(world.store, NOW + 700, 30, 5)
    shares = dict(zip(early.levels, early.share_within, strict=True))
    # 0.6 is passed already, 0.75 may hold yet.
    assert (shares[0.6], shares[0.75]) == (50 / 51, 1.0)
    world.served.learn([withdrawn(request("waits"), NOW + 800)])
    later = reliability(world.store, NOW + DAY_S, 30, 5)
    shares = dict(zip(later.levels, later.share_within, strict=True))
    assert (shares[0.75], shares[0.8]) == (50 / 51, 1.0)
    assert later.scored == 50


def test_figures_of_too_few_users_are_not_given(world: World) -> None:
    many(world, 4, 10, [500])
    few = reliability(world.store, NOW + DAY_S, 30, 5)
    assert (few.scored, few.users, few.brier_now, few.by_day) == (0, 0, None, ())
    assert set(few.share_within) == {None}
    # Five users over two days, four on one of them.
    many(world, 5, 1, [500], NOW + DAY_S)
    both = reliability(world.store, NOW + 2 * DAY_S, 30, 5)
    assert both.scored == 45
    assert [day.scored for day in both.by_day] == [5]
    # Of those made in the last day only.
    assert reliability(world.store, NOW + 2 * DAY_S, 1, 5).scored == 5


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 1100), st.booleans()), min_size=5, max_size=40))
def test_shares_are_counted_as_one_would_count_them(outcomes: list[tuple[int, bool]]) -> None:
    world = World()
    for number, (waited_s, starts) in enumerate(outcomes):
        job = request(str(number), f"u{number}")
        world.served.keep(NOW, [(job, waits())])
        event = started if starts else withdrawn
        world.served.learn([event(job, NOW + waited_s)])
    done = reliability(world.store, NOW + DAY_S, 30, 1)
    begun = [waited_s for waited_s, starts in outcomes if starts]
    assert done.scored == len(begun)
    bounds = waits().wait_s
    for bound, share in zip(bounds, done.share_within, strict=True):
        held = sum(waited_s <= bound for waited_s in begun)
        missed = sum(waited_s > bound for waited_s, _ in outcomes)
        if begun:
            assert share == pytest.approx(held / (held + missed))
    world.store.close()


def test_old_forecasts_are_deleted(world: World) -> None:
    many(world, 1, 3, [500])
    world.store.forget_forecasts_before(NOW)
    assert len(world.kept("seq")) == 3
    world.store.forget_forecasts_before(NOW + 1)
    assert world.kept("seq") == []


def test_reading_apart_needs_no_lock(tmp_path: Path) -> None:
    store = Store(tmp_path / "store #1?")
    served = ServedForecasts(store, threading.RLock(), 5)
    served.keep(NOW, [(request("1"), waits())])
    assert store.rows_apart("SELECT count(*) FROM served_forecasts") == [(1,)]
    with pytest.raises(StateError, match="can't read"):
        store.rows_apart("DELETE FROM served_forecasts")
    assert np.array(store.rows("SELECT count(*) FROM served_forecasts")).item() == 1
    store.close()
