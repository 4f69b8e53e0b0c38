"""``foretime wait``: ask the daemon when a job would start."""

from __future__ import annotations

import datetime
import json
import socket
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import requests
import requests_unixsocket
import tenacity
import typer
from foretime_estimators.errors import ForetimeError, InputError

from foretime_sidecar.durations import format_duration, parse_duration
from foretime_sidecar.listener import parse_listen
from foretime_sidecar.settings import ApiSettings, read_settings

_CONNECT_S, _ANSWER_S = 2, 60
_ATTEMPTS = 3
# An old look at the queue is worth a word.
_OLD_S = 600
_ELSEWHERE = "; give --settings or --socket, to say where it is"


class DaemonError(ForetimeError):
    """The daemon did not answer, or could not; the administrator must look."""

    exit_code = 3


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
    where = _where(settings, socket_path)
    asked = {"processors": processors, "time": time, "project": account, "partition": partition}
    try:
        answer = ask(where, asked)
    except ForetimeError as error:
        if not as_json:
            raise
        what, _, remedy = str(error).partition("; ")
        typer.echo(json.dumps({"error": {"what": what, "remedy": remedy}}, indent=2))
        raise typer.Exit(error.exit_code) from None
    typer.echo(json.dumps(answer, indent=2) if as_json else describe(answer))


def _where(settings: Path | None, socket_path: Path | None) -> str:
    if socket_path is not None:
        if settings is not None:
            raise InputError("--socket and --settings both say where the daemon is: give one")
        return f"unix:{socket_path.absolute()}"
    return (ApiSettings() if settings is None else read_settings(settings).api).listen


def ask(listen: str, question: dict[str, Any]) -> dict[str, Any]:
    """Ask the daemon for a forecast.

    Parameters
    ----------
    listen
        Where it is, as in ``api.listen``.
    question
        Parameters of ``/v1/forecast``; ``None`` leaves one out.

    Raises
    ------
    InputError
        If the daemon finds the question wrong.
    DaemonError
        If it does not answer, or can't.
    """
    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=0.1, max=1) + tenacity.wait_random(0, 0.1),
        retry=tenacity.retry_if_exception_type(
            (requests.ConnectionError, ConnectionError, FileNotFoundError)
        ),
        reraise=True,
    )
    try:
        reply = retrying(_get, parse_listen(listen), question)
        body = reply.json()
    except PermissionError as error:
        raise DaemonError(
            f"you may not connect to {listen}; ask the administrator about api.socket_mode"
        ) from error
    except requests.Timeout as error:
        raise DaemonError(
            f"the foretime daemon at {listen} took more than {_ANSWER_S} s; try again later"
        ) from error
    except requests.JSONDecodeError as error:
        raise DaemonError(
            f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}"
        ) from error
    except OSError as error:  # which requests' own errors are, too
        raise DaemonError(
            f"no foretime daemon answers at {listen}; is it running (systemctl status foretime)?"
        ) from error
    if not isinstance(body, dict):
        raise DaemonError(f"{listen}: what answers there is no foretime daemon{_ELSEWHERE}")
    if "error" in body:
        said = f"{body['error']['what']}; {body['error']['remedy']}"
        raise InputError(said) if reply.status_code < 500 else DaemonError(said)
    return body


def _get(where: Path | tuple[str, int], question: dict[str, Any]) -> requests.Response:
    if isinstance(where, Path):
        # requests hides why a unix socket can't be connected to.
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_CONNECT_S)
            probe.connect(str(where))
        base = f"http+unix://{quote(str(where), safe='')}"
    else:
        host = f"[{where[0]}]" if ":" in where[0] else where[0]
        base = f"http://{host}:{where[1]}"
    with requests_unixsocket.Session() as session:
        session.trust_env = False  # no proxy stands between us and our own machine
        reply: requests.Response = session.get(
            f"{base}/v1/forecast", params=question, timeout=(_CONNECT_S, _ANSWER_S)
        )
        return reply


def describe(answer: dict[str, Any]) -> str:
    """Put a forecast in words."""
    asked = format_duration(answer["requested_time_s"])
    lines = []
    if answer["start_time"] is None:
        lines.append(f"No forecast: {'; '.join(answer['assumptions'])}.")
    else:
        start = datetime.datetime.fromtimestamp(answer["start_time"]).astimezone()
        waits = answer["wait_s"]
        when = "at once" if waits == 0 else f"in {format_duration(waits)} ({start:%Y-%m-%d %H:%M})"
        lines.append(f"Expected start: {when}, for {answer['processors']} processors and {asked}")
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
