"""Man pages of `foretime` and each of its commands, from what --help says.

    python man_pages.py FOLDER

writes foretime.1, foretime-wait.1, ... with the `foretime_sidecar` that this Python imports.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from foretime_sidecar.cli.application import app
from foretime_sidecar.cli.frame.help_page import plain_record
from rich.text import Text

if TYPE_CHECKING:
    # What typer's methods take and give; it has no public name for them.
    from typer._click import Command


def pages() -> Iterator[tuple[str, str]]:
    """Give the name and the roff text of each page."""
    whole: Any = typer.main.get_command(app)
    whole.load_all()
    names = sorted(whole.commands)
    yield "foretime", _page("foretime", whole, [f"foretime-{name}" for name in names])
    for name in names:
        yield f"foretime-{name}", _page(f"foretime {name}", whole.commands[name], ["foretime"])


def _page(path: str, command: Command, see_also: list[str]) -> str:
    name = path.replace(" ", "-")
    about = metadata("foretime")
    short = _paragraphs(command)[0].rstrip(".")
    lines = [
        f'.TH "{name.upper()}" 1 "" "foretime {about["Version"]}" "Foretime"',
        *(".SH NAME", f"{_escaped(name)} \\- {_escaped(short)}"),
        *_sections(path, command, ".SH"),
    ]
    if name == "foretime":
        lines += [
            *(".SH FILES", ".TP", "/etc/foretime/foretime.toml"),
            "Settings of the daemon, by which commands go, too. $FORETIME_SETTINGS names another.",
        ]
    others = ", ".join(f"\\fB{_escaped(other)}\\fR(1)" for other in see_also)
    return "\n".join([*lines, ".SH SEE ALSO", others, ""])


def _sections(path: str, command: Command, heading: str) -> Iterator[str]:
    """Give what a command says of itself, and what each command below it says."""
    parent = typer.Context(command, info_name=path)
    yield f"{heading} {'SYNOPSIS' if heading == '.SH' else _escaped(path)}"
    usage = " ".join(command.collect_usage_pieces(parent))
    yield f"\\fB{_escaped(path)}\\fR {_escaped(usage)}"
    if heading == ".SH":
        yield ".SH DESCRIPTION"
    for paragraph in _paragraphs(command):
        yield from (".PP", _escaped(paragraph))
    entries = [p.get_help_record(parent) for p in command.get_params(parent)]
    below = getattr(command, "commands", {})
    if heading == ".SH" and any(entries):
        yield ".SH OPTIONS"
    for label, meaning in (plain_record(*entry) for entry in entries if entry):
        yield from (".TP", f"\\fB{_escaped(label)}\\fR", _escaped(" ".join(meaning.split())))
    if below:
        yield ".SH COMMANDS"
    for name, child in below.items():
        if path == "foretime":  # each has a page of its own
            yield from (".TP", f"\\fBforetime {name}\\fR", _escaped(_paragraphs(child)[0]))
        else:
            yield from _sections(f"{path} {name}", child, ".SS")


def _paragraphs(command: Command) -> list[str]:
    paragraphs = (command.help or "").split("\n\n")
    return [Text.from_markup(" ".join(text.split())).plain for text in paragraphs]


def _escaped(text: str) -> str:
    """Write a line of text so that roff prints it as it is."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for page_name, page_text in pages():
        (folder / f"{page_name}.1").write_text(page_text, encoding="utf-8")
