"""``foretime decisions`` and ``foretime explain``: the audit."""

from __future__ import annotations

import datetime
import json
import math
import time
from typing import Annotated, Any

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import ask
from foretime_sidecar.cli.daemon_options import JsonOption, SettingsOption, SocketOption, where
from foretime_sidecar.wording.durations import format_duration, parse_duration
from foretime_sidecar.wording.waits import dated_clock


def parse_since(text: str, now: float) -> int:
    """Read a time: a duration ago (as for sbatch), or a date or time of the local clock.

    Raises
    ------
    InputError
        If it is neither.
    """
    try:
        return int(datetime.datetime.fromisoformat(text).timestamp())
    except ValueError:
        pass
    try:
        return max(math.floor(now) - parse_duration(text, "--since"), 0)
    except InputError:
        raise InputError(
            f"--since: {text!r} is neither how long ago (1-00:00:00 is a day) nor a date such as "
            "2026-11-21 or 2026-11-21T13:00"
        ) from None


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
    asked = {
        "job": job,
        "user": user,
        "since": None if since is None else parse_since(since, time.time()),
        "limit": limit,
    }
    if queue_order:
        if job is not None or user is not None:
            raise InputError("--queue-order is of the whole queue: leave out --job and --user")
        path, name = "/v1/queue-order/switches", "switches"
    else:
        path, name = "/v1/decisions", "decisions"
    found = ask(where(settings, socket_path), path, asked)[name]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif not found:
        typer.echo("No such decisions.")
    else:
        # Rich is imported once the daemon has answered.
        from foretime_sidecar.cli.decision_tables import decision_table, switch_table
        from foretime_sidecar.cli.whole_tables import print_whole

        print_whole(switch_table(found) if queue_order else decision_table(found))


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
    answer = ask(where(settings, socket_path), "/v1/explain", {"job": job})
    typer.echo(json.dumps(answer, indent=2) if as_json else "\n".join(describe(answer)))


def describe(answer: dict[str, Any]) -> list[str]:
    """Put what the daemon knows of a job in words."""
    asked = format_duration(answer["requested_time_s"])
    new = answer["scheduled_time_s"]
    said = {
        "planned": "is planned with {new}",
        "changed": "is planned with {new} now",
        "observed": "would be planned with {new}, but is not",
        "advised": "would be planned with {new}, but is not",
        "unplanned": "would be planned with {new}, but is not",
        "left": "is planned with all of it",
        "cleared": "is planned with all of it again",
    }[answer["action"]].format(new="" if new is None else format_duration(new))
    who = f"Job {answer['job_id']} of {answer['user'] or 'an unknown user'}"
    lines = [
        f"{who} asks for {asked}, and {said}: {answer['why']}.",
        f"It may run for {asked} in any case: what it is planned with ends no job.",
    ]
    own = answer["own_jobs"]
    if answer["estimated_from"] is not None:
        lines.append(f"What it needs is estimated from {answer['estimated_from']}.")
    elif own is None:
        lines.append("None of your jobs of such a length has ended since Foretime looks.")
    elif own["adjustment"] is None and own["submissions"] >= own["threshold"]:
        lines.append(f"{own['submissions']} submissions of such a length have ended.")
    elif own["adjustment"] is None:
        lines.append(
            f"{own['submissions']} submissions of such a length have ended; "
            f"{own['threshold']} are needed before they are planned shorter."
        )
    else:
        lines.append(
            f"{own['submissions']} submissions of such a length have ended; most used at most "
            f"{own['adjustment']:.0%} of what they asked for."
        )
    for one in answer["history"]:
        new = one["scheduled_time_s"]
        planned = "" if new is None else f" with {format_duration(new)}"
        lines.append(f"  {dated_clock(one['made_at'])}  {one['action']}{planned} ({one['reason']})")
    return lines
