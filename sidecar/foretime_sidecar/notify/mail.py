"""Mail about a job: to whom, what stands in it, and how this machine's sendmail takes it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from email.message import EmailMessage
from email.utils import format_datetime, localtime, make_msgid

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.notify.start_news import News
from foretime_sidecar.wording.clocks import zone_name

# No name that a shell, a mail program or a header could take for something else.
_PART = r"[A-Za-z0-9_+-]{1,63}"
_NAME = re.compile(rf"(?!-){_PART}(\.{_PART})*", re.ASCII)
_TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
_MOST_SAID = 200


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
    times = f"Times are in the time zone {zone_name(news.at)}."
    mail.set_content(f"{news.text}\n\n{times}\n{how_to_stop}\n", cte="quoted-printable")
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
        code, said = _run([*command, "--", str(mail["To"])], mail.as_bytes(), timeout_s)
    except subprocess.TimeoutExpired as error:
        raise NotSentError(f"{program} took more than {timeout_s} s", passing=True) from error
    except OSError as error:
        why = f"{program} can't be run: {error.strerror}"
        raise NotSentError(why, passing=False) from error
    if code:
        raise NotSentError(
            f"{program} ended with code {code}: {said or 'it said nothing'}",
            passing=code == _TRY_AGAIN,
        )


def _run(command: Sequence[str], stdin: bytes, timeout_s: int) -> tuple[int, str]:
    """Run a command to its own end, whatever it leaves running; give its code, what it said.

    One that is too slow is killed with all that it has begun: where Postfix's postdrop may not
    write, it tries for ever.
    """
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(  # noqa: S603 - no shell is in between, and both addresses are checked
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            start_new_session=True,
        ) as child,
    ):
        try:
            child.communicate(stdin, timeout_s)
        except BaseException:
            with contextlib.suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            raise
        said.seek(0)
        return child.returncode, " ".join(said.read(_MOST_SAID).decode(errors="replace").split())
