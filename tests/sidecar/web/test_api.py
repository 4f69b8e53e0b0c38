"""What the daemon answers, to whom, and the one shape of its errors."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import SchedulerError, StateError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecast_answer.forecast import BriefForecast
from foretime_sidecar.forecasts import wait_forecasting
from foretime_sidecar.forecasts.first_forecasts import FirstForecasts
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.served_forecasts import ForecastRows
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.sites.slurm.limits import Association
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import LEVELS
from prometheus_client.parser import text_string_to_metric_families

NOW = 1_700_000_000
NOBODY, DAEMON, ROOT = Peer(10, 65534, 65534), Peer(11, 1, 1), Peer(12, 0, 0)
Ask = Callable[..., Any]


def finished(number: int, user: str, project: str, runtime: int = 900) -> FinishedRecord:
    request = JobRequest(str(number), user, project, 8, 3600, NOW - 90_000 + number)
    end = NOW - 50_000 + number
    return FinishedRecord(
        FinishedJob(request, end - runtime, end, runtime, Ending.COMPLETED), None, "COMPLETED"
    )


def history() -> list[FinishedRecord]:
    """Sixty jobs each: nobody and four others in "wide", nobody and daemon alone in "narrow"."""
    records: list[FinishedRecord] = []
    for user in ("nobody", "daemon", "u1", "u2", "u3"):
        for _ in range(60):
            project = "wide"
            if user in {"nobody", "daemon"} and len(records) % 2:
                project = "narrow"
            records.append(finished(len(records), user, project))
    return records


class World:
    """A sidecar on a mock Slurm, polled once, behind the API."""

    def __init__(self, folder: Path) -> None:
        self.settings = Settings.model_validate(
            {"table": {"path": str(folder / "table")}, "api": {"request_burst": 1000}}
        )
        self.slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        self.store = Store(":memory:")
        self.store.add_finished(history(), Cursor(NOW))
        self.sidecar = Sidecar(
            self.settings, SlurmCommands(self.slurm.run), self.store, forecasts=True, shadow=True
        )
        self.health = Health(NOW)
        self.now = NOW
        self.app = create_app(self.sidecar, self.health, lambda: self.now)
        self.client = TestClient(
            self.app, base_url="http://localhost", raise_server_exceptions=False
        )

    def polled(self) -> World:
        self.look(NOW)
        self.sidecar.poll(NOW)
        return self

    def look(self, now: int) -> None:
        """Look at the queue, and forecast."""
        self.slurm.advance(now)
        self.sidecar.look(now)
        assert self.sidecar.forecasting is not None
        assert self.sidecar.forecasting.refresh()
        self.now = now

    def score(self) -> None:
        """Have the estimators go through what is stored."""
        scoreboard = self.sidecar.scoreboard
        assert scoreboard is not None
        while scoreboard.refresh():
            pass

    def ask(self, path: str, peer: Peer | None = None, status: int = 200) -> Any:
        self.app.dependency_overrides[caller_of] = lambda: Caller(Identity.of_peer(peer))
        reply = self.client.get(path)
        assert reply.status_code == status, reply.text
        return reply.json()

    def refused(self, path: str, peer: Peer | None = None, status: int = 400) -> dict[str, str]:
        body = self.ask(path, peer, status)
        assert list(body) == ["error"]
        assert list(body["error"]) == ["what", "where", "remedy"]
        assert all(isinstance(part, str) and part for part in body["error"].values())
        return body["error"]  # type: ignore[no-any-return]  # JSON has no types


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path).polled()


def test_a_caller_sees_their_own_history(world: World) -> None:
    answer = world.ask("/v1/accuracy", NOBODY)
    assert answer["user"] == "nobody"
    (row,) = [row for row in answer["classes"] if row["submissions"]]
    learned = world.sidecar.learner.describe(user="nobody")
    assert row["adjustment"] == learned[0].adjustment
    assert (row["submissions"], row["threshold"]) == (60, 50)
    assert world.ask("/v1/accuracy?user=nobody", NOBODY) == answer


@pytest.mark.parametrize("path", ["/v1/accuracy?", "/v1/forecast?processors=1&time=10&"])
def test_nobody_sees_another_users_history(world: World, path: str) -> None:
    error = world.refused(path + "user=daemon", NOBODY, 403)
    assert "'nobody' and may not see the history of 'daemon'" in error["what"]
    assert error["where"] == "user"
    # Whether there is such a user at all makes no difference.
    assert world.refused(path + "user=ghost", NOBODY, 403)["where"] == "user"
    world.refused(path + "user=nobody", None, 403)


def test_root_and_the_daemons_owner_see_everybody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert world.ask("/v1/accuracy?user=daemon", ROOT)["user"] == "daemon"
    monkeypatch.setattr("os.geteuid", lambda: DAEMON.uid)
    assert world.ask("/v1/accuracy?user=nobody", DAEMON)["user"] == "nobody"


def test_without_identity_only_aggregates_are_told(world: World) -> None:
    answer = world.ask("/v1/accuracy")
    assert answer["user"] is None
    assert answer["classes"] == []
    (everyone,) = answer["everyone"]
    assert everyone["users"] == 5
    assert everyone["median_adjustment"] == pytest.approx(
        world.sidecar.learner.describe(user="u1")[0].adjustment
    )


def test_a_uid_without_a_name_is_nobody_in_particular(world: World) -> None:
    assert world.ask("/v1/accuracy", Peer(1, 3_999_999_999, 1))["user"] is None


def test_groups_below_five_users_are_not_shown(world: World) -> None:
    wide = world.ask("/v1/accuracy?project=wide", NOBODY)["project"]
    assert [row["submissions"] for row in wide["classes"]] == [240]
    assert wide["complete"]
    narrow = world.ask("/v1/accuracy?project=narrow", NOBODY)["project"]
    ghost = world.ask("/v1/accuracy?project=ghost", NOBODY)["project"]
    assert narrow == {**ghost, "name": "narrow"}
    assert world.ask("/v1/accuracy?project=narrow", ROOT)["project"]["classes"]


def test_aggregates_need_five_users(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.store.forget_before(NOW)
    four = [record for record in history() if record.job.request.user != "u3"]
    world.store.add_finished(four, Cursor(NOW))
    assert world.polled().ask("/v1/accuracy")["everyone"] == []


def test_a_forecast_of_a_new_job_has_its_bounds_and_levels(world: World) -> None:
    world.slurm.submit(Submission("u1", "wide", None, 64, 3600, 900))
    world.look(NOW + 60)
    world.now = NOW + 90
    answer = world.ask("/v1/forecast?processors=64&time=1:00:00&partition=main", NOBODY)
    # u1's jobs have all taken 900 s; what else they might take is before and after.
    assert answer["start_time"]["0.5"] == NOW + 900
    assert answer["likely_wait_s"] == answer["wait_s"]["0.5"] == 900 - 90
    levels, waits = zip(*answer["quantiles"], strict=True)
    assert levels == LEVELS
    assert sorted(waits) == list(waits)
    assert waits[0] <= 900 - 90 <= waits[-1] <= 3600 - 90
    assert answer["starts_now"] == 0
    assert (answer["made_at"], answer["snapshot_age_s"]) == (NOW + 90, 30)
    assert (answer["running_jobs"], answer["pending_jobs"]) == (1, 0)
    assert answer["requested_time_s"] == 3600
    assert (answer["job_id"], answer["state"]) == (None, "not-submitted")
    assert (answer["user"], answer["partition"]) == ("nobody", "main")
    assert answer["reason"] == {
        "code": "Resources", "text": "waits for 64 processors; no job ahead in the queue",
    }  # fmt: skip
    assert answer["assumptions"]


def test_a_job_in_the_queue_is_told_its_forecast_and_how_old_it_is(world: World) -> None:
    first = world.slurm.submit(Submission("u1", "wide", None, 64, 3600, 900))
    second = world.slurm.submit(Submission("nobody", "wide", None, 32, 1800, 900))
    third = world.slurm.submit(Submission("nobody", "wide", None, 32, 1800, 900))
    world.look(NOW + 60)
    world.now = NOW + 75
    answer = world.ask(f"/v1/jobs/{third}/forecast", NOBODY)
    assert (answer["job_id"], answer["state"], answer["user"]) == ("3", "pending", "nobody")
    assert (answer["made_at"], answer["snapshot_age_s"]) == (NOW + 60, 15)
    assert answer["start_time"]["0.5"] == NOW + 900
    assert answer["wait_s"]["0.5"] == 900 - 60 <= answer["wait_s"]["0.95"]
    assert answer["reason"] == {
        "code": "Resources",
        "text": "waits for 32 processors; 1 job ahead in the queue",
    }
    assert answer["started_at"] is None
    # A job of another's looks like none at all, but not to root.
    error = world.refused(f"/v1/jobs/{first}/forecast", NOBODY, 404)
    assert error["what"] == "no job 1 of yours is in the queue as it was 15 s ago"
    error = world.refused("/v1/jobs/1/forecast", None, 404)
    assert error["what"].startswith("whether job 1 is yours is not known")
    assert error["remedy"].startswith("ask through the daemon's unix socket")
    assert world.refused("/v1/jobs/99/forecast", NOBODY, 404)["where"] == "job_id"
    error = world.refused("/v1/jobs/99/forecast", ROOT, 404)
    assert error["what"] == "no job 99 is in the queue as it was 15 s ago"
    seen = world.ask("/v1/jobs/1/forecast", ROOT)
    assert (seen["state"], seen["started_at"], seen["wait_s"]) == ("running", NOW, None)
    everyones = world.ask("/v1/jobs/forecasts", ROOT)
    assert [job["job_id"] for job in everyones["jobs"]] == [str(second), str(third)]
    assert everyones["jobs"][1] == answer
    assert everyones["others"] == {"pending": 0}
    none = world.ask("/v1/jobs/forecasts?brief=1")
    # Of so few users not even the number.
    assert (none["jobs"], none["others"]) == ([], {"pending": 10})
    brief = world.ask("/v1/jobs/forecasts?brief=1", NOBODY)["jobs"]
    assert "quantiles" not in brief[0]
    assert brief[1]["wait_s"] == answer["wait_s"]


def test_advice_names_the_cheapest_shape_that_is_done_sooner(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Half the machine is free; the rest runs for 900 s.
    world.slurm.submit(Submission("u1", "wide", None, 32, 3600, 900))
    world.look(NOW + 60)
    question = "/v1/advice?ntasks=64&time=5&scales=1"
    advice = world.ask(question, NOBODY)
    asked, found = advice["asked"], advice["alternatives"]
    assert asked["likely_wait_s"] == 840
    half = found[0]
    assert half["change"] == {"ntasks": 32, "time": "00:10:00"}
    assert half["forecast"]["likely_wait_s"] == 0
    assert (half["sooner_s"], half["cost"]) == (840, "same")
    assert advice["cheapest"] == 0
    assert [each["change"]["ntasks"] for each in found] == [32, 16]
    assert half["done_sooner_s"] == asked["end_s"]["0.5"] - half["forecast"]["end_s"]["0.5"] > 300
    # Of the same cost it is the one that is done soonest.
    with monkeypatch.context() as narrow:
        narrow.setattr(BriefForecast, "done_sooner_s", lambda self, _: 1_000 - self.processors)
        assert world.ask(question, NOBODY)["cheapest"] == 1
    # Nor is what is likely done sooner advised where nobody is as sure of it.
    with monkeypatch.context() as unsure:
        unsure.setattr(BriefForecast, "is_surely_done_no_later", lambda *_: False)
        assert world.ask(question, NOBODY)["cheapest"] is None
    # What takes twice as long on half starts sooner and is done later; it may not scale at all.
    long = world.ask("/v1/advice?ntasks=64&time=1:00:00&scales=1", NOBODY)
    assert long["alternatives"][0]["sooner_s"] == 840
    assert long["alternatives"][0]["done_sooner_s"] < 0
    assert long["cheapest"] is None
    assert world.ask("/v1/advice?ntasks=64&time=1:00:00", NOBODY)["alternatives"] == []


def test_advice_of_a_shorter_limit_is_from_ones_own_jobs_alone(world: World) -> None:
    # 60 jobs of 8 processors and an hour took 900 s each; projects alternate.
    question = "/v1/advice?ntasks=8&time=1:00:00&account=wide"
    changes = [each["change"] for each in world.ask(question, NOBODY)["alternatives"]]
    assert changes[:1] == [{"time": "00:20:00"}]
    assert {"time": "00:20:00"} not in [
        each["change"] for each in world.ask(question)["alternatives"]
    ]


def test_while_the_first_map_is_drawn_it_is_said_when_there_will_be_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_forecasting, "_MAP_AT_A_TIME_S", -1)  # no cell at any look
    world = World(tmp_path)
    world.look(NOW)
    waits = world.sidecar.waits
    reply = world.client.get("/v1/map")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "60")
    error = {"what": "no map is drawn yet", "where": "map", "remedy": "ask again in about 1 min"}
    assert reply.json()["error"] == error
    drawing = waits.drawing
    assert drawing is not None
    assert drawing.looks == 1
    for _ in range(10):
        drawing.add(None)
    # 10 of 42 cells at the first look: four more looks, a minute apart.
    reply = world.client.get("/v1/map")
    assert reply.headers["Retry-After"] == "240"
    error |= {
        "what": "no map is drawn yet: 10 of 42 expected waits are made",
        "remedy": "ask again in about 4 min",
    }
    assert reply.json()["error"] == error
    assert "No map is drawn yet: 10 of 42" in world.client.get("/").text


def test_the_map_of_waits(world: World) -> None:
    world.slurm.submit(Submission("u1", "wide", None, 48, 3600, 900))
    world.look(NOW + 400)
    answer = world.ask("/v1/map", NOBODY)
    assert answer["made_at"] == NOW + 400
    (one,) = answer["maps"]
    assert one["sizes"] == [1, 2, 4, 8, 16, 32, 64]
    assert one["times_s"][0] == 900
    for waits in (one["median_wait_s"], one["bound_95_s"]):
        assert [len(row) for row in waits] == [6] * 7
    # 16 processors are free; the others until NOW + 900.
    assert one["median_wait_s"][4] == [0] * 6
    assert one["median_wait_s"][5] == [500] * 6
    assert world.ask("/v1/map?partition=debug")["maps"] == []
    assert world.sidecar.forecasting is not None
    assert world.sidecar.forecasting.drawing is None
    # It is drawn every five minutes.
    world.look(NOW + 500)
    assert world.ask("/v1/map")["made_at"] == NOW + 400


def test_what_was_served_is_scored_and_told(world: World) -> None:
    # Five users' jobs take 900 s each, one after the other.
    numbers = [world.slurm.submit(Submission(f"u{user}", None, None, 64, 3600, 900))
               for user in range(6)]  # fmt: skip
    world.look(NOW + 60)
    world.ask(f"/v1/jobs/{numbers[5]}/forecast", ROOT)
    world.ask("/v1/forecast?ntasks=32&time=60", NOBODY)
    for minute in range(2, 83):
        world.look(NOW + 60 * minute)
        world.sidecar.poll(NOW + 60 * minute)
    rows = world.store.rows("SELECT kind, job_id, outcome, waited_s FROM served_forecasts")
    assert ("submission", "6", "started", 5 * 900 - 60) in rows
    assert ("asked", "6", "started", 5 * 900 - 60) in rows
    assert ("what-if", None, None, None) in rows
    assert {outcome for kind, _, outcome, _ in rows if kind != "what-if"} == {"started"}
    answer = world.ask("/v1/reliability?days=7", NOBODY)
    scored = sum(outcome == "started" for _, _, outcome, _ in rows)
    assert (answer["scored"], answer["users"], answer["days"]) == (scored, 5, 7)
    assert answer["levels"] == list(LEVELS)
    assert answer["share_within"] == sorted(answer["share_within"])
    (day,) = answer["by_day"]
    assert day["scored"] == scored
    told = world.ask("/v1/forecast?ntasks=1&time=60")["calibration"]
    assert told["days"] == 30
    assert told["forecasts_scored"] > 0
    metrics = {
        sample.name: sample.value
        for family in text_string_to_metric_families(world.client.get("/metrics").text)
        for sample in family.samples
    }
    assert metrics["foretime_forecasts_scored"] == told["forecasts_scored"]
    assert metrics["foretime_forecast_median_error_seconds"] >= 0


def test_a_full_disk_does_not_keep_forecasts_from_being_given(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise StateError("x: can't keep forecasts: database or disk is full; make room")

    monkeypatch.setattr(ForecastRows, "add", full)
    world.slurm.submit(Submission("nobody", None, None, 64, 3600, 900))
    second = world.slurm.submit(Submission("nobody", None, None, 64, 3600, 900))
    world.look(NOW + 60)
    assert world.ask(f"/v1/jobs/{second}/forecast", NOBODY)["likely_wait_s"] > 0
    assert "forecasts are not kept: x: can't keep" in caplog.text


def test_a_forecast_uses_the_callers_own_history(world: World) -> None:
    question = "/v1/forecast?processors=8&time=60"
    mine = world.ask(question, NOBODY)["scheduled_time_s"]
    request = JobRequest("", "nobody", None, 8, 3600, NOW)
    assert mine == world.sidecar.learner.scheduled_time(request) < 3600
    assert world.ask(question)["scheduled_time_s"] == 3600
    as_root = world.ask(question + "&user=nobody", ROOT)
    assert as_root["scheduled_time_s"] == mine


def test_a_small_projects_history_is_not_used(world: World) -> None:
    question = "/v1/forecast?processors=8&time=60&project="
    withheld = world.ask(question + "narrow")
    assert withheld["scheduled_time_s"] == 3600
    assert "nothing of project 'narrow' is used" in withheld["assumptions"][-1]
    assert world.ask(question + "wide")["scheduled_time_s"] < 3600
    assert world.ask(question + "narrow", ROOT)["scheduled_time_s"] < 3600


def test_an_account_that_nobody_has_heard_of_is_told(world: World) -> None:
    question = "/v1/forecast?processors=8&time=60&account="

    def said(account: str, peer: Peer = ROOT) -> str:
        return " ".join(world.ask(question + account, peer)["assumptions"])

    assert "account 'nope' is not known: no job of it has been seen" in said("nope")
    assert "is not known" not in said("narrow")
    assert "is not known" not in said("nope", NOBODY)  # they are told that nothing of it is used
    # Where the site's accounts are read these say it, to all.
    forecasting = world.sidecar.forecasting
    assert forecasting is not None
    assert forecasting.board is not None
    tree = (Association("root"), Association("Physics", parent="root", shares=1))
    site = SlurmSite(Machine.flat(64), associations=tree)
    forecasting.board = dataclasses.replace(forecasting.board, site=site)
    for peer in (ROOT, NOBODY):
        assert "account 'nope' is not known: this site's Slurm has none" in said("nope", peer)
        assert "is not known" not in said("physics", peer)


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("/v1/forecast?processors=1", "time is missing"),
        ("/v1/forecast?time=60", "processors is missing"),
        ("/v1/forecast?processors=x&time=60", "processors = 'x'"),
        ("/v1/forecast?processors=0&time=60", "processors = '0'"),
        ("/v1/forecast?nodes=4-2&time=60", "nodes = '4-2': the most nodes are fewer"),
        ("/v1/forecast?ntasks=4&processors=2&time=60", "mean the same"),
        ("/v1/forecast?processors=4&cpus_per_task=2&time=60", "processors = N are CPUs"),
        ("/v1/forecast?processors=1&time=60&time_min=61", "time_min = '61' is more than"),
        ("/v1/forecast?processors=1&time=60&begin=soon", "begin = 'soon': is no time"),
        ("/v1/forecast?processors=1&time=60&project=a&account=b", "mean the same"),
        ("/v1/forecast?processors=1&time=60&nodez=2", "nodez = '2'"),
        ("/v1/forecast?processors=65&time=60", "only 64 processors are up"),
        ("/v1/forecast?processors=1&time=soon", "'soon' is not a duration"),
        ("/v1/forecast?processors=1&time=0", "no time at all"),
        ("/v1/forecast?processors=1&time=9999999999999999", "is not a duration"),
        ("/v1/forecast?processors=1&time=999999999", "more than a year"),
        ("/v1/accuracy?user=", "user = ''"),
    ],
)
def test_a_wrong_question_is_told_what_is_wrong(world: World, path: str, what: str) -> None:
    assert what in world.refused(path)["what"]


def test_unknown_paths_and_methods_have_the_same_shape(world: World) -> None:
    assert world.refused("/v2/none", status=404)["where"] == "/v2/none"
    reply = world.client.post("/v1/accuracy")
    assert reply.status_code == 405
    assert list(reply.json()["error"]) == ["what", "where", "remedy"]
    assert reply.headers["Allow"] == "GET"
    assert world.client.put("/v1/me/notify").headers["Allow"] == "GET, POST"
    assert world.client.post("/static/page.css").headers["Allow"] == "GET, HEAD"


def test_our_own_mistakes_have_the_same_shape(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(world.sidecar.learner, "everyone", broken)
    assert "mistake" in world.refused("/v1/accuracy", NOBODY, 500)["what"]


def test_before_the_first_look_a_forecast_is_refused_with_why(tmp_path: Path) -> None:
    world = World(tmp_path)
    error = world.refused("/v1/forecast?processors=1&time=60", status=503)
    assert error["what"] == "the queue has not been read yet"
    reply = world.client.get("/v1/forecast?processors=1&time=60")
    assert reply.headers["Retry-After"] == str(world.sidecar.pause.seconds) == "60"
    assert world.sidecar.forecasting is not None
    now_s = 0.0
    first = world.sidecar.forecasting.first = FirstForecasts(10_000, lambda: now_s)
    reply = world.client.get("/v1/forecast?processors=1&time=60")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "30")
    assert reply.json()["error"]["what"] == (
        "the first forecasts are being made, of a queue of 10,000 jobs"
    )
    now_s = 8.0
    first.learn(0.25)
    reply = world.client.get("/v1/forecast?processors=1&time=60")
    assert (reply.status_code, reply.headers["Retry-After"]) == (503, "40")
    assert reply.json()["error"]["what"].endswith("of 10,000 jobs: about 40 s")
    world.sidecar.forecasting.first = None
    assert world.ask("/healthz")["status"] == "starting"
    world.health.last_error = "squeue: Unable to contact slurm controller; start slurmctld"
    error = world.refused("/v1/forecast?processors=1&time=60", status=503)
    assert error["what"] == (
        "the queue has not been read yet: squeue: Unable to contact slurm controller"
    )
    assert error["remedy"] == "start slurmctld"
    assert world.refused("/healthz", status=503)["what"] == world.health.last_error


def test_health_is_ok_until_polls_are_late(world: World) -> None:
    answer = world.ask("/healthz")
    assert answer["status"] == "ok"
    assert (answer["poll_age_s"], answer["table_generation"], answer["mode"]) == (0, 1, "observe")
    assert answer["finished_jobs"] == 300
    world.now = NOW + 3 * 60 + 4 * 60 + 1
    world.health.last_error = "squeue failed"
    assert world.refused("/healthz", status=503)["what"] == "squeue failed"


def test_the_metrics_are_those_of_the_daemon(world: World) -> None:
    world.now = NOW + 10
    world.health.errors["scheduler"] = 3
    text = world.client.get("/metrics").text
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["foretime_poll_age_seconds",] == 10
    assert samples["foretime_queue_age_seconds",] == 10
    assert samples["foretime_table_age_seconds",] == 10
    assert samples["foretime_table_valid_seconds",] == 21_590
    assert samples["foretime_table_generation",] == 1
    assert samples["foretime_table_rows",] == world.sidecar.learner.row_count() > 0
    assert samples["foretime_enforcing",] == 0
    assert samples["foretime_finished_jobs",] == 300
    assert samples["foretime_errors_total", "scheduler"] == 3
    assert samples["foretime_errors_total", "state"] == 0
    for name in ("cpu_seconds_total", "resident_memory_bytes", "open_fds", "start_time_seconds"):
        assert samples[f"process_{name}",] > 0


def test_every_path_field_and_metric_is_documented(world: World, repository: Path) -> None:
    document = (repository / "docs/api.md").read_text()
    names = set(world.app.openapi()["paths"])
    world.slurm.submit(Submission("u1", "wide", None, 64, 3600, 900))
    world.look(NOW + 1)
    world.score()
    for path in (
        "/v1/accuracy?project=wide",
        "/v1/forecast?processors=1&time=60",
        "/v1/jobs/1/forecast",
        "/v1/jobs/forecasts",
        "/v1/advice?processors=1&time=60",
        "/v1/map",
        "/v1/reliability",
        "/v1/estimators",
        "/v1/estimators/switches",
        "/healthz",
    ):
        answer = world.ask(path, ROOT)
        names |= set(answer)
        for rows in (
            *(answer.get("everyone"), answer.get("project")),
            *(answer.get("rows"), answer.get("switches")),
        ):
            for row in rows if isinstance(rows, list) else []:
                names |= set(row)
    for row in world.ask("/v1/accuracy", NOBODY)["classes"]:
        names |= set(row)
    metrics = world.client.get("/metrics").text
    names |= {line.split()[2] for line in metrics.splitlines() if line.startswith("# TYPE")}
    assert [name for name in sorted(names) if f"`{name}`" not in document] == []


def test_scheduler_errors_are_the_daemons(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(*_: object, **__: object) -> None:
        raise SchedulerError("squeue failed; check slurmctld")

    monkeypatch.setattr(world.sidecar.learner, "scheduled_time", down)
    error = world.refused("/v1/forecast?processors=1&time=60", NOBODY, 503)
    assert (error["what"], error["remedy"]) == ("squeue failed", "check slurmctld")


# -- estimators ------------------------------------------------------------------------------------


def test_operators_see_the_scores_of_estimators_and_no_name(world: World) -> None:
    assert world.refused("/v1/estimators", ROOT, 503)["what"] == "no job has been scored yet"
    world.score()
    answer = world.ask("/v1/estimators", ROOT)
    assert (answer["complete"], answer["users"], answer["in_use"]) == (True, 5, "combined")
    assert {row["jobs"] for row in answer["rows"]} == {300}
    assert [row["name"] for row in answer["rows"] if row["in_use"]] == ["combined"]
    assert "u1" not in str(answer)
    (switch,) = world.ask("/v1/estimators/switches", ROOT)["switches"]
    assert (switch["event"], switch["estimator"]) == ("in-use", "combined")
    assert world.ask(f"/v1/estimators/switches?since={NOW + 1}", ROOT) == {"switches": []}


@pytest.mark.parametrize("path", ["/v1/estimators", "/v1/estimators/switches"])
@pytest.mark.parametrize("peer", [None, NOBODY, DAEMON])
def test_nobody_else_sees_them(world: World, path: str, peer: Peer | None) -> None:
    world.score()
    error = world.refused(path, peer, 403)
    assert error["what"].startswith("this is for administrators")
    # Root over a port is not told to ask as root, but through the socket.
    assert ("does not tell who you are" in error["what"]) == (peer is None)
    assert error["remedy"].startswith("ask through the daemon's unix socket") == (peer is None)


def test_without_estimators_in_the_shadow_the_answer_says_how_to_have_them(world: World) -> None:
    world.sidecar.scoreboard = None
    error = world.refused("/v1/estimators", ROOT, 404)
    assert error["where"] == "estimators.shadow"
    assert world.ask("/healthz")["last_estimators_error"] == ""
    assert "foretime_estimator" not in world.client.get("/metrics").text


def test_metrics_of_estimators_are_of_enough_users(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.score()

    def samples() -> dict[tuple[str, str | None], float]:
        return {
            (sample.name, sample.labels.get("estimator")): sample.value
            for family in text_string_to_metric_families(world.client.get("/metrics").text)
            for sample in family.samples
        }

    scoreboard = world.sidecar.scoreboard
    assert scoreboard is not None
    assert scoreboard.board is not None
    row = scoreboard.board.row("last-two")
    assert row is not None
    found = samples()
    assert found["foretime_estimator_accuracy", "last-two"] == pytest.approx(row.accuracy)
    assert found["foretime_estimator_under_predicted_share", "last-two"] == row.under_predicted
    assert found["foretime_estimator_in_use", "combined"] == 1
    assert found["foretime_estimator_in_use", "last-two"] == 0
    assert found["foretime_estimators_set_aside", None] == 0
    assert found["foretime_estimators_failures_total", None] == 0
    assert found["foretime_estimators_age_seconds", None] == 0
    few = dataclasses.replace(scoreboard.board, users=4)
    monkeypatch.setattr(scoreboard, "board", few)
    assert not any(name == "foretime_estimator_accuracy" for name, _ in samples())
