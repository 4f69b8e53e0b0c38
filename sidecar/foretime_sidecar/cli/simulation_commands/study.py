"""``foretime study``: published studies, run again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.cli.frame.helpful_commands import HelpfulGroup
from foretime_sidecar.cli.frame.lazy_commands import Resolved, command_of

if TYPE_CHECKING:
    from typer._click import Command, Context

GROUP = "foretime.studies"
"""The entry points that are studies: a function with typer's options each."""


class StudyGroup(HelpfulGroup):
    """The studies that are installed, each imported when it is asked for."""

    @cached_property
    def studies(self) -> Mapping[str, EntryPoint]:
        """Those that are installed, by name."""
        return {found.name: found for found in entry_points(group=GROUP)}

    def list_commands(self, ctx: Context) -> list[str]:
        """Name them."""
        return sorted(self.studies)

    def get_command(self, ctx: Context, cmd_name: str) -> Command | None:
        """Import one, or give ``None`` where there is none of that name."""
        found = self.studies.get(cmd_name)
        return None if found is None else command_of(found.load(), cmd_name)

    def resolve_command(self, ctx: Context, args: list[str]) -> Resolved:
        """Say how to get studies where none are installed."""
        if not self.studies:
            raise InputError(
                "no studies are installed: they are a package of their own, foretime-studies "
                "(in a checkout: pip install -e simulator/studies)"
            )
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=StudyGroup,
    help="Run published studies again, and compare.\n\nExample: foretime study tang2010 --help",
    no_args_is_help=True,
)


@app.callback()
def _root() -> None:
    pass
