"""News of a job as ``foretime wait --notify`` tells it: on the terminal, by mail, by the daemon."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import sys
import time
from collections.abc import Callable, Iterable

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.answers.job_notices import notices
from foretime_sidecar.answers.wait_watch import Update
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.notify.mail import NotSentError, address_of, mail_of, send_by_sendmail
from foretime_sidecar.notify.start_news import News
from foretime_sidecar.wording.clocks import spoken_clock
from foretime_sidecar.wording.waits import headline

_BELL = "\a"
_MAIL_S = 60
# Where sendmail is on machines whose users do not have it on their PATH.
_SENDMAIL_DIRS = "/usr/sbin:/usr/lib"


def notify_here(found: Iterable[Update], job: str, *, mail: bool, as_json: bool) -> None:
    """Tell news as they come, until the job has left the queue.

    Raises
    ------
    InputError
        If they are to be mailed, and this machine can't.
    """
    send = _mailer(job) if mail else None
    for number, (update, news) in enumerate(notices(found, job, time.time)):
        now = int(time.time())
        if not number and not update.last and not as_json:
            say(f"{spoken_clock(now, now)}  {headline(update.forecast, now)}")
        if news is None:
            continue
        if as_json:
            typer.echo(json.dumps(news.as_json()))
        else:
            if sys.stdout.isatty():
                typer.echo(_BELL, nl=False)
            say(f"{spoken_clock(now, now)}  {news.text}")
        if send is not None:
            send(news)


def _mailer(job: str) -> Callable[[News], None]:
    """Give what mails news to who runs this."""
    program = shutil.which("sendmail") or shutil.which("sendmail", path=_SENDMAIL_DIRS)
    if program is None:
        raise InputError("this machine has no sendmail; use --notify bell, or --notify daemon")
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        raise InputError("this machine does not know your login name; use --notify bell") from None
    to = address_of(user, "")
    how_to_stop = f"Sent by foretime wait {job} --notify mail, which ends with the job's wait."

    def send(news: News) -> None:
        try:
            send_by_sendmail(program, mail_of(news, to, "", how_to_stop), _MAIL_S)
        except NotSentError as error:
            say(f"Not mailed: {error}", err=True)

    return send


def notify_by_daemon(listen: str, job: str, *, stop: bool, as_json: bool) -> None:
    """Have the daemon send news of a job, or send none any more."""
    daemon = SiteDaemon(listen)
    answer = daemon.stop_notifying(job) if stop else daemon.notify(job)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
    elif stop:
        say(f"The daemon sends no more news of job {job}.")
    else:
        to = answer["address"] or "the site's webhook"
        say(f"The daemon sends news of job {job} to {to}, until it no longer waits.")
        say(f"To stop: foretime wait {job} --notify off")
