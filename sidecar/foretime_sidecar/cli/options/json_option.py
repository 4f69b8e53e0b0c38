"""The option ``--json``, and errors as it prints them."""

from __future__ import annotations

from typing import Annotated

import typer

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
JsonTablesOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def error_as_json(text: str) -> dict[str, dict[str, str]]:
    """Give what is wrong and what to do, which a semicolon divides in our errors."""
    what, _, remedy = text.partition("; ")
    return {"error": {"what": what, "remedy": remedy}}
