"""How it is said what is wrong in a TOML file that pydantic checks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def message_of(problem: ErrorDetails) -> str:
    """Say what is wrong with a value."""
    message = problem["msg"].removeprefix("Value error, ")
    if message.startswith("Input should be "):
        message = "it must be " + message.removeprefix("Input should be ")
    return message


def nearest(name: object, valid: Iterable[str]) -> str:
    """Say which valid name is nearest, and which there are."""
    names = tuple(valid)
    near = difflib.get_close_matches(str(name), names, n=1, cutoff=0.6)
    hint = f"did you mean {near[0]!r}? Valid: " if near else "valid: "
    return hint + ", ".join(names)
