"""`foretime wait --notify`: news here with a bell, by mail, and by the daemon."""

from __future__ import annotations

import json
import os
import pwd
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import typer
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.site_commands.wait import wait
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from typer.testing import CliRunner, Result

from tests.support.fake_sendmail import FakeSendmail
from tests.support.slurm.mock_site import MockSite

NOW, LONG_S = 1_700_000_000, 36_000

app = typer.Typer()
app.command("wait")(wait)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[MockSite]:
    """Two processors: one job for ten hours, another that waits for it."""
    slurm = MockSlurm(SlurmSetup(2), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 2, LONG_S, LONG_S))
    waiting = slurm.submit(Submission("bob", "p", None, 2, 600, 600))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path, slurm) as site:
        site.waiting = str(waiting)
        yield site


def notify(
    site: MockSite,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    *between: Callable[[], None],
    json: bool = False,
) -> Result:
    """Have news of the job that waits told; between two questions something happens."""
    todo = iter(between)
    monkeypatch.setattr("foretime_sidecar.cli.site_commands.wait.pause", lambda: next(todo)())
    clock = SimpleNamespace(time=lambda: site.slurm.now)
    monkeypatch.setattr("foretime_sidecar.cli.reports.job_news.time", clock)
    options = ["--notify", way, "--socket", str(site.socket_path)] + ["--json"] * json
    return CliRunner().invoke(app, [site.waiting, *options])


