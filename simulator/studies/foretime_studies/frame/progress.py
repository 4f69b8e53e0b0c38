"""How far a study is, told to whoever shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Progress: TypeAlias = Callable[[int], None]
"""Called with how many runs, jobs or steps are done so far."""
Begin: TypeAlias = Callable[[int], Progress]
"""Called with how many there are to do; gives what is called with those done."""


def counted_on(progress: Progress | None, before: int, each: int = 1) -> Progress | None:
    """Count on from what was done before, as one log follows another.

    Parameters
    ----------
    progress
        Of all together; ``None`` for none.
    before
        Done before.
    each
        For how much everything that is done counts.
    """
    return None if progress is None else lambda done: progress(before + done * each)
