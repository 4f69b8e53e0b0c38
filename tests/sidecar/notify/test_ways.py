"""The ways out: an SMTP server and a webhook on this machine, and how each can fail."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.notify.mail import NotSentError
from foretime_sidecar.notify.start_news import News, Outlook
from foretime_sidecar.notify.ways import way_of
from foretime_sidecar.settings.notify_settings import NotifySettings
from foretime_sidecar.settings.settings_file import parse_settings
from pydantic import ValidationError

from tests.support.fake_sendmail import FakeSendmail

NEWS = News("moved", "4711", 1_700_000_000, Outlook(1_700_010_800, 1_700_020_000), 7200)


class Mailbox:
    """What an SMTP server has taken; it answers RCPT as it is told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, list[str], str]] = []
        self.answer = "250 OK"

    async def handle_RCPT(self, _: Any, __: Any, envelope: Any, address: str, ___: Any) -> str:  # noqa: N802 - aiosmtpd's
        if self.answer.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.answer

    async def handle_DATA(self, _: Any, __: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd's
        self.taken.append((envelope.mail_from, envelope.rcpt_tos, envelope.content.decode()))
        return "250 OK"


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def smtp(mailbox: Mailbox) -> Iterator[NotifySettings]:
    controller = Controller(mailbox, hostname="127.0.0.1", port=free_port())
    controller.start()
    yield by_smtp(controller.port)
    controller.stop()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def by_smtp(port: int, **more: Any) -> NotifySettings:
    return NotifySettings(
        **{
            "way": "smtp",
            "mail_domain": "hpc.example",
            "smtp_host": "127.0.0.1",
            "smtp_port": port,
            "timeout_s": 1,
            **more,
        }
    )


def send(settings: NotifySettings, user: str = "ann") -> None:
    way = way_of(settings)
    assert way is not None
    way.attempt(user, NEWS)()


def test_a_mail_goes_to_the_user_at_the_site(smtp: NotifySettings, mailbox: Mailbox) -> None:
    send(smtp)
    ((sender, to, text),) = mailbox.taken
    assert (sender, to) == ("foretime@hpc.example", ["ann@hpc.example"])
    assert "\r\nSubject: The start of job 4711 moved by 2 h, later: likely " in text
    assert "foretime wait 4711 --notify off" in text


@pytest.mark.parametrize("user", ["ann@else.example", "ann\r\nRCPT TO:<eve@evil.example>", "-f"])
def test_no_mail_goes_elsewhere(smtp: NotifySettings, mailbox: Mailbox, user: str) -> None:
    with pytest.raises(InputError, match="can't be a mail address"):
        send(smtp, user)
    assert mailbox.taken == []


@pytest.mark.parametrize(
    ("answer", "passing"), [("550 no such user", False), ("451 try again later", True)]
)
def test_a_server_that_refuses(
    smtp: NotifySettings, mailbox: Mailbox, answer: str, passing: bool
) -> None:
    mailbox.answer = answer
    with pytest.raises(NotSentError, match=answer[:3]) as caught:
        send(smtp)
    assert caught.value.passing is passing


def test_a_server_that_is_down() -> None:
    with pytest.raises(NotSentError, match="does not answer") as caught:
        send(by_smtp(free_port()))
    assert caught.value.passing


def test_a_server_that_never_answers_takes_no_longer_than_is_set() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        for settings in (
            by_smtp(silent.getsockname()[1]),
            by_smtp(silent.getsockname()[1], smtp_security="tls"),
        ):
            began = time.monotonic()
            with pytest.raises(NotSentError, match="does not answer"):
                send(settings)
            assert time.monotonic() - began < 10


def test_no_mail_goes_in_the_clear_where_it_is_to_be_encrypted(
    smtp: NotifySettings, mailbox: Mailbox
) -> None:
    with pytest.raises(NotSentError, match="STARTTLS"):
        send(smtp.model_copy(update={"smtp_security": "starttls"}))
    assert mailbox.taken == []


def test_a_mail_goes_through_sendmail(tmp_path: Path) -> None:
    fake = FakeSendmail(tmp_path / "sendmail")
    fake.write()
    send(NotifySettings(way="sendmail", mail_domain="hpc.example", sendmail=str(fake.path)))
    assert [mail["To"] for mail in fake.mails()] == ["ann@hpc.example"]


class Hook:
    """A webhook on this machine, which answers as it is told to."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, Any]] = []
        self.status, self.headers, self.slow_s = 204, dict[str, str](), 0.0
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.taken.append((self.path, json.loads(body)))
                time.sleep(hook.slow_s)
                self.send_response(hook.status)
                for name, value in hook.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hook = Hook()
    thread = threading.Thread(target=hook.server.serve_forever)
    thread.start()
    yield hook
    hook.server.shutdown()
    hook.server.server_close()
    thread.join(30)


def settings_with(folder: Path, url: str) -> NotifySettings:
    file = folder / "url"
    file.write_text(f"{url}\n")
    return NotifySettings(way="webhook", webhook_url_file=str(file), timeout_s=1)


def test_a_webhook_gets_the_news_as_json(hook: Hook, tmp_path: Path) -> None:
    send(settings_with(tmp_path, hook.url))
    assert hook.taken == [("/secret", {"user": "ann", **NEWS.as_json()})]


@pytest.mark.parametrize(
    ("status", "passing"), [(404, False), (302, False), (429, True), (503, True)]
)
def test_a_webhook_that_refuses(hook: Hook, tmp_path: Path, status: int, passing: bool) -> None:
    hook.status, hook.headers = status, {"Location": f"{hook.url}/elsewhere"}
    with pytest.raises(NotSentError, match=str(status)) as caught:
        send(settings_with(tmp_path, hook.url))
    assert caught.value.passing is passing
    assert [path for path, _ in hook.taken] == ["/secret"], "it must not be led elsewhere"


def test_a_webhook_that_is_slow_or_down_keeps_its_secret(hook: Hook, tmp_path: Path) -> None:
    hook.slow_s = 2
    for url in (hook.url, f"http://127.0.0.1:{free_port()}/secret"):
        with pytest.raises(NotSentError, match="does not answer") as caught:
            send(settings_with(tmp_path, url))
        assert caught.value.passing
        assert "secret" not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "url",
    ["", "file:///etc/passwd", "https:///secret", "hooks.example/x", "http://[", "http://a\x01b"],
)
def test_a_file_without_a_url_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="it holds no URL") as caught:
        way_of(settings_with(tmp_path, url))
    assert not url or url not in str(caught.value)


def test_a_file_that_can_not_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="webhook_url_file = '/none': can't read it: No such"):
        way_of(NotifySettings(way="webhook", webhook_url_file="/none"))


def test_nothing_is_sent_unless_the_site_says_so() -> None:
    assert way_of(NotifySettings()) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('[notify]\nway = "smtp"', ':2: notify.way = "smtp": set notify.mail_domain, too'),
        ('[notify]\nway = "webhook"', "set notify.webhook_url_file, too"),
    ],
)
def test_a_way_without_where_to_is_refused(text: str, why: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_settings(text)
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mail_domain", "hpc.example\n"),
        ("mail_domain", "ann@hpc.example"),
        ("mail_from", "foretime"),
        ("mail_from", "-f@hpc.example"),
        ("mail_from", "a@b\r\nBcc: c@d"),
    ],
)
def test_no_setting_can_smuggle_in_a_header(name: str, value: str) -> None:
    with pytest.raises(ValidationError, match="give a"):
        NotifySettings.model_validate({name: value})
