"""``foretime serve``: the daemon."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from foretime_sidecar.server import Daemon
from foretime_sidecar.settings import Settings
from foretime_sidecar.settings_file import read_settings

SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="TOML file of settings; every default if not given (foretime config show).",
    ),
]


def serve(
    settings: SettingsOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what goes well, too.")] = False,
) -> None:
    """Run the daemon: learn from finished jobs, publish the table, answer questions.

    It runs in the foreground, logs to stderr, and ends on SIGTERM.

    Example: [bold]foretime serve --settings /etc/foretime/foretime.toml[/bold]
    """
    logging.basicConfig(
        format="%(levelname)s %(message)s", level=logging.INFO if verbose else logging.WARNING
    )
    Daemon(Settings() if settings is None else read_settings(settings)).run()