def test_news_are_few_and_the_last_is_that_it_has_started(
    site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The forecast moves by hours, and stays within the bound that was told at first.
    steps = [partial(site.advance, seconds) for seconds in (1800, 9000, 25_000, 60, 600)]
    result = notify(site, monkeypatch, "bell", *steps)
    assert result.exit_code == 0, result.output
    likely, soon, started = (line.split("  ", 1)[1] for line in result.output.splitlines())
    assert likely.startswith("Likely ")
    assert soon.startswith(f"Job {site.waiting} starts in about ")
    assert started.startswith(f"Job {site.waiting} has started at ")
    assert "\a" not in result.output  # it is no terminal


def test_the_bell_rings_on_a_terminal_alone(
    site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("foretime_sidecar.cli.reports.job_news.sys", terminal)
    result = notify(site, monkeypatch, "bell", lambda: site.advance(LONG_S))
    assert result.output.count("\a") == 1


def test_news_as_json_are_a_line_each(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    result = notify(site, monkeypatch, "bell", lambda: site.advance(LONG_S), json=True)
    (started,) = map(json.loads, result.output.splitlines())
    assert (started["event"], started["job_id"]) == ("started", site.waiting)
    assert started["started_at"] == NOW + LONG_S


def test_a_cancelled_job_no_longer_waits(site: MockSite, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel() -> None:
        site.slurm.cancel(int(site.waiting))
        site.advance(1)

    result = notify(site, monkeypatch, "bell", cancel)
    assert result.exit_code == 0, result.output
    assert result.output.splitlines()[-1].endswith("no longer waits: it has run, or was cancelled.")


def test_a_daemon_that_is_away_for_a_while_is_no_news(
    site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [site.end, site.start, lambda: site.advance(LONG_S)]
    result = notify(site, monkeypatch, "bell", *steps)
    assert len(result.output.splitlines()) == 2


def test_news_are_mailed_to_who_asks(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = FakeSendmail(tmp_path / "bin")
    fake.write()
    monkeypatch.setenv("PATH", f"{fake.folder}:{os.environ['PATH']}")
    result = notify(site, monkeypatch, "mail", lambda: site.advance(LONG_S))
    assert result.exit_code == 0, result.output
    (mail,) = fake.mails()
    assert mail["To"] == pwd.getpwuid(os.getuid()).pw_name
    assert mail["Subject"].startswith(f"Job {site.waiting} has started at ")
    fake.write("exit 1")
    result = notify(site, monkeypatch, "mail")
    assert "Not mailed: " in result.stderr


def test_without_a_sendmail_it_says_so_at_once(
    site: MockSite, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("foretime_sidecar.cli.reports.job_news._SENDMAIL_DIRS", str(tmp_path))
    result = notify(site, monkeypatch, "mail")
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith("this machine has no sendmail; use --notify bell")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["-n", "1", "-t", "60", "--notify", "bell"], "--notify is for a job in the queue"),
        (["17", "--notify", "bell", "--watch"], "leave --watch out"),
    ],
)
def test_wrong_questions_are_refused(arguments: list[str], what: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, InputError)
    assert what in str(result.exception)


@pytest.fixture
def mailing(tmp_path: Path) -> Iterator[tuple[MockSite, FakeSendmail]]:
    """A site whose daemon mails, and a job that waits of who runs this."""
    me = pwd.getpwuid(os.getuid()).pw_name
    fake = FakeSendmail(tmp_path / "sendmail")
    fake.write()
    slurm = MockSlurm(SlurmSetup(2), Policy(), None, NOW)
    slurm.submit(Submission("ann", "p", None, 2, LONG_S, LONG_S))
    waiting = slurm.submit(Submission(me, "p", None, 2, 600, 600))
    slurm.advance(NOW + 60)
    notify = {"way": "sendmail", "mail_domain": "hpc.example", "sendmail": str(fake.path)}
    with MockSite(tmp_path, slurm, notify=notify) as site:
        site.waiting = str(waiting)
        yield site, fake


def test_the_daemon_mails_its_news_when_it_was_asked_to(
    mailing: tuple[MockSite, FakeSendmail], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, fake = mailing
    me = pwd.getpwuid(os.getuid()).pw_name
    result = notify(site, monkeypatch, "daemon")
    assert result.output == (
        f"The daemon sends news of job {site.waiting} to {me}@hpc.example, until it no longer "
        f"waits.\nTo stop: foretime wait {site.waiting} --notify off\n"
    )
    assert not fake.mails()
    site.advance(LONG_S)
    until = time.monotonic() + 30
    while not fake.mails() or not site.daemon.sidecar.notifier.outbox.sent:  # type: ignore[union-attr]
        assert time.monotonic() < until
        time.sleep(0.02)
    (mail,) = fake.mails()
    assert (mail["To"], mail["From"]) == (f"{me}@hpc.example", "foretime@hpc.example")
    assert mail["Subject"].startswith(f"Job {site.waiting} has started at ")


def test_the_daemon_stops_when_it_is_told_to(
    mailing: tuple[MockSite, FakeSendmail], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, _ = mailing
    asked = notify(site, monkeypatch, "daemon", json=True)
    assert [job["job_id"] for job in json.loads(asked.output)["jobs"]] == [site.waiting]
    stopped = notify(site, monkeypatch, "off")
    assert stopped.output == f"The daemon sends no more news of job {site.waiting}.\n"
    again = notify(site, monkeypatch, "off", json=True)
    assert str(again.exception).startswith(f"you get no news of job {site.waiting}; ")


def test_a_site_whose_daemon_sends_none_says_what_to_do(
    site: MockSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = notify(site, monkeypatch, "daemon")
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == (
        "the daemon of this site sends no notifications; watch the job yourself: foretime wait "
        "JOB --notify bell"
    )


@pytest.mark.parametrize("before", ["exit 1", "exec sleep 60", None])
def test_a_sendmail_that_fails_changes_nothing_else(
    mailing: tuple[MockSite, FakeSendmail], monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    site, fake = mailing
    notify(site, monkeypatch, "daemon")
    if before is None:
        fake.path.unlink()
    else:
        fake.write(before)
    began = time.monotonic()
    site.advance(LONG_S)
    daemon = SiteDaemon(site.listen)
    assert daemon.job_forecast(site.waiting)["state"] == "running"
    assert daemon.health()["status"] == "ok"
    assert time.monotonic() - began < 8, "it must not wait for sendmail, which has 10 s"
