"""The help of every command fits 80 columns: no word is cut in two, and none is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from foretime_sidecar.cli.application import app
from rich.text import Text
from typer.testing import CliRunner

WIDTH = 80


def every(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Give a command and those below it by their words."""
    yield name, command
    if hasattr(command, "commands"):
        context = typer.Context(command)
        for below in command.list_commands(context):
            yield from every(f"{name} {below}".strip(), command.get_command(context, below))


def commands() -> dict[str, Any]:
    """Give every command, with those that only have others below them; "" is `foretime`."""
    whole: Any = typer.main.get_command(app)
    whole.load_all()
    return dict(every("", whole))


COMMANDS = commands()


def page(name: str, option: str = "--help") -> str:
    """Give a help page at 80 columns."""
    result = CliRunner().invoke(app, [*name.split(), option], env={"COLUMNS": str(WIDTH)})
    assert result.exit_code == 0, result.output
    return result.output


def plain(text: str) -> str:
    """Give a text without markup, its words one blank apart."""
    return " ".join(Text.from_markup(text).plain.split())


def whole(command: Any) -> str:
    """Give the option that shows every option of a command."""
    names = {name for parameter in command.params for name in parameter.opts}
    return "--help-all" if "--help-all" in names else "--help"


@pytest.mark.parametrize("name", COMMANDS)
def test_no_word_is_cut(name: str) -> None:
    command = COMMANDS[name]
    shown = page(name, whole(command))
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= WIDTH
    # A word that is cut has a blank in it here.
    flat = " ".join(re.sub("[│╭╮╰╯─]", " ", shown).split())
    for parameter in command.params:
        if parameter.param_type_name == "option":
            options = [re.escape(o) for o in (*parameter.opts, *parameter.secondary_opts)]
            for option in options:
                assert re.search(rf"\s{option}[,\s]", flat), f"{name} {option}"
            taken = re.escape(parameter.metavar or "")
            assert re.search(rf"\s({'|'.join(options)}) {taken}", flat), f"{name} {options}"
        assert " ".join(parameter.help.split()) in flat, f"{name} {parameter.opts}"
        for choice in parameter.type_descriptor.choices or ():
            said = re.escape(str(getattr(choice, "value", choice)))
            assert re.search(rf"(?<![\w-]){said}(?![\w-])", flat), f"{name} {parameter.opts}"
    for paragraph in (command.help or "").split("\n\n"):
        assert plain(paragraph) in flat
