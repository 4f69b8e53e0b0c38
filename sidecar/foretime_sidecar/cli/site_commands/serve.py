"""``foretime serve``: the daemon."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from foretime_sidecar.cli.frame.interruption import leave_threads_behind
from foretime_sidecar.cli.frame.log_lines import log_to_stderr
from foretime_sidecar.cli.options.daemon_options import SettingsOption
from foretime_sidecar.cli.options.site_settings import site_settings
from foretime_sidecar.web.server import Daemon


def serve(
    settings: SettingsOption = None,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log what goes well, too.")] = False,
) -> None:
    """Run the daemon: learn from finished jobs, publish the table, answer questions.

    It runs in the foreground, logs to stderr, and ends on SIGTERM.

    Example: [bold]foretime serve --verbose[/bold]
    """
    log_to_stderr(logging.INFO if verbose else logging.WARNING)
    Daemon(site_settings(settings)).run()
    leave_threads_behind()
