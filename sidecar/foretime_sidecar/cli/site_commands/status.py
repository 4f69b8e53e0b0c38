"""``foretime status``: how things stand, in a few lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import typer
from foretime_estimators.jobs.errors import ForetimeError

from foretime_sidecar.answers.daemon_client import SiteDaemon
from foretime_sidecar.cli.options.daemon_options import (
    SettingsOption,
    SocketOption,
    site_listen,
    where,
)
from foretime_sidecar.cli.options.json_option import JsonOption

_QUESTIONS: tuple[tuple[str, Callable[[SiteDaemon], Mapping[str, Any]]], ...] = (
    ("breaker", SiteDaemon.breaker),
    ("queue_order", SiteDaemon.queue_order),
    ("brought", SiteDaemon.brought),
)


def status(
    settings: SettingsOption = None,
    as_json: JsonOption = False,
    socket_path: SocketOption = None,
) -> None:
    """Say how Foretime stands: mode, daemon, table, breaker, switch, queue order, gains.

    With --socket all of it is as the daemon says it, and no settings are read. Exit code 0 if the
    daemon runs and the table can be used, else 1; 3 if no daemon answers at --socket.

    Example: [bold]foretime status[/bold]
    """
    listen = site_listen(settings) if socket_path is None else where(settings, socket_path)
    site = SiteDaemon(listen)
    daemon, error = (site.health(), None) if socket_path is not None else _asked(site.health)
    asked = {"daemon": (daemon, error)}
    for name, question in _QUESTIONS:
        asked[name] = _asked(partial(question, site)) if daemon else (None, error)

    # Imports all settings, which takes longer than the daemon does.
    from foretime_sidecar.cli.options.site_settings import find_settings
    from foretime_sidecar.cli.reports import status_report

    if socket_path is not None and daemon is not None:
        answer = status_report.daemon_status_answer(asked, daemon)
        lines = status_report.daemon_status_lines(listen, answer)
    else:
        found = find_settings(settings)
        answer = status_report.status_answer(found, asked)
        lines = status_report.status_lines(found, answer)
    typer.echo(json.dumps(answer, indent=2) if as_json else "\n".join(lines))
    raise typer.Exit(int(daemon is None or answer["table_error"] is not None))


def _asked(ask: Callable[[], Mapping[str, Any]]) -> tuple[Mapping[str, Any] | None, str | None]:
    """Give the answer, or why there is none."""
    try:
        return ask(), None
    except ForetimeError as error:
        return None, str(error)
