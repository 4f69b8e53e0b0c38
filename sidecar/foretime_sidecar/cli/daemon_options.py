"""Options of the commands that ask the daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SettingsOption = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="The daemon's settings, for where it is."),
]
SocketOption = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="The daemon's unix socket.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
