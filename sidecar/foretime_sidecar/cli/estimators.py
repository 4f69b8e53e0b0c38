"""``foretime estimators``: how every estimator does on the site's own jobs."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from foretime_estimators.jobs.errors import InputError
from rich.table import Table
from rich.text import Text

from foretime_sidecar.answers.daemon_client import ask
from foretime_sidecar.cli.daemon_options import (
    JsonOption,
    SettingsOption,
    SocketOption,
    where,
)
from foretime_sidecar.cli.decisions import parse_since
from foretime_sidecar.cli.progress_bar import progress_bar
from foretime_sidecar.cli.site_settings import site_settings
from foretime_sidecar.cli.whole_tables import print_whole
from foretime_sidecar.scoreboard.estimator_board import estimator_in_use
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.wording.durations import format_duration
from foretime_sidecar.wording.numbers import counted

_WEEKS = 8  # replayed where the command does not say
_NICENESS = 10  # whatever else the service node does goes first


def estimators(
    by_class: Annotated[
        bool,
        typer.Option(
            "--classes", help="Accuracy by requested time, processors and the user's experience."
        ),
    ] = False,
    switches: Annotated[
        bool,
        typer.Option("--switches", help="Which was in use since when, and which was better."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(
            "--since", metavar="TIME", help="Switches since: how long ago (D-HH:MM:SS), or a date."
        ),
    ] = None,
    replay: Annotated[
        bool,
        typer.Option(
            "--replay",
            help="Replay the store's last weeks, planned by each estimator, and show what it does "
            "to waits; the daemon is not asked.",
        ),
    ] = False,
    weeks: Annotated[
        int | None,
        typer.Option("--weeks", min=1, max=500, help="So many are replayed; 8 if left out."),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Replay these, comma-separated."),
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(
            "--processors",
            min=1,
            help="Of the machine that is replayed; as many as ran jobs at a time, if left out.",
        ),
    ] = None,
    as_json: JsonOption = False,
    settings: SettingsOption = None,
    socket_path: SocketOption = None,
) -> None:
    """Show how well every estimator predicts the site's runtimes, the best one first.

    Each predicts every job at its submission and is scored when the job ends, recent jobs more.
    Run it as root.

    Exit codes: 0, 2 if refused, 3 if the daemon does not answer.

    Example: [bold]foretime estimators --replay --weeks 12[/bold]
    """
    if by_class + switches + replay > 1:
        raise InputError("--classes, --switches and --replay are different tables: give one")
    if not replay and (only or weeks is not None or processors is not None):
        raise InputError("--weeks, --only and --processors are for --replay: give it, too")
    if since is not None and not switches:
        raise InputError("--since is for --switches: the scores fade by themselves")
    if replay:
        names = [name.strip() for text in only or () for name in text.split(",")]
        _replay(settings, names, weeks or _WEEKS, processors, as_json=as_json)
        return
    listen = where(settings, socket_path)
    if switches:
        asked = {} if since is None else {"since": parse_since(since, time.time())}
        found = ask(listen, "/v1/estimators/switches", asked)["switches"]
        _print_switches(found, as_json=as_json)
        return
    board = ask(listen, "/v1/estimators", {})
    if as_json:
        typer.echo(json.dumps(board, indent=2))
    elif by_class and not any(row["classes"] for row in board["rows"]):
        typer.echo("No job has been scored yet; ask again in a few minutes.")
    elif by_class:
        print_whole(_classes(board))
    else:
        typer.echo(_heading(board))
        print_whole(_scores(board))
        typer.echo("\n".join(_words(board)))


def _heading(board: dict[str, Any]) -> str:
    jobs = max((row["jobs"] for row in board["rows"]), default=0)
    return (
        f"{counted(jobs, 'job')} that ended on {counted(board['days'], 'day')}, a day's counting "
        f"half as much after {counted(board['half_life_days'], 'day')}; intervals of 95%"
    )


def _scores(board: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("estimator")
    for name in (
        "accuracy",
        "behind the best",
        "too short",
        "covered",
        "log error",
        "error",
        "pinball",
        "jobs",
        "cost",
    ):
        table.add_column(name, justify="right")
    for row in board["rows"]:
        mark = "*" if row["in_use"] else "=" if row["as_good"] and row["eligible"] else ""
        if row["set_aside"]:
            mark = "-"
        words = (
            mark,
            row["name"],
            _share(row["accuracy"], row["accuracy_interval"]),
            "" if row["name"] == board["best"] else _share(row["behind"], row["behind_interval"]),
            _share(row["under_predicted"]),
            _share(row["covered"]),
            _number(row["log_error"], "{:.2f}"),
            _duration(row["error_s"]),
            _duration(row["pinball_s"]),
            f"{row['jobs']:,}",
            _number(row["cost_s"] and 1000 * row["cost_s"], "{:.2f} ms"),
        )
        table.add_row(*map(Text, words))
    return table


def _share(value: float | None, interval: dict[str, float] | None = None) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:.1f}%"
    if interval is None:
        return text
    return f"{text} [{100 * interval['low']:.1f} to {100 * interval['high']:.1f}]"


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _duration(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(round(seconds))


def _words(board: dict[str, Any]) -> list[str]:
    """Say what follows from the table."""
    lines = ["* in use   = as good as the best, as far as can be told   - set aside"]
    lines += [f"{row['name']}: {row['set_aside']}" for row in board["rows"] if row["set_aside"]]
    if not board["complete"]:
        lines.append("Not all jobs that are stored have been gone through yet.")
    for key, why in (
        ("late", "seen too late to be predicted"),
        ("too_many", "left out, as there were too many at a time (estimators.most_jobs)"),
    ):
        if board[key]:
            lines.append(f"{counted(board[key], 'job')} {why}.")
    limit = 100 * board["most_under_predicted"]
    beyond = [
        row["name"]
        for row in board["rows"]
        if row["jobs"] and not row["eligible"] and not row["set_aside"]
    ]
    if beyond:
        lines.append(
            f"Too short for more than {limit:g}% of jobs (breaker.most_outliving_percent): "
            + ", ".join(beyond)
        )
    lines.append(_advice(board))
    return lines


def _advice(board: dict[str, Any]) -> str:
    used, best, better = board["in_use"], board["best"], board["more_accurate"]
    if best is None:
        return "No estimator can be recommended."
    if used == best:
        return f"Jobs are planned by {used}, the best one."
    if better is None:
        if any(row["in_use"] and row["as_good"] for row in board["rows"]):
            return f"Jobs are planned by {used}: that {best} is better may be chance."
        return f"Jobs are planned by {used}; it takes more days to tell whether {best} is better."
    return (
        f"Jobs are planned by {used}, and {better} predicts them better. What planning by it does "
        f"to waits is another question: foretime estimators --replay --only {used},{better}. To "
        f"plan by it: {_how(better)}, and restart the daemon."
    )


def _how(estimator: str) -> str:
    if estimator in ("user", "project", "combined"):
        return f'accuracy.scheme = "{estimator}"'
    return f'accuracy.scheme = "learned", learned.estimator = "{estimator}"'


def _classes(board: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False)
    rows = [row for row in board["rows"] if row["classes"]]
    kinds: dict[tuple[str, str], int] = {}
    for row in rows:
        for one in row["classes"]:
            kinds[one["kind"], one["label"]] = max(
                one["jobs"], kinds.get((one["kind"], one["label"]), 0)
            )
    table.add_column("estimator")
    for kind, label in kinds:
        table.add_column(f"{_KINDS[kind]}\n{label}", justify="right")
    for row in rows:
        known = {(one["kind"], one["label"]): one for one in row["classes"]}
        cells = [_share(known[key]["accuracy"]) if key in known else "-" for key in kinds]
        table.add_row(*map(Text, (row["name"], *cells)))
    table.add_row("jobs", *(f"{jobs:,}" for jobs in kinds.values()))
    return table


_KINDS = {
    "requested_time": "requested time",
    "processors": "processors",
    "user": "user had",
}


def _print_switches(found: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    if not found:
        typer.echo("No switches yet: the log begins when all stored jobs have been gone through.")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("time", "event", "estimator", "instead of", "accuracy", "instead of's", "jobs"):
        table.add_column(name)
    for one in found:
        new = one["evidence"].get(one["estimator"], {})
        old = one["evidence"].get(one["instead_of"], {})
        moment = datetime.datetime.fromtimestamp(one["happened_at"]).astimezone()
        words = (
            f"{moment:%Y-%m-%d %H:%M:%S}",
            one["event"],
            one["estimator"],
            one["instead_of"] or "-",
            _share(new.get("accuracy"), new.get("accuracy_interval")),
            _share(old.get("accuracy"), old.get("accuracy_interval")),
            f"{new.get('jobs', 0):,}",
        )
        table.add_row(*map(Text, words))
    print_whole(table)


# -- replay ----------------------------------------------------------------------------------------


def _replay(
    path: Path | None, names: list[str], weeks: int, processors: int | None, *, as_json: bool
) -> None:
    # Here, as they are slow to load and the other tables need none of them.
    from foretime_sidecar.replays.estimator_replay import METRICS, Replayed, replay_estimators
    from foretime_sidecar.replays.stored_workload import stored_workload
    from foretime_sidecar.scoreboard.shadow_estimators import shadow_estimators

    def cells(one: Replayed) -> tuple[str, ...]:
        if one.failure:
            return ("", one.name, one.failure)
        shown = [f"{one.figures['bounded_slowdown_mean']:.1f}"]
        shown += [_duration(one.figures[key]) for key in METRICS[1:]]
        figures = []
        for key, text in zip(METRICS, shown, strict=True):
            interval = one.intervals[key]
            gain = f"{-100 * one.gains[key]:+.1f}%"
            if interval is not None:
                gain += f" [{-100 * interval.high:+.1f} to {-100 * interval.low:+.1f}]"
            figures += [text, "" if one.name == "requested" else gain]
        mark = "*" if one.name == used else ""
        return (mark, one.name, *figures, f"{100 * one.outlived:.1f}%")

    chosen = site_settings(path)
    used = estimator_in_use(chosen)
    if not names:
        model = chosen.accuracy.to_model()
        names = [one.name for one in shadow_estimators(chosen.estimators.names, used, model)]
    stored = stored_workload(Path(chosen.store.path), 7 * weeks, processors)
    os.nice(_NICENESS)
    runs = len({*names, "requested"})
    with progress_bar("replaying", runs * len(stored.workload), "jobs") as show:
        found = replay_estimators(stored, names, chosen, show)
    if as_json:
        answer = {
            "jobs": len(stored.workload),
            "history_jobs": 0 if stored.history is None else len(stored.history),
            "machine_processors": stored.workload.machine_processors,
            "in_use": used,
            "estimators": [dataclasses.asdict(one) for one in found],
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    typer.echo(
        f"{len(stored.workload):,} jobs of {weeks} weeks on {stored.workload.machine_processors:,} "
        f"processors, {_scheduler(chosen)}; changes against the requested times"
    )
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("estimator")
    for name in ("AVEbsld", "", "mean wait", "", "p99 wait", "", "longest", "", "outlived"):
        table.add_column(name, justify="right")
    for one in found:
        table.add_row(*map(Text, cells(one)))
    print_whole(table)


def _scheduler(settings: Settings) -> str:
    """Say how the scheduler is replayed."""
    order = "fcfs" if settings.forecast.order == "priority" else settings.forecast.order
    return f"order {order}, backfilling {settings.forecast.backfill}, {settings.hook.mechanism}"
