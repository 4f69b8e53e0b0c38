"""How news leave this machine: by its sendmail, through an SMTP server, or to a webhook."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias
from urllib.parse import urlsplit

import requests
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.notify.mail import NotSentError, address_of, mail_of, send_by_sendmail
from foretime_sidecar.notify.start_news import News
from foretime_sidecar.settings.notify_settings import NotifySettings

Attempt: TypeAlias = Callable[[], None]
"""Tries to send one message; `NotSentError` if that fails."""
Kind: TypeAlias = Literal["mail", "webhook"]


class Way(Protocol):
    """How news are sent."""

    @property
    def kind(self) -> Kind:
        """The word for it that users are told."""
        ...

    def address(self, user: str) -> str | None:
        """Give where a user's mail goes; ``None`` if it is no mail; `InputError` if nowhere."""
        ...

    def attempt(self, user: str, news: News) -> Attempt:
        """Give what tries to send news to a user."""
        ...


def way_of(settings: NotifySettings) -> Way | None:
    """Give the way that the settings name; ``None``: none are sent.

    Raises
    ------
    InputError
        If the webhook's URL can't be read, or is none.
    """
    if settings.way == "off":
        return None
    return MailWay(settings) if settings.by_mail else Webhook(_url(settings), settings.timeout_s)


def _url(settings: NotifySettings) -> str:
    said = f"notify.webhook_url_file = {settings.webhook_url_file!r}"
    try:
        url = Path(settings.webhook_url_file).read_text().strip()
        parts = urlsplit(url)
        is_one = bool(parts.scheme in ("http", "https") and parts.hostname) and url.isprintable()
    except OSError as error:
        raise InputError(
            f"{said}: can't read it: {error.strerror}; let the daemon's user read it"
        ) from error
    except ValueError:  # no UTF-8, or brackets that are not closed
        is_one = False
    if not is_one:  # what it holds may be secret, and is not shown
        raise InputError(f"{said}: it holds no URL; write one line into it, https://HOST/PATH")
    return url


@dataclass(frozen=True, slots=True)
class MailWay:
    """News by mail to the user's address at the site, and to no other."""

    settings: NotifySettings
    kind: Kind = "mail"

    def address(self, user: str) -> str:
        """Give the user's address; `InputError` if the login name can be none."""
        return address_of(user, self.settings.mail_domain)

    def attempt(self, user: str, news: News) -> Attempt:
        """Write a mail, and give what tries to send it."""
        settings = self.settings
        how_to_stop = f"You have asked for it. To stop: foretime wait {news.job_id} --notify off"
        mail = mail_of(news, self.address(user), settings.sender, how_to_stop)
        if settings.way == "sendmail":
            return partial(send_by_sendmail, settings.sendmail, mail, settings.timeout_s)
        return partial(send_by_smtp, settings, mail)


def send_by_smtp(settings: NotifySettings, mail: EmailMessage) -> None:
    """Hand a mail to the site's SMTP server.

    Raises
    ------
    NotSentError
        If it does not answer, or does not take the mail.
    """
    try:
        with _server(settings) as server:
            server.send_message(mail)
    except smtplib.SMTPRecipientsRefused as error:
        code, said = next(iter(error.recipients.values()))
        raise NotSentError(
            f"the SMTP server refuses: {code} {said!r}", passing=code < 500
        ) from error
    except smtplib.SMTPResponseException as error:
        why = f"the SMTP server refuses: {error.smtp_code} {error.smtp_error!r}"
        raise NotSentError(why, passing=error.smtp_code < 500) from error
    except smtplib.SMTPNotSupportedError as error:  # no STARTTLS
        raise NotSentError(f"the SMTP server can't do it: {error}", passing=False) from error
    except (OSError, smtplib.SMTPException) as error:
        why = f"the SMTP server does not answer: {type(error).__name__}: {error}"
        raise NotSentError(why, passing=True) from error


def _server(settings: NotifySettings) -> smtplib.SMTP:
    host, port, timeout_s = settings.smtp_host, settings.smtp_port, settings.timeout_s
    if settings.smtp_security == "tls":
        context = ssl.create_default_context()
        return smtplib.SMTP_SSL(host, port, timeout=timeout_s, context=context)
    server = smtplib.SMTP(host, port, timeout=timeout_s)
    if settings.smtp_security == "starttls":
        try:
            server.starttls(context=ssl.create_default_context())
        except BaseException:
            server.close()
            raise
    return server


@dataclass(frozen=True, slots=True)
class Webhook:
    """News as JSON to the one URL that the site has named; users can't name another."""

    url: str
    timeout_s: int
    kind: Kind = "webhook"

    def address(self, user: str) -> None:
        """Give ``None``: it is no mail."""

    def attempt(self, user: str, news: News) -> Attempt:
        """Give what tries to post news."""
        return partial(self._post, {"user": user, **news.as_json()})

    def _post(self, body: dict[str, Any]) -> None:
        try:
            # What it answers is not read, nor is it believed about another place.
            with requests.post(
                self.url, json=body, timeout=self.timeout_s, allow_redirects=False, stream=True
            ) as reply:
                status = reply.status_code
        except requests.RequestException as error:  # whose words hold the URL
            why = f"the webhook does not answer: {type(error).__name__}"
            raise NotSentError(why, passing=True) from None
        if not 200 <= status < 300:
            raise NotSentError(
                f"the webhook answers {status}", passing=status == 429 or status >= 500
            )
