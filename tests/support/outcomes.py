"""What became of reading something: for properties of any input, good or bad."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from foretime_estimators.jobs.errors import InputError

T = TypeVar("T")


def outcome(read: Callable[[], T]) -> T | InputError:
    """Give what was read, or the error with which it was refused."""
    try:
        return read()
    except InputError as error:
        return error
