"""``foretime status``: how things stand, in a few lines."""

from __future__ import annotations

import json
from typing import Any

import typer
from foretime_estimators.jobs.errors import ForetimeError

from foretime_sidecar.answers.daemon_client import ask
from foretime_sidecar.cli.options.daemon_options import SettingsOption, site_listen
from foretime_sidecar.cli.options.json_option import JsonOption

_PATHS = (
    ("breaker", "/v1/breaker"),
    ("queue_order", "/v1/queue-order"),
    ("brought", "/v1/brought"),
)


def status(
    settings: SettingsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say how Foretime stands: mode, daemon, table, breaker, switch, queue order, gains.

    Exit code 0 if the daemon runs and the table can be used, else 1.

    Example: [bold]foretime status[/bold]
    """
    listen = site_listen(settings)
    daemon, error = _asked(listen, "/healthz")
    asked = {"daemon": (daemon, error)}
    for name, path in _PATHS:
        asked[name] = _asked(listen, path) if daemon else (None, error)

    # Imports all settings, which takes longer than the daemon does.
    from foretime_sidecar.cli.options.site_settings import find_settings
    from foretime_sidecar.cli.reports.status_report import status_answer, status_lines

    found = find_settings(settings)
    answer = status_answer(found, asked)
    lines = status_lines(found, answer)
    typer.echo(json.dumps(answer, indent=2) if as_json else "\n".join(lines))
    raise typer.Exit(int(daemon is None or answer["table_error"] is not None))


def _asked(listen: str, path: str) -> tuple[dict[str, Any] | None, str | None]:
    """Give the answer, or why there is none."""
    try:
        return ask(listen, path, {}), None
    except ForetimeError as error:
        return None, str(error)
