"""What is printed where not every character can be, as with ``PYTHONIOENCODING=ascii``."""

from __future__ import annotations

import codecs
import io
import sys

import typer

from foretime_sidecar.wording.printable import printable

_SHOWN_AS = {
    "–": "-",
    "—": "-",
    "±": "+/-",
    "×": "x",
    "²": "^2",
    "≤": "<=",
    "≥": ">=",
    "“": '"',
    "”": '"',
    "’": "'",
    "…": "...",
    "β": "beta",
}
_NAME = "foretime"
"""Of the error handler."""


def say(text: str = "", *, err: bool = False) -> None:
    """Print a line, or several, for people; names in it can't change the terminal."""
    typer.echo(printable(text), err=err)


def print_what_can_be_shown() -> None:
    """Let no character end a command: what stdout or stderr has no code for is replaced."""
    codecs.register_error(_NAME, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and (
            stream.errors in ("strict", "backslashreplace")
            or codecs.lookup(stream.encoding).name != "utf-8"
        ):
            stream.reconfigure(errors=_NAME)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wrong = error.object[error.start : error.end]
    return "".join(_SHOWN_AS.get(character, "?") for character in wrong), error.end
