"""Commands with our own help page, and ``--help-all``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    # What typer's methods take and give; it has no public name for them.
    from typer._click import Context, HelpFormatter

_WHOLE = "foretime.whole_help"


def _show_whole(context: typer.Context, asked: bool) -> None:
    if asked:
        context.meta[_WHOLE] = True
        typer.echo(context.get_help())
        raise typer.Exit


HelpAllOption = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        callback=_show_whole,
        help="Show every option and exit.",
    ),
]


class HelpfulCommand(TyperCommand):
    """A command that does something."""

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help page."""
        from foretime_sidecar.cli.frame.help_page import help_page  # rich is slow to load

        formatter.write(help_page(self, ctx, whole=_WHOLE in ctx.meta))


class HelpfulGroup(TyperGroup):
    """A command that has others below it."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Show the help page where a word is needed and there is none."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            typer.echo(ctx.get_help())
            raise typer.Exit(2)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Context, formatter: HelpFormatter) -> None:
        """Write the help page."""
        from foretime_sidecar.cli.frame.help_page import help_page  # rich is slow to load

        below = [self.get_command(ctx, name) for name in self.list_commands(ctx)]
        shown = [command for command in below if command is not None and not command.hidden]
        formatter.write(help_page(self, ctx, shown))


def make_helpful(application: typer.Typer) -> None:
    """Give an application and its commands our help page."""
    if not application.info.cls:
        application.info.cls = HelpfulGroup
    for command in application.registered_commands:
        command.cls = HelpfulCommand
