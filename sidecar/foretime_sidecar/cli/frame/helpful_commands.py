"""Commands with our own help page, and ``--help-all``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer
from foretime_estimators.jobs.errors import InputError
from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    # What typer's methods take and give; it has no public name for them.
    from typer._click import Context, HelpFormatter

_WHOLE = "foretime.whole_help"
_LAST_COUNTS = frozenset({"wait"})
"""Commands that take the last of several values of an option, as sbatch does."""


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
    """A command that does something.

    An option with one value is refused if it is given twice: the last would count, and whoever
    compares two values would not notice that one of them never ran.
    """

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Parse what was given."""
        given = list(args)
        rest = super().parse_args(ctx, args)
        if self.name not in _LAST_COUNTS and not ctx.resilient_parsing:
            _, _, order = self.make_parser(ctx).parse_args(args=given)
            for option, times in Counter(order).items():
                single = isinstance(option, TyperOption) and not (option.is_flag or option.multiple)
                if single and times > 1:
                    name = max(option.opts, key=len)
                    raise InputError(f"{name} is given {times} times and takes one value; give one")
        return rest

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
