"""Estimators in the shadow: what they are told, what is scored, and what breaks without harm."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.estimators.registry import ESTIMATORS
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Queue, QueuedJob, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.scoreboard import job_tracking as shadow_course
from foretime_sidecar.scoreboard import scoreboard as shadow_scoreboard
from foretime_sidecar.scoreboard import shadow_estimators
from foretime_sidecar.scoreboard.estimator_board import BoardRow
from foretime_sidecar.scoreboard.job_tracking import LATE_S
from foretime_sidecar.scoreboard.scoreboard import STATE, ShadowScoreboard
from foretime_sidecar.settings.estimator_settings import EstimatorsSettings
from foretime_sidecar.settings.settings import AccuracySection, BreakerSettings, Settings
from foretime_sidecar.settings.settings_file import parse_settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.server import Daemon
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

NOW = 20_000 * DAY_S
NAMES = ["requested", "last-two"]


class Clumsy(LastTwo):
    """Does what the test says, once it has been asked often enough."""

    on: int = 3
    what: Callable[[], Any] = staticmethod(lambda: 1)

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def predict_one(self, job: JobRequest, now: int) -> int:
        self.asked += 1
        answer: int = type(self).what() if self.asked >= self.on else super().predict_one(job, now)
        return answer


@pytest.fixture
def clumsy(monkeypatch: pytest.MonkeyPatch) -> type[Clumsy]:
    """Have the name last-two stand for a clumsy one."""
    entries = tuple(
        replace(entry, build=lambda _: Clumsy()) if entry.name == "last-two" else entry
        for entry in ESTIMATORS
    )
    monkeypatch.setattr("foretime_estimators.estimators.registry.ESTIMATORS", entries)
    return Clumsy


class Site:
    """A store, and a scoreboard as the daemon would make it at each of its starts."""

    def __init__(self, **estimators: Any) -> None:
        chosen = {"names": NAMES, "past_days": 3650, **estimators}
        self.settings = Settings(
            estimators=EstimatorsSettings(**chosen), accuracy=AccuracySection(threshold=2)
        )
        self.store = Store(":memory:")
        self.sidecar: Sidecar
        self.start()

    def start(self) -> None:
        client: Any = None
        self.sidecar = Sidecar(self.settings, client, self.store, shadow=True)
        assert self.sidecar.scoreboard is not None
        self.scoreboard: ShadowScoreboard = self.sidecar.scoreboard

    def look(self, now: int, *jobs: QueuedJob, ended: list[FinishedRecord] | None = None) -> None:
        """Look at the queue, as the daemon does; the accounting tells of what has ended."""
        self.store.add_finished(ended or [], Cursor(now))
        self.scoreboard.looked(Look(now, Queue(64, jobs)))
        while self.scoreboard.refresh():
            pass

    def figures(self, now: int) -> list[BoardRow]:
        """Give all that is scored, but for what it cost."""
        return [replace(row, cost_s=None) for row in self.scoreboard.board_as_of(now).rows]

    def row(self, name: str) -> BoardRow:
        board = self.scoreboard.board
        assert board is not None
        row = board.row(name)
        assert row is not None
        return row


def request(number: int, submitted: int, **changes: Any) -> JobRequest:
    return replace(JobRequest(str(number), "alice", "physics", 4, 3600, submitted), **changes)


def waiting(job: JobRequest) -> QueuedJob:
    return QueuedJob(job, QueueState.PENDING)


def ended(job: JobRequest, at: int, ran: int, ending: Ending = Ending.COMPLETED) -> FinishedRecord:
    return FinishedRecord(FinishedJob(job, at - ran, at, ran, ending), None, ending.name)


def days_of_jobs(days: int) -> list[FinishedRecord]:
    """Three jobs a day of half an hour, by turns a little more and less."""
    found = []
    for number in range(3 * days):
        at = NOW + number * DAY_S // 3
        found.append(ended(request(number, at), at + 2000, 1800 + 60 * (number % 2)))
    return found


def test_a_job_is_predicted_with_what_had_ended_by_its_submission() -> None:
    site = Site()
    first, second, third = (request(number, NOW + 1000 * number) for number in range(3))
    site.look(NOW + 2100, waiting(third), ended=[ended(first, NOW + 900, 400)])
    # What ends now was not known when the third came; the first alone is no mean of two.
    site.look(NOW + 2200, waiting(third), ended=[ended(second, NOW + 2150, 600)])
    fourth = request(3, NOW + 2300)
    site.look(NOW + 2400, waiting(fourth))
    site.look(NOW + 9000, ended=[ended(third, NOW + 4000, 900), ended(fourth, NOW + 8000, 1000)])
    row = site.row("last-two")
    # 3600 s for the first three, then the mean of 400 and 600.
    ratios = [400 / 3600, 600 / 3600, 900 / 3600, 500 / 1000]
    assert row.jobs == 4
    assert row.accuracy == pytest.approx(sum(ratios) / 4)
    assert row.under_predicted == pytest.approx(1 / 4)


def test_the_jobs_of_the_store_are_scored_first_and_those_in_the_queue_at_their_time() -> None:
    site = Site()
    old = request(900, NOW + DAY_S)  # waits since the second day
    site.look(NOW + 20 * DAY_S, waiting(old), ended=days_of_jobs(20))
    board = site.scoreboard.board
    assert board is not None
    assert (board.complete, board.days, board.users, board.followed) == (True, 20, 1, 1)
    assert board.late == 0
    assert {row.jobs for row in board.rows} == {60}
    site.look(NOW + 21 * DAY_S, ended=[ended(old, NOW + 20 * DAY_S + 9, 1830)])
    assert site.row("last-two").jobs == 61


def test_what_is_seen_too_late_is_not_scored() -> None:
    site = Site()
    site.look(NOW + DAY_S, ended=days_of_jobs(1))
    latest = NOW + 2 * DAY_S // 3 + 2000
    for number, before_s in ((50, LATE_S), (51, LATE_S + 1)):
        late = request(number, latest - before_s)
        site.look(NOW + DAY_S + number, ended=[ended(late, NOW + DAY_S, 60)])
    board = site.scoreboard.board_as_of(NOW + 2 * DAY_S)
    assert board.late == 1
    assert {row.jobs for row in board.rows} == {4}


def test_so_many_jobs_are_followed_and_no_more() -> None:
    site = Site(most_jobs=2)
    jobs = [request(number, NOW + number) for number in range(4)]
    site.look(NOW + 10, *map(waiting, jobs))
    site.look(NOW + 4000, ended=[ended(job, NOW + 3000, 60) for job in jobs])
    board = site.scoreboard.board_as_of(NOW + 4000)
    assert (board.too_many, board.followed) == (2, 0)
    assert {row.jobs for row in board.rows} == {2}


def test_a_job_whose_end_nobody_tells_is_given_up() -> None:
    site = Site()
    site.look(NOW + 10, waiting(request(1, NOW)))
    site.look(NOW + 89 * DAY_S)
    assert len(site.scoreboard.course) == 1
    site.look(NOW + 91 * DAY_S)
    assert len(site.scoreboard.course) == 0


def test_the_best_is_told_from_the_others_after_a_fortnight() -> None:
    site = Site()
    site.look(NOW + 13 * DAY_S, ended=days_of_jobs(13))
    assert site.row("last-two").behind_interval is None
    assert not site.row("requested").as_good
    site.look(NOW + 30 * DAY_S, ended=days_of_jobs(30))
    board = site.scoreboard.board
    assert board is not None
    assert board.rows[0].name == board.best == "last-two"
    row = site.row("requested")
    assert row.behind == pytest.approx((site.row("last-two").accuracy or 0) - (row.accuracy or 0))
    assert row.behind_interval is not None
    assert row.behind_interval.low > 0.3
    assert not row.as_good
    classes = {(one.kind, one.label): one.jobs for one in row.classes}
    assert classes["user", "up to 9 finished jobs"] == 10
    assert classes["user", "up to 99 finished jobs"] == 80
    assert sum(jobs for (kind, _), jobs in classes.items() if kind == "processors") == 90


def test_an_estimator_that_is_too_short_too_often_is_not_the_best() -> None:
    site = Site()
    site.settings = site.settings.model_copy(
        update={"breaker": BreakerSettings(most_outliving_percent=10)}
    )
    site.start()
    site.look(NOW + 30 * DAY_S, ended=days_of_jobs(30))
    board = site.scoreboard.board
    assert board is not None
    assert site.row("last-two").under_predicted == pytest.approx(0.5, abs=0.05)
    assert not site.row("last-two").eligible
    assert board.best == "combined"
    assert [row.name for row in board.rows][-1] == "last-two"


# -- what breaks -----------------------------------------------------------------------------------


def _raise() -> int:
    raise ZeroDivisionError("clumsy")


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (_raise, "ZeroDivisionError: clumsy"),
        (lambda: math.nan, "nan is no number of seconds"),
        (lambda: 0, "0 is no number of seconds"),
        (lambda: 3601, "3601 is no number of seconds"),
        (lambda: None, "None is no number of seconds"),
    ],
)
def test_an_estimator_that_fails_is_set_aside_and_the_others_go_on(
    clumsy: type[Clumsy],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: Callable[[], Any],
    why: str,
) -> None:
    monkeypatch.setattr(clumsy, "what", staticmethod(what))
    site = Site()
    with caplog.at_level(logging.WARNING):
        site.look(NOW + 5 * DAY_S, ended=days_of_jobs(5))
    lines = [record.message for record in caplog.records if "last-two" in record.message]
    assert len(lines) == 1
    assert "set aside" in lines[0]
    row = site.row("last-two")
    assert why in row.set_aside
    assert (row.jobs, row.eligible) == (2, False)
    assert site.row("requested").jobs == 15
    assert site.scoreboard.last_failure == ""
    board = site.scoreboard.board
    assert board is not None
    assert board.rows[-1].name == "last-two"
    # So it stays over a restart.
    site.scoreboard.save()
    site.start()
    site.look(NOW + 6 * DAY_S)
    assert why in site.row("last-two").set_aside
    assert site.row("requested").jobs == 15


def test_a_slow_estimator_is_set_aside(
    clumsy: type[Clumsy], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow() -> int:
        until = time.thread_time() + 0.005
        while time.thread_time() < until:
            pass
        return 60

    monkeypatch.setattr(clumsy, "what", staticmethod(slow))
    monkeypatch.setattr(shadow_estimators, "SLOWEST_S", 0.002)
    monkeypatch.setattr(shadow_estimators, "JUDGED_FROM", 10)
    site = Site()
    site.look(NOW + 10 * DAY_S, ended=days_of_jobs(10))
    assert "s a job" in site.row("last-two").set_aside
    assert site.row("last-two").jobs < 15
    assert site.row("requested").jobs == 30


def test_an_estimator_that_takes_long_at_a_time_is_set_aside(
    clumsy: type[Clumsy], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy() -> int:
        until = time.thread_time() + 0.03
        while time.thread_time() < until:
            pass
        return 60

    monkeypatch.setattr(clumsy, "what", staticmethod(busy))
    monkeypatch.setattr(shadow_estimators, "LONGEST_CALL_S", 0.02)
    site = Site()
    site.look(NOW + 10 * DAY_S, ended=days_of_jobs(10))
    assert "to predict one job" in site.row("last-two").set_aside


def test_a_state_that_json_can_not_hold_sets_its_estimator_aside(
    clumsy: type[Clumsy], monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site()
    site.look(NOW + 5 * DAY_S, ended=days_of_jobs(5))
    monkeypatch.setattr(clumsy, "state", lambda _: {"mean": math.nan})
    site.scoreboard.save()
    board = site.scoreboard.board_as_of(NOW + 5 * DAY_S)
    row = board.row("last-two")
    assert row is not None
    assert "can't be saved" in row.set_aside
    assert board.row("requested")


def damaged(store: Store, change: Callable[[dict[str, Any]], Any]) -> None:
    (text,) = store.rows("SELECT state FROM model_states WHERE name = ?", (STATE,))[0]
    state = json.loads(text)
    changed = change(state["model"])
    if changed is not None:
        state["model"] = changed
    store.write(
        "damage", "UPDATE model_states SET state = ? WHERE name = ?", [(json.dumps(state), STATE)]
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda model: model.update(scores="{"),
        lambda model: model.update(scores={"time_bounds_s": [], "days": {}}),
        lambda model: model["scores"]["days"].update({"20000": "[1"}),
        lambda model: model.update(learned={}),
        lambda model: model["learned"].update({"last-two": '{"estimator": "last-two"}'}),
        lambda model: model["learned"].update({"last-two": "null"}),
        lambda model: model.update(followed=[["1", 5, [60], 0]]),
        lambda model: model.update(followed=[7]),
        lambda model: model.update(finished_of=[]),
        lambda model: model.update(foretime="0.0.1"),
        lambda model: model.update(estimators=["last-two", "requested"]),
        lambda _: {},
        lambda _: [],
    ],
)
def test_a_damaged_state_is_logged_and_everything_begins_anew(
    change: Callable[[dict[str, Any]], Any], caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    site.look(NOW + 5 * DAY_S, waiting(request(70, NOW + 5 * DAY_S - 9)), ended=days_of_jobs(5))
    before = site.figures(NOW + 5 * DAY_S + 60)
    site.scoreboard.save()
    damaged(site.store, change)
    site.start()
    with caplog.at_level(logging.WARNING):
        site.look(NOW + 5 * DAY_S + 60, waiting(request(70, NOW + 5 * DAY_S - 9)))
    assert "learned anew from the store" in caplog.text
    assert site.figures(NOW + 5 * DAY_S + 60) == before
    assert len(site.scoreboard.course) == 1


def test_a_restart_goes_on_where_it_was(caplog: pytest.LogCaptureFixture) -> None:
    site = Site()
    jobs = days_of_jobs(20)
    pending = request(70, NOW + 10 * DAY_S - 9)
    site.look(NOW + 10 * DAY_S, waiting(pending), ended=jobs[:30])
    site.scoreboard.save()
    site.start()
    site.look(NOW + 20 * DAY_S, waiting(pending), ended=jobs[30:])
    site.look(NOW + 21 * DAY_S, ended=[ended(pending, NOW + 20 * DAY_S, 1830)])
    once = Site()
    once.look(NOW + 10 * DAY_S, waiting(pending), ended=jobs[:30])
    once.look(NOW + 20 * DAY_S, waiting(pending), ended=jobs[30:])
    once.look(NOW + 21 * DAY_S, ended=[ended(pending, NOW + 20 * DAY_S, 1830)])
    assert site.figures(NOW + 22 * DAY_S) == once.figures(NOW + 22 * DAY_S)
    assert site.row("last-two").jobs == 61
    assert not caplog.records


def test_without_room_on_the_disk_scores_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()

    def full(*_: object) -> None:
        raise StateError("can't save: database or disk is full; make room on its file system")

    monkeypatch.setattr(site.store, "transaction", full)
    site.look(NOW + 5 * DAY_S, ended=days_of_jobs(5))
    site.scoreboard.save()
    assert "disk is full" in caplog.text
    assert site.row("last-two").jobs == 15
    assert site.scoreboard.failures == 0


def test_a_state_that_is_too_large_is_not_saved_and_the_last_smaller_one_stands(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site = Site()
    jobs = days_of_jobs(20)
    site.look(NOW + 10 * DAY_S, ended=jobs[:30])
    site.scoreboard.save()
    before = saved(site)
    monkeypatch.setattr(shadow_course, "MOST_SAVED_BYTES", 10)
    site.look(NOW + 20 * DAY_S, ended=jobs[30:])
    site.scoreboard.save()
    assert "combined alone" in caplog.text
    assert "(estimators.names)" in caplog.text
    assert saved(site) == before
    # It goes on from there, and comes to the same.
    figures = site.figures(NOW + 20 * DAY_S)
    site.start()
    site.look(NOW + 20 * DAY_S)
    assert site.figures(NOW + 20 * DAY_S) == figures


def test_a_store_that_can_not_be_read_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site()

    def unreadable(*_: object) -> Iterator[None]:
        raise StateError("can't read: disk I/O error; check the file and its file system")

    with monkeypatch.context() as broken:
        broken.setattr(site.store, "times_since", unreadable)
        with pytest.raises(StateError):
            site.look(NOW + 5 * DAY_S, ended=days_of_jobs(5))
    site.look(NOW + 5 * DAY_S)
    assert site.row("last-two").jobs == 15


def test_a_long_history_is_gone_through_a_little_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shadow_scoreboard, "_AT_A_TIME_S", 0.0)
    site = Site()
    site.store.add_finished(days_of_jobs(10), Cursor(0))
    site.scoreboard.looked(Look(NOW + 10 * DAY_S, Queue(64, ())))
    assert site.scoreboard.refresh()
    board = site.scoreboard.board
    assert board is not None
    assert not board.complete
    assert not site.scoreboard.switches.all()
    while site.scoreboard.refresh():
        pass
    board = site.scoreboard.board
    assert board is not None
    assert board.complete
    assert {row.jobs for row in board.rows} == {30}


# -- which ones ------------------------------------------------------------------------------------


def test_all_of_the_registry_run_that_are_no_oracles() -> None:
    site = Site(names=[])
    names = {estimator.name for estimator in site.scoreboard.course.estimators}
    for entry in ESTIMATORS:
        written = {f"{entry.name}:{choice}" for choice in entry.choices} or {entry.example}
        if entry.oracle:
            assert not written & names
        else:
            assert written <= names


def test_one_whose_extra_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: object) -> LastTwo:
        raise InputError("this needs an extra; pip install it")

    entries = tuple(
        replace(entry, build=missing) if entry.name == "last-two" else entry for entry in ESTIMATORS
    )
    monkeypatch.setattr("foretime_estimators.estimators.registry.ESTIMATORS", entries)
    names = {estimator.name for estimator in Site(names=[]).scoreboard.course.estimators}
    assert "last-two" not in names
    assert "requested" in names


@pytest.mark.parametrize(
    ("name", "why"), [("lats-two", "did you mean 'last-two'"), ("actual", "needs the actual")]
)
def test_a_name_that_can_not_be_used_is_refused(name: str, why: str) -> None:
    text = f'[estimators]\nshadow = true\nnames = ["requested", "{name}"]\n'
    with pytest.raises(InputError, match=rf"settings:3: estimators\.names.*{why}"):
        parse_settings(text)


def test_the_one_in_use_runs_whatever_the_names() -> None:
    site = Site(names=["requested"])
    names = [estimator.name for estimator in site.scoreboard.course.estimators]
    assert names == ["requested", "combined"]


# -- switches --------------------------------------------------------------------------------------


def switches(site: Site) -> list[tuple[str, str, str | None]]:
    found = site.scoreboard.switches.all()
    return [(one.event, one.estimator, one.instead_of) for one in found]


def test_what_was_in_use_and_what_was_better_is_logged_with_the_evidence() -> None:
    site = Site()
    site.look(NOW + 13 * DAY_S, ended=days_of_jobs(13))
    assert switches(site) == [("in-use", "combined", None)]
    site.look(NOW + 20 * DAY_S, ended=days_of_jobs(20))
    assert switches(site)[1:] == [("more-accurate", "last-two", "combined")]
    line = site.scoreboard.switches.all()[-1]
    assert set(line.evidence) == {"last-two", "combined"}
    assert line.evidence["last-two"]["accuracy"] == site.row("last-two").accuracy
    # Once a week, over restarts, too.
    site.scoreboard.save()
    site.start()
    site.look(NOW + 26 * DAY_S)
    assert len(switches(site)) == 2
    site.look(NOW + 28 * DAY_S)
    assert switches(site)[2:] == [("more-accurate", "last-two", "combined")]


def test_a_switch_in_the_settings_is_logged() -> None:
    site = Site()
    site.look(NOW + 20 * DAY_S, ended=days_of_jobs(20))
    site.settings = site.settings.model_copy(update={"accuracy": AccuracySection(scheme="user")})
    site.start()
    site.look(NOW + 21 * DAY_S)
    assert ("in-use", "user", "combined") in switches(site)
    (switch,) = [one for one in site.scoreboard.switches.all() if one.instead_of == "combined"][1:]
    assert "user" in switch.evidence


def test_nothing_is_more_accurate_that_may_be_chance() -> None:
    site = Site(names=["project", "user"])
    # Both go by the same jobs, as nobody else has any.
    site.look(NOW + 30 * DAY_S, ended=days_of_jobs(30))
    assert switches(site) == [("in-use", "combined", None)]


# -- in the daemon ---------------------------------------------------------------------------------


def daemon_in(folder: Path, **estimators: Any) -> Daemon:
    settings = Settings.model_validate(
        {
            "store": {"path": str(folder / "store")},
            "table": {"path": str(folder / "table")},
            "api": {"listen": f"unix:{folder}/socket"},
            "hook": {"disable_file": str(folder / "off")},
            "estimators": estimators,
        }
    )
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    return Daemon(settings, SlurmCommands(slurm.run), clock=lambda: NOW + DAY_S)


def test_the_daemon_scores_in_a_thread_and_saves_at_its_end(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path, names=NAMES)
    daemon.sidecar.store.add_finished(days_of_jobs(1), Cursor(NOW + DAY_S))
    assert daemon.shadow is not None
    assert daemon.sidecar.scoreboard is not None
    daemon.shadow.start()
    daemon.poll_once()
    assert not daemon.shadow._looked.is_set(), "forecasts come first"
    daemon.forecasts.start()
    until = time.monotonic() + 60
    while daemon.sidecar.scoreboard.board is None or not daemon.sidecar.scoreboard.board.complete:
        assert time.monotonic() < until
        time.sleep(0.01)
    for thread in (daemon.shadow, daemon.forecasts):
        thread.end()
        assert thread.has_ended(60)
    saved = daemon.sidecar.store.rows("SELECT count(*) FROM model_states WHERE name = ?", (STATE,))
    assert saved[0][0] == 1
    daemon.sidecar.store.close()
    daemon._listener.close()


def test_scores_are_made_where_forecasts_fail(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path, names=NAMES)
    assert daemon.shadow is not None
    daemon.sidecar.waits.failures = 1
    daemon.poll_once()
    assert daemon.shadow._looked.is_set()
    daemon.sidecar.store.close()
    daemon._listener.close()


def test_a_scoreboard_that_breaks_leaves_everything_else_working(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    daemon = daemon_in(tmp_path, names=NAMES)

    def broken(*_: object) -> None:
        raise FloatingPointError("it broke")

    assert daemon.shadow is not None
    assert daemon.sidecar.scoreboard is not None
    monkeypatch.setattr(daemon.sidecar.scoreboard.course, "drop_before", broken)
    daemon.poll_once()
    assert not daemon.shadow.refresh()
    assert "scores of estimators were not refreshed" in caplog.text
    assert daemon.sidecar.scoreboard.last_failure == "FloatingPointError: it broke"
    assert daemon.health.last_error == ""
    monkeypatch.undo()
    daemon.poll_once()
    daemon.shadow.refresh()
    assert daemon.sidecar.scoreboard.last_failure == ""
    daemon.sidecar.store.close()
    daemon._listener.close()


def test_without_a_shadow_there_is_none(tmp_path: Path) -> None:
    daemon = daemon_in(tmp_path, shadow=False)
    assert daemon.shadow is None
    assert daemon.sidecar.scoreboard is None
    daemon.poll_once()
    daemon.sidecar.forget("alice", NOW)
    daemon.sidecar.store.close()
    daemon._listener.close()


# -- forgetting ------------------------------------------------------------------------------------


def saved(site: Site) -> str:
    rows = site.store.rows("SELECT state FROM model_states WHERE name = ?", (STATE,))
    return str(rows[0][0]) if rows else ""


def test_what_names_a_user_is_erased_and_all_begins_anew_without_them() -> None:
    jobs = days_of_jobs(10)
    bobs = [
        replace(
            one, job=replace(one.job, request=replace(one.job.request, job_id=f"b{at}", user="bob"))
        )
        for at, one in enumerate(jobs)
    ]
    site, without = Site(), Site()
    pending = request(99, NOW + 10 * DAY_S - 9, user="bob")
    site.look(NOW + 10 * DAY_S, waiting(pending), ended=[*jobs, *bobs])
    without.look(NOW + 10 * DAY_S, ended=jobs)
    site.scoreboard.save()
    assert "bob" in saved(site)
    shown = site.scoreboard.board
    site.sidecar.forget("bob", NOW + 10 * DAY_S)
    assert not saved(site)
    # What is still in memory is not saved any more.
    site.scoreboard.save()
    assert not saved(site)
    # The last scores, which name nobody, stand until there are new ones.
    assert site.scoreboard.board is shown
    site.look(NOW + 10 * DAY_S + 60)
    now = NOW + 11 * DAY_S
    assert site.figures(now) == without.figures(now)
    assert site.scoreboard.board_as_of(now).users == 1
    site.scoreboard.save()
    assert "alice" in saved(site)
    assert "bob" not in saved(site)
