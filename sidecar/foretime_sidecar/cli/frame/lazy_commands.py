"""Sub-commands that are imported when they are called: `foretime wait` needs no simulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, TypeAlias

import typer

from foretime_sidecar.cli.frame.helpful_commands import HelpfulGroup, make_helpful

if TYPE_CHECKING:
    # What typer's methods take and give; it has no public name for them.
    from typer._click import Command, Context

Resolved: TypeAlias = "tuple[str | None, Command | None, list[str]]"


@dataclass(frozen=True, slots=True)
class CommandModule:
    """Where a sub-command is, and what is said of it without looking there.

    Attributes
    ----------
    module, attribute
        A function to be made a command, or a `typer.Typer` with commands of its own.
    line
        What the help of `foretime` says; the first line of the command's own help.
    """

    module: str
    attribute: str
    line: str

    def load(self, name: str) -> Command:
        """Import the command."""
        return command_of(getattr(import_module(self.module), self.attribute), name)


def command_of(found: typer.Typer | Callable[..., None], name: str) -> Command:
    """Make a function, or an application with commands of its own, a sub-command."""
    command: Command
    if isinstance(found, typer.Typer):
        make_helpful(found)
        command = typer.main.get_group(found)
    else:
        application = typer.Typer(add_completion=False)
        application.command()(found)
        make_helpful(application)
        command = typer.main.get_command(application)
    command.name = name
    return command


def add_commands(application: typer.Typer, modules: Mapping[str, CommandModule]) -> None:
    """Give an application sub-commands by name, as outlines: enough for help and completion."""

    def outline() -> None:
        pass

    for name, where in modules.items():
        application.command(name, help=where.line)(outline)

    class LazyGroup(HelpfulGroup):
        """Puts a command itself in its outline's place when it is called."""

        def resolve_command(self, ctx: Context, args: list[str]) -> Resolved:
            if args and args[0] in modules:
                self.load(args[0])
            return super().resolve_command(ctx, args)

        def load(self, name: str) -> None:
            self.add_command(modules[name].load(name))

        def load_all(self) -> None:
            for name in modules:
                self.load(name)

    application.info.cls = LazyGroup
