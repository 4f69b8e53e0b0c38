"""``/v1/operators`` and its page: who may ask, what a fresh daemon says, and when it warns."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import StateError
from foretime_sidecar.clients.client import Cursor
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import watch_limits
from foretime_sidecar.forecasts.forecast_reliability import Reliability
from foretime_sidecar.plain_beside.account import account_of
from foretime_sidecar.safety.ab_report import compare
from foretime_sidecar.safety.heartbeat import beat, heartbeat_path
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.plain_starts import JudgedJob
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.api.verdicts import Line, Verdict
from foretime_sidecar.web.api.work_lines import ab_line, brought_line
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS

NOW, DAY = 1_700_000_000, 86_400
NOBODY, ROOT = Peer(10, 65534, 65534), Peer(12, 0, 0)
BAD = {Verdict.LOOK, Verdict.ACT}
_DECIDE = "INSERT INTO job_decisions VALUES (NULL, ?, ?, ?, ?, 'p', 'q', 1, ?, 3600, ?, ?, 1)"


class World:
    """A daemon on a mock Slurm, which looks when told to."""

    def __init__(self, folder: Path, **sections: dict[str, Any]) -> None:
        paths = {
            "table": {"path": str(folder / "table")},
            "hook": {"disable_file": str(folder / "off")} | sections.pop("hook", {}),
        }
        self.settings = Settings.model_validate(paths | sections)
        self.slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        self.store = Store(":memory:")
        client = SlurmCommands(self.slurm.run)
        self.sidecar = Sidecar(
            self.settings, client, self.store, forecasts=True, shadow=True, beside=True
        )
        self.health = Health(NOW)
        self.now = NOW
        app = create_app(self.sidecar, self.health, lambda: self.now)
        self.app = app
        self.client = TestClient(app, base_url="http://localhost", raise_server_exceptions=False)

    def look(self) -> World:
        self.slurm.advance(self.now)
        self.sidecar.look(self.now)
        beat(heartbeat_path(self.settings.table))
        self.sidecar.poll(self.now)
        self.sidecar.waits.refresh()
        return self

    def get(self, path: str, peer: Peer | None = ROOT) -> Any:
        identity = None if peer is None else Identity.of_peer(peer)
        self.app.dependency_overrides[caller_of] = lambda: Caller(identity)
        return self.client.get(path)

    def answer(self) -> Any:
        reply = self.get("/v1/operators")
        assert reply.status_code == 200, reply.text
        return reply.json()

    def lines(self) -> dict[str, dict[str, str]]:
        return {line["name"]: line for one in self.answer()["groups"] for line in one["lines"]}

    def verdict(self, name: str) -> str:
        return self.lines()[name]["verdict"]

    def decide(self, action: str, reason: str, jobs: int) -> None:
        (first,) = self.store.rows("SELECT coalesce(max(seq), 0) FROM job_decisions")[0]
        rows = [
            (self.now, f"x{number}", NOW, f"u{number % 5}", action, 600, reason)
            for number in range(first, first + jobs)
        ]
        self.store.write("test", _DECIDE, rows)
        self.sidecar.oversight.record.forget()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


# -- who may ask -----------------------------------------------------------------------------------


@pytest.mark.parametrize("peer", [None, NOBODY])
def test_it_is_for_operators_alone(world: World, peer: Peer | None) -> None:
    reply = world.look().get("/v1/operators", peer)
    assert reply.status_code == 403
    assert reply.json()["error"]["what"].startswith("this is for administrators")
    page = world.get("/operators", peer)
    assert page.status_code == 403
    assert "This is for administrators" in page.text
    assert 'class="lines"' not in page.text


def test_operators_by_the_settings_see_it(tmp_path: Path) -> None:
    world = World(tmp_path).look()
    world.app.dependency_overrides[caller_of] = lambda: Caller(
        Identity.of_peer(NOBODY), operator=True
    )
    assert world.client.get("/v1/operators").status_code == 200
    assert world.client.get("/operators").status_code == 200


def test_a_link_from_elsewhere_leads_to_the_page_and_to_nothing_else(world: World) -> None:
    world.look().get("/operators")
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    link = followed | {"Sec-Fetch-Dest": "document"}
    assert world.client.get("/operators", headers=link).status_code == 200
    assert world.client.get("/v1/operators", headers=link).status_code == 403
    framed = followed | {"Sec-Fetch-Dest": "iframe"}
    assert world.client.get("/operators", headers=framed).status_code == 403
    assert world.health.refused[403] == 2


# -- a fresh daemon --------------------------------------------------------------------------------


def test_nothing_is_wrong_before_the_first_look(tmp_path: Path) -> None:
    for mode in ("observe", "enforce"):
        world = World(tmp_path, hook={"mode": mode})
        bad = {name: line for name, line in world.lines().items() if line["verdict"] in BAD}
        assert bad == {}
        assert "never" not in str(world.answer()).lower()
        assert world.answer()["helps"] == ("off" if mode == "observe" else "early")


def test_nothing_is_wrong_after_the_first_look(world: World) -> None:
    answer = world.look().answer()
    assert {line["name"] for group in answer["groups"] for line in group["lines"]} >= {
        *("mode", "breaker", "planned", "head_slip", "hook", "ab", "forecasts", "start_bounds"),
        *("estimators", "poll", "table", "forecasts_age", "sign_of_life", "event", "requests"),
        *("scheduler", "state", "forecasting", "beside"),
    }
    assert answer["verdict"] not in BAD, world.lines()
    assert world.verdict("mode") == Verdict.OFF
    assert world.verdict("poll") == world.verdict("table") == Verdict.WELL


# -- when it warns ---------------------------------------------------------------------------------


def test_each_age_is_judged_at_the_limit_that_the_metrics_tell(world: World) -> None:
    world.look()
    limits = watch_limits(world.sidecar)
    for name, of, late in (
        ("poll", "poll_age_seconds", Verdict.ACT),
        ("table", "table_age_seconds", Verdict.LOOK),
        ("forecasts_age", "forecasts_age_seconds", Verdict.LOOK),
    ):
        world.now = NOW + int(limits[of])
        assert world.verdict(name) == Verdict.WELL
        world.now += 1
        line = world.lines()[name]
        assert (line["verdict"], bool(line["remedy"])) == (late, True)
    world.now = NOW + world.settings.table.valid_for_s + 1
    assert world.verdict("table") == Verdict.ACT
    assert "leaves all jobs alone" in world.lines()["table"]["text"]


def test_health_and_the_page_agree_on_when_polls_fail(world: World) -> None:
    world.look()
    limit = int(watch_limits(world.sidecar)["poll_age_seconds"])
    for age, status, verdict in ((limit, 200, Verdict.WELL), (limit + 1, 503, Verdict.ACT)):
        world.now = NOW + age
        assert world.get("/healthz").status_code == status
        assert world.verdict("poll") == verdict


def test_a_first_poll_that_fails_is_told_at_once(world: World) -> None:
    world.health.last_error = "squeue failed; check slurmctld"
    world.health.errors["scheduler"] = 1
    assert world.verdict("poll") == world.verdict("table") == Verdict.ACT
    assert "squeue failed" in world.lines()["poll"]["text"].lower()
    assert world.verdict("scheduler") == Verdict.LOOK


def test_the_sign_of_life_is_judged_by_the_watchdogs_limit(world: World) -> None:
    world.look()
    sign = heartbeat_path(world.settings.table)
    assert world.verdict("sign_of_life") == Verdict.WELL
    past = sign.stat().st_mtime - world.settings.table.watchdog_after_s - 1
    os.utime(sign, (past, past))
    assert world.verdict("sign_of_life") == Verdict.ACT
    sign.unlink()
    assert world.verdict("sign_of_life") == Verdict.LOOK


def test_an_open_breaker_is_the_conclusion(tmp_path: Path) -> None:
    world = World(tmp_path, hook={"mode": "enforce"}).look()
    insert = "INSERT INTO breaker_events VALUES (NULL, ?, 'tripped', 'waits were <b>longer</b>')"
    world.store.write("test", insert, [(NOW,)])
    answer = world.answer()
    assert (answer["helps"], answer["verdict"]) == ("stopped", Verdict.ACT)
    assert "waits were <b>longer</b>" in world.lines()["breaker"]["text"]
    page = world.get("/operators").text
    assert "waits were &lt;b&gt;longer&lt;/b&gt;" in page
    assert "<b>longer" not in page


def test_a_disabled_foretime_says_how_to_enable_it(world: World) -> None:
    Path(world.settings.hook.disable_file).touch()
    assert world.verdict("mode") == Verdict.LOOK
    assert "foretime enable" in world.lines()["mode"]["remedy"]


@pytest.mark.parametrize(
    ("outliving", "verdict"), [(40, Verdict.WELL), (41, Verdict.LOOK), (51, Verdict.ACT)]
)
def test_too_many_that_outlive_their_times_are_told_before_the_breaker_opens(
    tmp_path: Path, record: Callable[..., Any], outliving: int, verdict: Verdict
) -> None:
    world = World(tmp_path, breaker={"least_jobs": 100})
    jobs = [
        record(number, runtime=601 if number < outliving else 600, end_time=NOW - 100)
        for number in range(100)
    ]
    world.store.add_finished(jobs, Cursor(NOW))
    rows = [
        (NOW - 100, one.job.request.job_id, one.job.request.submit_time, "u", "planned", 600, "-")
        for one in jobs
    ]
    world.store.write("test", _DECIDE, rows)
    line = world.lines()["planned"]
    assert line["verdict"] == verdict
    assert f"{outliving}% ran longer" in line["text"]


def test_a_hook_that_plans_nothing_is_told(tmp_path: Path) -> None:
    world = World(tmp_path, hook={"mode": "enforce"}, queue_order={"order": "none"}).look()
    world.sidecar.progress.mode = "enforce"
    assert world.verdict("hook") == Verdict.EARLY
    world.decide("planned", "-", 9)
    assert world.verdict("hook") == Verdict.WELL
    world.decide("unplanned", "hook", 1)
    assert world.verdict("hook") == Verdict.WELL
    world.decide("unplanned", "hook", 1)
    assert world.verdict("hook") == Verdict.ACT
    assert "foretime doctor" in world.lines()["hook"]["remedy"]
    decided = world.answer()["decided"]
    assert [(row["action"], row["jobs"]) for row in decided] == [("planned", 9), ("unplanned", 2)]
    assert "the hook did not" in decided[1]["why"]


def test_bounds_that_hold_too_seldom_are_told(world: World) -> None:
    world.look()
    forecasting = world.sidecar.waits

    def done(share: float, scored: int) -> Reliability:
        shares = tuple(share if level == 0.95 else level for level in LEVELS)
        return Reliability(30, scored, 9, LEVELS, shares, 0.1, 60, 60.0, ())

    for share, scored, verdict in (
        (0.5, 99, Verdict.EARLY),
        (0.9, 100, Verdict.WELL),
        (0.89, 100, Verdict.LOOK),
    ):
        forecasting.reliability = done(share, scored)
        assert world.verdict("forecasts") == verdict


def test_refused_requests_are_told_and_only_our_mistakes_are_looked_at(world: World) -> None:
    world.look()
    world.health.note_answer(429)
    assert world.lines()["requests"] == {
        "name": "requests",
        "title": "Requests over HTTP",
        "verdict": Verdict.WELL,
        "text": "Refused since the daemon began: 1 with 429.",
        "remedy": "",
    }
    assert world.answer()["refused_requests"] == {"429": 1}
    world.health.note_answer(500)
    assert world.verdict("requests") == Verdict.LOOK


def test_a_store_that_can_not_be_read_leaves_the_rest_of_the_answer(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.look()

    def broken(*_: object) -> None:
        raise StateError("the disk is gone; look at it")

    monkeypatch.setattr(world.store, "rows", broken)
    world.health.errors["state"] = 3
    world.health.last_error = "the disk is gone"
    assert world.verdict("state") == Verdict.LOOK
    assert world.verdict("poll") == Verdict.LOOK


# -- what it has brought ---------------------------------------------------------------------------


def judged(saved_s: int, *, with_us: bool = True) -> list[JudgedJob]:
    """Jobs of many days, each of which waited so much less than in the model without us."""
    jobs = []
    for day in range(20):
        for user in range(6):
            start = day * DAY + 50_000
            there, other = start, start + saved_s + 60 * (day % 3)
            both = (other, there) if with_us else (there, other)
            jobs.append(JudgedJob(f"u{user}", 8, day * DAY, start, *both, with_us))
    return jobs


@pytest.mark.parametrize(
    ("saved_s", "verdict", "helps"),
    [(30_000, Verdict.WELL, "yes"), (-30_000, Verdict.ACT, "no"), (0, Verdict.LOOK, "unclear")],
)
def test_the_live_counterfactual_decides_whether_it_helps(
    tmp_path: Path, saved_s: int, verdict: Verdict, helps: str
) -> None:
    world = World(tmp_path, hook={"mode": "enforce"}).look()
    assert world.sidecar.beside is not None
    account = account_of(judged(saved_s), 0, "week")
    if not saved_s:
        account = replace(account, brought=replace(account.brought, low_hours=-9, high_hours=9))
    world.sidecar.beside.latest_account = account
    answer = world.answer()
    assert world.lines()["brought"]["verdict"] == verdict
    assert answer["helps"] == helps
    assert answer["ab"] is None
    assert answer["brought"]["brought"]["jobs"] == 120


def test_on_days_without_foretime_it_says_what_it_would_have_brought(world: World) -> None:
    line = brought_line(world.sidecar, account_of(judged(3600, with_us=False), 0, "week"))
    assert isinstance(line, Line)
    assert line.verdict is Verdict.OFF
    assert line.text.startswith("It did nothing. Would have cost ")


def test_the_ab_report_stands_in_where_there_is_no_counterfactual() -> None:
    def report(planned_s: int, users: int = 12) -> Line:
        rows = [
            (planned, f"u{number % users}", 8, wait, False)
            for planned, wait in ((True, planned_s), (False, 5000))
            for number in range(600)
        ]
        return ab_line(compare(rows, 0))

    assert report(9000).verdict is Verdict.ACT
    assert report(900).verdict is Verdict.WELL
    assert report(5000).verdict is Verdict.LOOK
    assert report(900, users=3).verdict is Verdict.EARLY
    assert ab_line(compare([], 0)).verdict is Verdict.OFF
    assert ab_line(None).verdict is Verdict.LOOK


# -- the page --------------------------------------------------------------------------------------


def test_the_page_has_every_line_of_the_answer_with_its_verdict_in_words(world: World) -> None:
    for number in range(3):
        world.slurm.submit(Submission(f"u{number}", "p", None, 64, 3600, 900))
    answer, page = world.look().answer(), world.get("/operators").text
    text = " ".join(re.sub(r"<[^>]*>", " ", page).replace("\u00a0", " ").split())
    for group in answer["groups"]:
        assert group["title"] in text
        for line in group["lines"]:
            assert f"{line['title']} {line['verdict']}" in text
    assert answer["text"] in text


def test_every_field_is_documented(world: World, repository: Path) -> None:
    document = (repository / "docs/api.md").read_text()
    world.decide("planned", "-", 9)
    answer = world.look().answer()
    names = {*answer, *answer["groups"][0], *answer["groups"][0]["lines"][0], *answer["decided"][0]}
    assert [name for name in sorted(names) if f"`{name}`" not in document] == []
    for verdict in Verdict:
        assert f"`{verdict}`" in document
