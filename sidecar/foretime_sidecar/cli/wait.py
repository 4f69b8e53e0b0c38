"""``foretime wait``: ask the daemon when a job would start."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from foretime_estimators.errors import ForetimeError

from foretime_sidecar.daemon_client import ask, where
from foretime_sidecar.durations import format_duration, parse_duration

# An old look at the queue is worth a word.
_OLD_S = 600


def wait(
    processors: Annotated[
        int, typer.Option("--ntasks", "-n", min=1, help="Processors, as for sbatch.")
    ],
    time: Annotated[
        str,
        typer.Option(
            "--time", "-t", metavar="TIME", help="Time limit, as for sbatch: minutes, D-HH:MM:SS..."
        ),
    ],
    account: Annotated[
        str | None, typer.Option("--account", "-A", help="Account (project) to charge.")
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", "-p", help="slurm_partition.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the daemon's own answer, or why there is none.")
    ] = False,
    settings: Annotated[
        Path | None,
        typer.Option("--settings", metavar="FILE", help="The daemon's settings, for where it is."),
    ] = None,
    socket_path: Annotated[
        Path | None, typer.Option("--socket", metavar="PATH", help="The daemon's unix socket.")
    ] = None,
) -> None:
    """Say how long a job would wait if it were submitted now.

    Exit codes: 0, 2 for a wrong question, 3 if the daemon does not answer.

    Example: [bold]foretime wait -n 64 -t 2:00:00 -A physics[/bold]
    """
    parse_duration(time)
    asked = {"processors": processors, "time": time, "project": account, "partition": partition}
    try:
        answer = ask(where(settings, socket_path), "/v1/forecast", asked)
    except ForetimeError as error:
        if not as_json:
            raise
        what, _, remedy = str(error).partition("; ")
        typer.echo(json.dumps({"error": {"what": what, "remedy": remedy}}, indent=2))
        raise typer.Exit(error.exit_code) from None
    typer.echo(json.dumps(answer, indent=2) if as_json else describe(answer))


def describe(answer: dict[str, Any]) -> str:
    """Put a forecast in words."""
    asked = format_duration(answer["requested_time_s"])
    lines = []
    if answer["start_time"] is None:
        lines.append(f"No forecast: {'; '.join(answer['assumptions'])}.")
    else:
        start = datetime.datetime.fromtimestamp(answer["start_time"]["0.5"]).astimezone()
        waits, surely = answer["likely_wait_s"], answer["wait_s"]["0.95"]
        when = "at once" if waits == 0 else f"in {format_duration(waits)} ({start:%Y-%m-%d %H:%M})"
        lines.append(f"Expected start: {when}, for {answer['processors']} processors and {asked}")
        if surely > waits:
            lines.append(f"95% sure within {format_duration(surely)}.")
        if answer["scheduled_time_s"] < answer["requested_time_s"]:
            expected = format_duration(answer["scheduled_time_s"])
            lines.append(f"Such jobs of yours have mostly ended within {expected}.")
    queue = (
        f"The queue of {format_duration(answer['snapshot_age_s'])} ago: "
        f"{answer['running_jobs']} running, {answer['pending_jobs']} waiting"
    )
    if answer["left_out"]:
        left_out = ", ".join(f"{count} {why}" for why, count in answer["left_out"].items())
        queue += f"; left out: {left_out}"
    lines.append(f"{queue}.")
    if answer["snapshot_age_s"] > _OLD_S:
        lines.append("That is long ago: the daemon does not reach the scheduler.")
    if answer["start_time"] is not None:
        lines.append(f"Assumed: {'; '.join(answer['assumptions'])}.")
    return "\n".join(lines)
