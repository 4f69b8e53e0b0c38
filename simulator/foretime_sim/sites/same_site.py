"""What is worked out of a site, kept as long as the same site is asked about."""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

Asked = ParamSpec("Asked")
Found = TypeVar("Found")

_KEPT = 4


def kept_for_the_same(function: Callable[Asked, Found]) -> Callable[Asked, Found]:
    """Keep what a function gave for the last sites, for whoever asks of one again.

    A site never changes, and a queue is run forward under it many times. It is told by identity, as
    to compare two sites takes as long as to work it out anew; numbers beside it by their value.

    Parameters
    ----------
    function
        Of a site and what else it goes by, in order. What it gives must not be changed either.
    """
    kept: deque[tuple[tuple[Any, ...], Found]] = deque(maxlen=_KEPT)

    @functools.wraps(function)
    def found(*args: Asked.args, **named: Asked.kwargs) -> Found:
        asked = (*args, *named.items())
        for known, gave in tuple(kept):
            if len(known) == len(asked) and all(map(_is_same, known, asked)):
                return gave
        gave = function(*args, **named)
        kept.append((asked, gave))
        return gave

    return found


def _is_same(one: object, other: object) -> bool:
    return one is other or (isinstance(one, int) and one == other)
