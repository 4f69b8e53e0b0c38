"""Mail about a job: to whom, what stands in it, and how this machine's sendmail takes it."""

from __future__ import annotations

import re
import subprocess
from email.message import EmailMessage
from email.utils import format_datetime, localtime, make_msgid

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.clients.child_process import spawn
from foretime_sidecar.notify.start_news import News

# No name that a shell, a mail program or a header could take for something else.
_PART = r"[A-Za-z0-9_+-]{1,63}"
_NAME = re.compile(rf"(?!-){_PART}(\.{_PART})*", re.ASCII)
_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h


class NotSentError(Exception):
    """A message was not sent.

    Parameters
    ----------
    why
        In words; nothing secret.
    passing
        Whether it may work in a while.
    """

    def __init__(self, why: str, *, passing: bool) -> None:
        super().__init__(why)
        self.passing = passing


def address_of(user: str, domain: str) -> str:
    """Give a user's mail address; without a domain the mailbox on this machine.

    Raises
    ------
    InputError
        If a login name is none of mail.

    Examples
    --------
    >>> from foretime_sidecar.notify.mail import address_of
    >>> address_of("ann", "hpc.example.org")
    'ann@hpc.example.org'
    """
    if not _NAME.fullmatch(user):
        raise InputError(
            f"the login name {user!r} can't be a mail address; use foretime wait JOB --notify bell"
        )
    return f"{user}@{domain}" if domain else user


def mail_of(news: News, to: str, sender: str, how_to_stop: str) -> EmailMessage:
    """Write the mail that tells news; ``sender`` "" is left to the mail program."""
    mail = EmailMessage()
    mail["To"] = to
    if sender:
        mail["From"] = sender
    mail["Subject"] = news.text.rstrip(".")
    mail["Date"] = format_datetime(localtime())
    # The same at each attempt, so that a mail that comes twice is known for one.
    mail["Message-ID"] = make_msgid(domain=sender.partition("@")[2] or None)
    mail["Auto-Submitted"] = "auto-generated"  # nobody's holiday note answers it
    mail.set_content(f"{news.text}\n\n{how_to_stop}\n", cte="quoted-printable")
    return mail


def send_by_sendmail(program: str, mail: EmailMessage, timeout_s: int) -> None:
    """Hand a mail to a sendmail program, such as Postfix's or Exim's.

    Raises
    ------
    NotSentError
        If it can't be run, does not take the mail, or not in time.
    """
    command = [program, "-i"]
    if mail["From"]:
        command += ["-f", str(mail["From"])]
    try:
        done = spawn([*command, "--", str(mail["To"])], timeout_s, stdin=mail.as_string())
    except subprocess.TimeoutExpired as error:
        raise NotSentError(f"{program} took more than {timeout_s} s", passing=True) from error
    except OSError as error:
        why = f"{program} can't be run: {error.strerror}"
        raise NotSentError(why, passing=False) from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())[:200]
        raise NotSentError(
            f"{program} ended with code {done.returncode}: {said or 'it said nothing'}",
            passing=done.returncode == _TRY_AGAIN,
        )
