"""News sent by the daemon: to whom, how often, how exactly, and what a failure changes."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.errors import StateError
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_board import Waits
from foretime_sidecar.notify.notifier import Notifier
from foretime_sidecar.notify.start_news import News
from foretime_sidecar.notify.ways import way_of
from foretime_sidecar.settings.daemon_address import TOKEN_HEADER, TOKEN_PATH
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.store.watched_jobs import WatchedJobs
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecaster import LEVELS

NOW, LONG_S = 1_700_000_000, 36_000
BOB, OLGA = Caller(Identity("munge", "bob")), Caller(Identity("munge", "olga"), operator=True)
UNKNOWN = Caller(None)


@dataclass
class Sent:
    """A way on which everything arrives at once."""

    kind: str = "mail"
    news: list[tuple[str, News]] = field(default_factory=list)

    def address(self, user: str) -> str:
        return f"{user}@hpc.example"

    def attempt(self, user: str, news: News) -> Callable[[], None]:
        self.news.append((user, news))
        return lambda: None

    @property
    def events(self) -> list[str]:
        return [news.event for _, news in self.news]


class Site:
    """Two processors behind the API: ann's job for ten hours, and one of bob's that waits."""

    def __init__(self, folder: Path, private_data: str = "", **notify: Any) -> None:
        self.slurm = MockSlurm(SlurmSetup(2, private_data=private_data), Policy(), None, NOW)
        self.slurm.submit(Submission("ann", "p", None, 2, LONG_S, LONG_S))
        self.job = str(self.slurm.submit(Submission("bob", "p", None, 2, 600, 600)))
        self.settings = Settings.model_validate(
            {
                "table": {"path": str(folder / "table")},
                "api": {"request_burst": 1000},
                "notify": {"way": "smtp", "mail_domain": "hpc.example", **notify},
            }
        )
        self.store = Store(":memory:")
        self.waits: tuple[int, int] | None = None
        self.start()
        self.look(60)

    def start(self) -> None:
        """Start anew, from what is stored."""
        self.sidecar = Sidecar(
            self.settings, SlurmCommands(self.slurm.run), self.store, forecasts=True, notifies=True
        )
        self.sent = Sent()
        assert self.sidecar.notifier is not None
        self.notifier: Notifier = self.sidecar.notifier
        self.notifier.way = self.sent  # type: ignore[assignment]  # its kind is any text
        self.app = create_app(self.sidecar, Health(NOW), lambda: self.slurm.now)
        self.client = TestClient(
            self.app, base_url="http://localhost", raise_server_exceptions=False
        )

    def look(self, seconds: int, likely_s: int | None = None, sure_s: int | None = None) -> None:
        """Turn the clock, look, forecast the waits that are given, and notify."""
        self.slurm.advance(self.slurm.now + seconds)
        self.sidecar.look(self.slurm.now)
        forecasting = self.sidecar.waits
        assert forecasting.refresh()
        if likely_s is not None and sure_s is not None and forecasting.board is not None:
            waits = Waits(
                tuple(likely_s if level <= 0.5 else sure_s for level in LEVELS), starts_now=0.0
            )
            for row in forecasting.board.rows:
                object.__setattr__(row, "waits", waits)
        assert not self.notifier.refresh()

    def ask(
        self, method: str, path: str, caller: Caller = BOB, status: int = 200, **query: str
    ) -> Any:
        self.app.dependency_overrides[caller_of] = lambda: caller
        headers = {}
        if method == "POST" and caller.identity is not None:
            headers[TOKEN_HEADER] = self.client.get(TOKEN_PATH).json()["token"]
        reply = self.client.request(method, path, params=query, headers=headers)
        assert reply.status_code == status, reply.text
        return reply.json()

    def notify(self, caller: Caller = BOB, status: int = 200, job: str | None = None) -> Any:
        return self.ask("POST", "/v1/me/notify", caller, status, job=job or self.job)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_news_go_to_the_user_until_the_job_has_started(site: Site) -> None:
    answer = site.notify()
    assert answer == {
        "user": "bob",
        "way": "mail",
        "address": "bob@hpc.example",
        "jobs": [{"job_id": site.job, "asked_at": site.slurm.now}],
    }
    site.look(60, 5 * 3600, 8 * 3600)
    site.look(60, 7 * 3600, 9 * 3600)
    assert site.sent.events == []
    site.look(60, 9 * 3600, 9 * 3600)
    assert site.sent.events == ["moved"]
    site.look(60, 500, 900)
    site.look(60, 400, 900)
    assert site.sent.events == ["moved", "soon"]
    site.look(LONG_S)
    site.look(60)
    assert site.sent.events == ["moved", "soon", "started"]
    assert {user for user, _ in site.sent.news} == {"bob"}
    assert site.sent.news[-1][1].started_at == NOW + LONG_S
    assert site.ask("GET", "/v1/me/notify")["jobs"] == []


def test_a_cancelled_job_is_told_of_once(site: Site) -> None:
    site.notify()
    site.slurm.cancel(int(site.job))
    site.look(60)
    site.look(60)
    assert site.sent.events == ["gone"]


def test_nobody_is_sent_anything_unasked(site: Site) -> None:
    site.look(60, 60, 60)
    site.look(LONG_S)
    assert site.sent.news == []


def test_who_has_enough_of_it_stops_it(site: Site) -> None:
    site.notify()
    assert site.ask("POST", "/v1/me/notify/stop", job=site.job)["jobs"] == []
    site.look(LONG_S)
    assert site.sent.news == []
    error = site.ask("POST", "/v1/me/notify/stop", status=404, job=site.job)["error"]
    assert error["what"] == f"you get no news of job {site.job}"


@pytest.mark.parametrize("caller", [OLGA, Caller(Identity("munge", "ann"))])
def test_news_of_other_peoples_jobs_are_for_nobody(site: Site, caller: Caller) -> None:
    # Not for operators either; whether there is such a job is not told.
    said = site.notify(caller, 404)["error"]["what"]
    assert said == site.notify(caller, 404, job="4711")["error"]["what"].replace("4711", site.job)
    site.ask("POST", "/v1/me/notify/stop", caller, 404, job=site.job)
    assert site.ask("GET", "/v1/me/notify", caller)["jobs"] == []


def test_who_is_unknown_gets_none(site: Site) -> None:
    site.ask("GET", "/v1/me/notify", UNKNOWN, 403)
    site.notify(UNKNOWN, 403)


@pytest.mark.parametrize("job", ["1\r\nBcc: eve", "1\n", "", "x" * 65, "1;2", "é"])
def test_what_is_no_number_of_a_job_is_refused(site: Site, job: str) -> None:
    site.ask("POST", "/v1/me/notify", status=400, job=job)
    assert site.notifier.jobs_of("bob") == []


def test_a_number_that_becomes_another_users_tells_nothing_of_their_job(site: Site) -> None:
    theirs = str(site.slurm.submit(Submission("ann", "p", None, 2, 600, 600)))
    with site.sidecar.lock:
        WatchedJobs(site.store).add("bob", theirs, NOW)
    site.look(60, 60, 60)
    assert site.sent.events == ["gone"]
    assert site.sent.news[0][1].outlook is None


def test_where_jobs_are_hidden_news_are_as_coarse_as_answers(tmp_path: Path) -> None:
    for private_data, exact in (("", True), ("jobs", False)):
        site = Site(tmp_path, private_data)
        site.notify()
        site.look(61, 5 * 3600, 8 * 3600)
        site.look(60, 20 * 3600 + 7, 20 * 3600 + 7)
        ((_, news),) = site.sent.news
        assert news.outlook is not None
        assert (news.outlook.likely_start == site.slurm.now + 20 * 3600 + 7) is exact
        assert (news.outlook.likely_start % 900 == 0) is not exact
        assert (news.outlook.sure_by % 900 == 0) is not exact


def test_a_user_has_news_of_so_many_jobs(tmp_path: Path) -> None:
    site = Site(tmp_path, most_jobs=1)
    other = str(site.slurm.submit(Submission("bob", "p", None, 2, 600, 600)))
    site.look(60)
    site.notify()
    site.notify()  # the same
    error = site.notify(status=409, job=other)["error"]
    assert error["what"] == "you have news of 1 jobs, and notify.most_jobs is 1"
    assert "--notify off" in error["remedy"]


def test_a_user_gets_so_many_in_a_day(tmp_path: Path) -> None:
    site = Site(tmp_path, most_per_day=2, between_s=60)
    site.notify()
    for number in range(5):
        likely_s = (5 + 3 * (number % 2)) * 3600
        site.look(60, likely_s, likely_s)
    assert site.sent.events == ["moved"] * 2
    assert site.notifier.limited == 2
    site.look(LONG_S)
    assert site.notifier.limited == 3
    site.slurm.submit(Submission("ann", "p", None, 2, 3 * LONG_S, 3 * LONG_S))
    later = str(site.slurm.submit(Submission("bob", "p", None, 2, 600, 600)))
    site.look(3 * 3600, 5 * 3600, 5 * 3600)
    site.look(60, 5 * 3600, 5 * 3600)
    site.notify(job=later)
    site.look(60, 5 * 3600, 5 * 3600)
    site.look(50_000, 60, 60)
    assert site.sent.events == ["moved", "moved", "soon"]


def test_a_restart_repeats_nothing_and_forgets_nothing(site: Site) -> None:
    site.notify()
    site.look(60, 500, 900)
    assert site.sent.events == ["soon"]
    site.start()
    site.look(60, 400, 900)
    assert site.sent.events == []
    site.look(LONG_S)
    assert site.sent.events == ["started"]


def test_a_site_that_sends_none_any_more_forgets_who_wanted_some(site: Site) -> None:
    site.notify()
    settings = Settings.model_validate({"table": site.settings.table.model_dump()})
    commands = SlurmCommands(site.slurm.run)
    off = Sidecar(settings, commands, site.store, forecasts=True, notifies=True)
    assert off.notifier is None
    assert WatchedJobs(site.store).all() == []
    site.app = create_app(off, Health(NOW), lambda: site.slurm.now)
    site.client = TestClient(site.app, base_url="http://localhost")
    assert site.ask("GET", "/v1/me/notify")["way"] is None
    error = site.notify(status=404)["error"]
    assert error["what"] == "the daemon of this site sends no notifications"


def test_who_stops_it_while_news_are_found_gets_none(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.notify()
    found = site.notifier.jobs_of("bob")
    site.notifier.stop("bob", site.job)
    monkeypatch.setattr(WatchedJobs, "all", lambda _: found)
    site.look(60, 500, 900)
    site.look(LONG_S)
    assert site.sent.news == []


def test_nothing_of_a_forgotten_user_is_kept_in_memory(site: Site) -> None:
    site.notify()
    site.look(60, 500, 900)
    assert list(site.notifier._given) == ["bob"]
    site.sidecar.forget("bob", site.slurm.now)
    assert not site.notifier._given


def test_what_is_forgotten_of_a_user_is_sent_no_more(site: Site) -> None:
    site.notify()
    assert site.sidecar.forget("bob", site.slurm.now)["watched_jobs"] == 1
    site.look(LONG_S)
    assert site.sent.news == []
    assert site.ask("GET", "/v1/me")["watched_jobs"] == []


def test_what_can_not_be_noted_is_not_sent_until_it_can(site: Site) -> None:
    site.notify()
    site.store.rows("PRAGMA query_only = ON")  # as on a full disk, nothing can be written
    for _ in range(3):
        with pytest.raises(StateError):
            site.look(60, 500, 900)
    assert site.sent.news == []
    assert site.sidecar.waits.board is not None, "forecasts go on"
    site.store.rows("PRAGMA query_only = OFF")
    site.look(60, 500, 900)
    assert site.sent.events == ["soon"]


def test_metrics_count_what_became_of_them(site: Site) -> None:
    gone = threading.Event()
    site.notifier.outbox.put("bob", gone.set)
    assert gone.wait(30)
    site.notifier.outbox.end()
    site.notifier.outbox.put("bob", gone.set)
    site.notifier.limited = 7
    text = site.client.get("/metrics").text
    assert 'foretime_notifications_total{outcome="sent"} 1.0' in text
    assert 'foretime_notifications_total{outcome="failed"} 0.0' in text
    assert 'foretime_notifications_total{outcome="dropped"} 1.0' in text
    assert 'foretime_notifications_total{outcome="limited"} 7.0' in text
    assert "foretime_notify_failures_total 0.0" in text


@pytest.mark.parametrize("way", ["smtp down", "smtp slow", "webhook down", "webhook slow"])
def test_a_server_that_is_down_or_slow_changes_nothing_else(tmp_path: Path, way: str) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        if way.endswith("slow"):
            server.listen()  # and says nothing
        port = server.getsockname()[1]
        (tmp_path / "url").write_text(f"http://127.0.0.1:{port}/")
        notify = {
            "way": way.split()[0],
            "smtp_host": "127.0.0.1",
            "smtp_port": port,
            "webhook_url_file": str(tmp_path / "url"),
            "timeout_s": 2,
            "attempts": 1,
        }
        site = Site(tmp_path, **notify)
        real = way_of(site.settings.notify)
        assert real is not None
        site.notifier.way = real
        site.notify()
        began = time.monotonic()
        site.look(LONG_S)
        assert site.ask("GET", f"/v1/jobs/{site.job}/forecast")["state"] == "running"
        assert time.monotonic() - began < 1.5, "it must not wait for the server"
        until = time.monotonic() + 30
        while not site.notifier.outbox.failed:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert site.notifier.outbox.sent == 0
