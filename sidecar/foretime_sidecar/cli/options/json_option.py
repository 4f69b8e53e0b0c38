"""The option ``--json``."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonTablesOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
