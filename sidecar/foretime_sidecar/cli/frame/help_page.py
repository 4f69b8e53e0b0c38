"""What ``--help`` prints: options in panels, and no word cut in two at 80 columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.highlighter import RegexHighlighter
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text
from rich.theme import Theme

from foretime_sidecar.cli.frame.option_groups import RARE

if TYPE_CHECKING:
    # What typer's methods take and give; it has no public name for them.
    from typer._click import Command, Context, Parameter

_WIDEST = 100
"""Columns of the widest page: longer lines are hard to read."""
_LABEL_WIDTH = 24
"""Columns of the labels on the left; a longer label has a line of its own."""
_TYPES = {"int": "N", "int range": "N", "float": "X", "float range": "X"} | {
    "str": "TEXT",
    "path": "PATH",
}
"""What an option takes: typer's word for it, and ours. Other words of typer's are choices."""
_STYLES = Theme({"help.option": "bold cyan", "help.note": "dim"})


class _Highlighter(RegexHighlighter):
    base_style = "help."
    highlights = (
        r"(?:^|(?<=[\s,(]))(?P<option>--?[A-Za-z][\w-]*)",
        r"(?P<note>\[(?:default|required|env var|\d|x)[^\]]*\])",
    )


def help_page(
    command: Command, context: Context, children: Iterable[Command] = (), *, whole: bool = False
) -> str:
    """Write the page of a command.

    Parameters
    ----------
    command, context
        The command, and how it was called.
    children
        Its sub-commands.
    whole
        Whether to show the panels of rarely needed options, too.
    """
    console = Console(theme=_STYLES, highlight=False)
    console.width = min(console.width, _WIDEST)
    width = console.width - 4
    panels: dict[str, list[str]] = {}
    left_out = False
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        panel = _panel(parameter)
        if record is None:
            continue
        if panel.endswith(RARE) and not whole:
            left_out = True
            continue
        panels.setdefault(panel, []).append(_entry(*plain_record(*record), width))
    for child in children:
        line = (child.short_help or child.help or "").split("\n\n")[0]
        panels.setdefault("Commands", []).append(_entry(child.name or "", line, width))
    with console.capture() as captured:
        console.print(Padding(Text(command.get_usage(context), style="bold"), 1))
        for paragraph in filter(None, (command.help or "").split("\n\n")):
            text = Text.from_markup(" ".join(paragraph.split()))
            console.print(Padding(text, (0, 1, 1, 1)))
        for title, entries in panels.items():
            text = _Highlighter()(Text("\n".join(entries)))
            console.print(Panel(text, title=title, title_align="left", border_style="dim"))
        if left_out:
            console.print(f" More options: {context.command_path} --help-all")
    return captured.get()


def _panel(parameter: Parameter) -> str:
    named: str | None = getattr(parameter, "rich_help_panel", None)
    return named or ("Arguments" if parameter.param_type_name == "argument" else "Options")


def plain_record(label: str, meaning: str) -> tuple[str, str]:
    """Say in a word what an option takes; the choices it has are told in its meaning."""
    name, _, kind = label.partition(" <")
    kind = kind.removesuffix(">")
    if not kind:
        return label, meaning
    argument = not name.startswith("-")
    if kind not in _TYPES and not (argument and "|" not in kind):
        said, bracket, notes = meaning.partition("  [")
        meaning = f"{said} One of {kind.replace('|', ', ')}.{bracket}{notes}"
    return name if argument else f"{name} {_TYPES.get(kind, 'NAME')}", meaning


def _entry(label: str, meaning: str, width: int) -> str:
    """Set a label and its meaning side by side, or one below the other if the label is long."""
    lines = textwrap.wrap(
        " ".join(meaning.split()),
        width - _LABEL_WIDTH,
        break_long_words=False,
        break_on_hyphens=False,
    )
    if len(label) < _LABEL_WIDTH:
        label = label.ljust(_LABEL_WIDTH) + (lines.pop(0) if lines else "")
    return "\n".join([label, *(" " * _LABEL_WIDTH + line for line in lines)])
