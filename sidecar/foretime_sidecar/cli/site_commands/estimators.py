"""``foretime estimators``: how every estimator does on the site's own jobs."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.frame.progress_bar import progress_bar
from foretime_sidecar.cli.options.daemon_options import (
    SettingsOption,
    SocketOption,
    where,
)
from foretime_sidecar.cli.options.json_option import JsonOption
from foretime_sidecar.cli.options.since_option import parse_since
from foretime_sidecar.cli.options.site_settings import site_settings
from foretime_sidecar.cli.reports.estimator_tables import (
    class_table,
    conclusions,
    heading,
    score_table,
    switch_table,
)
from foretime_sidecar.cli.reports.whole_tables import print_whole
from foretime_sidecar.scoreboard.estimator_board import estimator_in_use
from foretime_sidecar.settings.settings import Settings

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
    elif switches:
        _show_switches(where(settings, socket_path), since, as_json=as_json)
    else:
        _show_board(where(settings, socket_path), by_class=by_class, as_json=as_json)


def _show_switches(listen: str, since: str | None, *, as_json: bool) -> None:
    begin = None if since is None else parse_since(since, time.time())
    found = SiteDaemon(listen).estimator_switches(begin)["switches"]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
    elif not found:
        say("No switches yet: the log begins when all stored jobs have been gone through.")
    else:
        print_whole(switch_table(found))


def _show_board(listen: str, *, by_class: bool, as_json: bool) -> None:
    board = SiteDaemon(listen).estimators()
    if as_json:
        typer.echo(json.dumps(board, indent=2))
    elif not board["days"] or (by_class and not any(row["classes"] for row in board["rows"])):
        say("No job has been scored yet; ask again in a few minutes.")
    elif by_class:
        print_whole(class_table(board))
    else:
        say(heading(board))
        print_whole(score_table(board))
        say("\n".join(conclusions(board)))


def _replay(
    path: Path | None, names: list[str], weeks: int, processors: int | None, *, as_json: bool
) -> None:
    """Replay the stored weeks, planned by each estimator, and show what it does to waits."""
    # Here, as they are slow to load and the other tables need none of them.
    from foretime_sidecar.cli.reports.estimator_replay_table import (
        replay_heading,
        replay_json,
        replay_table,
    )
    from foretime_sidecar.replays.estimator_replay import replay_estimators
    from foretime_sidecar.replays.stored_workload import stored_workload

    chosen = site_settings(path)
    used = estimator_in_use(chosen)
    names = names or _shadowed(chosen, used)
    stored = stored_workload(Path(chosen.store.path), 7 * weeks, processors)
    os.nice(_NICENESS)
    runs = len({*names, "requested"})
    with progress_bar("replaying", runs * len(stored.workload), "jobs") as show:
        found = replay_estimators(stored, names, chosen, show)
    if as_json:
        typer.echo(json.dumps(replay_json(stored, found, used), indent=2))
    else:
        say(replay_heading(stored, weeks, chosen))
        print_whole(replay_table(found, used))


def _shadowed(chosen: Settings, used: str) -> list[str]:
    """Name the estimators that the daemon keeps beside the one in use, and that one."""
    from foretime_sidecar.scoreboard.shadow_estimators import shadow_estimators

    model = chosen.accuracy.to_model()
    return [one.name for one in shadow_estimators(chosen.estimators.names, used, model)]
