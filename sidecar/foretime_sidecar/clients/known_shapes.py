"""Replies of schedulers that have not the shape that they should."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from foretime_estimators.jobs.errors import InputError, SchedulerError

WRONG_SHAPE = (AttributeError, LookupError, OverflowError, TypeError, ValueError)
"""What reading a value raises that is of another kind than is taken for granted."""


@contextmanager
def known_shape(answered: str, known: str) -> Iterator[None]:
    """Have what is read in the block be a reply of a known shape.

    Parameters
    ----------
    answered
        Who answered what.
    known
        Whose replies are known.

    Raises
    ------
    SchedulerError
        If it is not.
    """
    try:
        yield
    except (*WRONG_SHAPE, InputError) as error:
        raise SchedulerError(
            f"{answered} in an unknown shape ({type(error).__name__}: {error});"
            f" Foretime knows {known}"
        ) from error
