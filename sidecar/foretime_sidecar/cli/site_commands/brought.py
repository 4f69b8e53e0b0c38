"""``foretime brought``: the hours of waiting that Foretime has saved so far."""

from __future__ import annotations

import json
import time
from typing import Annotated, Literal

import typer

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption, SocketOption, where
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.since_option import parse_since
from foretime_sidecar.cli.reports.brought_tables import brought_notes, brought_tables
from foretime_sidecar.cli.reports.whole_tables import print_whole


def brought(
    by: Annotated[
        Literal["user", "size", "week"],
        typer.Option("--by", help="What the rows are by: user, size of jobs, or week."),
    ] = "week",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Jobs that could start since: how long ago (D-HH:MM:SS), or a date.",
        ),
    ] = "28-00:00:00",
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Say how many hours of waiting Foretime has saved, or would save where it only observes.

    Users see their own jobs; run it as root for everybody's.

    Exit codes: 0, 2 if refused, 3 if the daemon does not answer.

    Example: [bold]foretime brought --by user --since 14-00:00:00[/bold]
    """
    daemon = SiteDaemon(where(settings, socket_path))
    answer = daemon.brought(parse_since(since, time.time()), by)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    tables = brought_tables(answer)
    if not tables:
        say("Nothing can be told yet: a day is compared when it is over.")
    for heading, table in tables:
        say(heading)
        print_whole(table)
    say("\n".join(brought_notes(answer)))
