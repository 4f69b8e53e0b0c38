"""Something of each user who is still about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

What = TypeVar("What")


class UserValues(Generic[What]):
    """One value a user, forgotten when no job of theirs has ended for long.

    Parameters
    ----------
    window_s
        How long, seconds.
    """

    def __init__(self, window_s: int) -> None:
        self._window_s = window_s
        # Latest used last.
        self._known: OrderedDict[str, tuple[int, What]] = OrderedDict()

    def get(self, user: str | None, otherwise: What) -> What:
        """Give a user's value, or that of a user who is not known."""
        known = None if user is None else self._known.get(user)
        return otherwise if known is None else known[1]

    def put(self, user: str, what: What, end_time: int) -> None:
        """Set a user's value as a job of theirs ends, seconds; call in order of end times."""
        self._known[user] = end_time, what
        self._known.move_to_end(user)
        while next(iter(self._known.values()))[0] < end_time - self._window_s:
            self._known.popitem(last=False)

    def state(self) -> list[list[object]]:
        """Give users, their latest ends and their values."""
        return [[user, end_time, what] for user, (end_time, what) in self._known.items()]

    def restore(self, state: Iterable[tuple[str, int, What]]) -> None:
        """Take over what `state` gave, replacing all."""
        self._known = OrderedDict((user, (end_time, what)) for user, end_time, what in state)
