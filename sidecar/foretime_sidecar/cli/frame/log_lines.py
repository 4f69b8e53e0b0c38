"""The daemon's log: a line for each message, whatever names are in it."""

from __future__ import annotations

import logging
import textwrap
from types import TracebackType
from typing import TypeAlias

from foretime_sidecar.wording.printable import printable

_Raised: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


class LogLines(logging.Formatter):
    """Gives each message one line, and indents tracebacks.

    So neither a user's name nor a scheduler's answer can write a line that looks like another
    message, or a terminal's command.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's own name
        """Give a message's line."""
        return printable(super().formatMessage(record)).replace("\n", r"\n")

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - logging's own name
        """Give the lines of a traceback."""
        return textwrap.indent(printable(super().formatException(ei)), "  ", lambda line: True)


def log_to_stderr(level: int) -> None:
    """Log to stderr what is at least as grave as ``level``."""
    handler = logging.StreamHandler()
    handler.setFormatter(LogLines())
    logging.basicConfig(handlers=[handler], level=level)
