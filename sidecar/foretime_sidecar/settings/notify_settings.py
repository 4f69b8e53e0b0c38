"""Settings of the notifications that the daemon sends to users who ask for them."""

from __future__ import annotations

import re
from typing import Literal

from foretime_estimators.jobs.errors import InputError
from pydantic import Field, field_validator

from foretime_sidecar.settings.settings_section import FilePath, Section, refused_as_value

_DOMAIN = r"(?!-)[A-Za-z0-9-]{1,63}(\.[A-Za-z0-9-]{1,63})*"
_MAILBOX = r"(?!-)[A-Za-z0-9_+-]{1,63}(\.[A-Za-z0-9_+-]{1,63})*"


def _check_domain(domain: str) -> None:
    if domain and not re.fullmatch(_DOMAIN, domain, re.ASCII):
        raise InputError("give a domain, such as hpc.example.org")


def _check_address(address: str) -> None:
    if address and not re.fullmatch(f"{_MAILBOX}@{_DOMAIN}", address, re.ASCII):
        raise InputError("give a mail address, such as foretime@hpc.example.org")


class NotifySettings(Section):
    """News of when jobs start, sent to the users who ask for them (docs/notify.md)."""

    way: Literal["off", "sendmail", "smtp", "webhook"] = Field(
        default="off",
        description=(
            "How they are sent: by mail through this machine's sendmail or an SMTP server, or as "
            "JSON to a webhook; off: the daemon sends none, and forgets who has asked for some."
        ),
    )
    mail_domain: str = Field(
        default="",
        description="Mail goes to USER@ this domain; must be set for sendmail and smtp.",
    )
    mail_from: str = Field(
        default="", description="Sender of the mail; empty: foretime@ mail_domain."
    )
    sendmail: FilePath = Field(
        default="/usr/sbin/sendmail",
        min_length=1,
        description=(
            "The sendmail program. Postfix's and Exim's do not work under NoNewPrivileges of "
            "foretime.service: use smtp there."
        ),
    )
    smtp_host: str = Field(default="localhost", min_length=1, description="The SMTP server.")
    smtp_port: int = Field(default=25, ge=1, le=65_535, description="Its port.")
    smtp_security: Literal["none", "starttls", "tls"] = Field(
        default="none",
        description="Encryption: none, begun by STARTTLS, or from the first byte (port 465).",
    )
    webhook_url_file: FilePath = Field(
        default="",
        description=(
            "File with the webhook's URL, which may be secret, read at the start; must be set for "
            "webhook."
        ),
    )
    timeout_s: int = Field(
        default=10,
        ge=1,
        le=300,
        description="How long the mail program, or the server at each step, may take to answer.",
    )
    attempts: int = Field(
        default=3, ge=1, le=10, description="How often one is tried while it may still work."
    )
    soon_s: int = Field(
        default=600, ge=60, description="A job starts soon if it likely does within this time."
    )
    between_s: int = Field(
        default=1800,
        ge=60,
        description="Moves of one job's start are told at least so far apart.",
    )
    most_per_day: int = Field(
        default=50, ge=1, description="The most notifications for one user in 24 hours."
    )
    most_jobs: int = Field(
        default=20, ge=1, description="Jobs that one user may have news of at a time."
    )

    @field_validator("mail_domain")
    @classmethod
    def _is_domain(cls, domain: str) -> str:
        return refused_as_value(domain, _check_domain)

    @field_validator("mail_from")
    @classmethod
    def _is_address(cls, address: str) -> str:
        return refused_as_value(address, _check_address)

    @property
    def by_mail(self) -> bool:
        """Whether they are mailed."""
        return self.way in ("sendmail", "smtp")

    @property
    def sender(self) -> str:
        """The sender of mail."""
        return self.mail_from or f"foretime@{self.mail_domain}"
