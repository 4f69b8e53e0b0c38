"""``foretime decisions`` and ``foretime explain``: the audit."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.daemon_options import SettingsOption, SocketOption, where
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.since_option import parse_since


def decisions(
    job: Annotated[
        str | None, typer.Option("--job", metavar="JOBID", help="Of this job or job array alone.")
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Of this user's jobs alone.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Since this time: how long ago (D-HH:MM:SS), or a date."
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=100_000, help="The latest so many.")
    ] = 100,
    queue_order: Annotated[
        bool,
        typer.Option(
            "--queue-order", help="Instead: when dynP put the queue in which order, and why."
        ),
    ] = False,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Show the audit: what each job was planned with instead of what was asked for, and why.

    Users see their own jobs, root and the daemon's user everybody's.

    Example: [bold]foretime decisions --user alice --since 1-00:00:00[/bold]
    """
    begin = None if since is None else parse_since(since, time.time())
    daemon = SiteDaemon(where(settings, socket_path))
    found: Sequence[Mapping[str, Any]]
    if queue_order:
        if job is not None or user is not None:
            raise InputError("--queue-order is of the whole queue: leave out --job and --user")
        found = daemon.queue_order_switches(begin, limit)["switches"]
    else:
        found = daemon.decisions(job, user, begin, limit)["decisions"]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif not found:
        say("No such decisions.")
    else:
        # Rich is imported once the daemon has answered.
        from foretime_sidecar.cli.reports.decision_tables import (
            decision_table,
            reason_lines,
            switch_table,
        )
        from foretime_sidecar.cli.reports.whole_tables import print_whole

        print_whole(switch_table(found) if queue_order else decision_table(found))
        if not queue_order:
            say("\n".join(reason_lines(found)))


def explain(
    job: Annotated[
        str, typer.Argument(metavar="JOBID", help="The job, as squeue or qstat shows it.")
    ],
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Say what Foretime did with a job of yours, and why.

    Example: [bold]foretime explain 4711[/bold]
    """
    answer = SiteDaemon(where(settings, socket_path)).explain(job)
    if as_json:
        typer.echo(json.dumps(answer, indent=2))
        return
    from foretime_sidecar.cli.reports.explanation import explanation

    say("\n".join(explanation(answer)))
