"""``foretime forget``: what is stored of a user, shown or erased."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption, SocketOption, where
from foretime_sidecar.cli.options.json_option import JsonOption

_WORDS = {
    "jobs": "finished jobs",
    "decisions": "notes of the hook on jobs",
    "job_decisions": "lines of the audit",
    "served_forecasts": "forecasts of waits",
    "start_bounds": "bounds of starts",
    "plain_starts": "jobs of the plain scheduler beside",
    "told_users": "when they were told what their jobs use",
    "watched_jobs": "jobs that news are sent of",
    "head_jobs": "jobs seen at the queue's head",
}


def forget(
    user: Annotated[
        str | None, typer.Argument(metavar="[USER]", help="Whose; your own if left out.")
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print all that is stored as JSON, and erase nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether to.")] = False,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Erase what the daemon has stored of a user, or show it.

    Users may do so for themselves, root, the daemon's user and operators for anybody. The
    scheduler's own accounting is not touched, but what ended until now is not taken from it again.

    Exit codes: 0, 2 if refused or not confirmed, 3 if the daemon does not answer.

    Example: [bold]foretime forget alice --show[/bold]
    """
    daemon = SiteDaemon(where(settings, socket_path))
    if show:
        typer.echo(json.dumps(daemon.personal(user), indent=2))
        return
    if not yes:
        # Asked first: nobody is to confirm what then fails, or of somebody else than they think.
        _confirm(daemon.personal(user)["user"])
    answer = daemon.forget(user)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    if any(answer["erased"].values()):
        say(f"Erased of {answer['user']}:")
        for table, count in answer["erased"].items():
            say(f"{count:>9,}  {_WORDS[table]}")
        say("A table without them is published at the next look at the queue.")
    else:
        say(f"Nothing was stored of {answer['user']}; is that the login name?")
    say("A mark stays: what ended until now is not taken from the accounting again.")


def _confirm(whose: str) -> None:
    """Ask whether to, and go on only after a yes."""
    try:
        sure = typer.confirm(f"Erase what is stored of {whose}? It can't be undone.", err=True)
    except typer.Abort:  # nobody there who could answer, or Ctrl-C
        sure = False
    if not sure:
        raise InputError(f"nothing of {whose} was erased; answer y to erase it, or give --yes")
