"""Processors free as a step function of time: what a scheduler plans reservations in."""

from __future__ import annotations

from typing import Self

from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S
from foretime_sim import _core


class AvailabilityProfile:
    """Free processors of a flat pool from now on, as a step function of time.

    All times are integer seconds. A reservation takes processors from its start up to, but not
    including, its end. Equal neighbouring steps are merged, so the profile is never longer than
    the reservations in it need. What lies before `now` is past: of a reservation that began
    earlier only the rest counts.

    With n steps, looking up a time costs O(log n); the other operations skip whole blocks of up
    to 128 steps (O(n / 128) with a small constant, linear only for a profile that crosses the
    number asked for in every block).

    Parameters
    ----------
    capacity
        Processors of the machine, at least 1; all free at first.
    now
        Where the profile begins.

    Raises
    ------
    InputError
        If a number is out of range.
    """

    def __init__(self, capacity: int, now: int = 0) -> None:
        _within("capacity", capacity, 1, LONGEST_S)
        _within("now", now, -LONGEST_S, LONGEST_S)
        self._core = _core.AvailabilityProfile(capacity, now)

    @property
    def capacity(self) -> int:
        """Processors of the machine."""
        return self._core.capacity

    @property
    def now(self) -> int:
        """Where the profile begins, seconds."""
        return self._core.now

    def __len__(self) -> int:
        """Count the steps."""
        return len(self._core)

    def reserve(self, start: int, duration: int | None, processors: int) -> None:
        """Take processors for a time.

        Parameters
        ----------
        start
            Seconds.
        duration
            Seconds; ``None``: for good. Nothing is taken for 0 s.
        processors
            From 0 to the capacity.

        Raises
        ------
        InputError
            If a number is out of range, or so many are not free all the time; nothing has been
            taken then.
        """
        self._check(start, duration, processors)
        if not self._core.reserve(start, duration, processors):
            raise InputError(
                f"cannot reserve {processors} processors from {start} s {_lasting(duration)}: only"
                f" {self.min_free(start, None if duration is None else start + duration)} are free"
                " all that time; ask earliest_fit for a start"
            )

    def release(self, start: int, duration: int | None, processors: int) -> None:
        """Give processors back: the reverse of `reserve`, also for a part of its time.

        Parameters
        ----------
        start, duration, processors
            As for `reserve`.

        Raises
        ------
        InputError
            If a number is out of range, or so many are not taken all the time; nothing has been
            given back then.
        """
        self._check(start, duration, processors)
        if not self._core.release(start, duration, processors):
            raise InputError(
                f"cannot release {processors} processors from {start} s {_lasting(duration)}: more"
                f" than the machine's {self.capacity} would be free; release what was reserved"
            )

    def earliest_fit(self, from_time: int, duration: int | None, processors: int) -> int | None:
        """Find the first moment at which processors are free for the whole duration.

        Parameters
        ----------
        from_time
            Not before this moment, nor before `now`, seconds.
        duration
            Seconds; ``None``: for good. 0 asks for the moment alone.
        processors
            From 0 to the capacity.

        Returns
        -------
        int or None
            Seconds; ``None`` if there never are so many for so long.
        """
        self._check(from_time, duration, processors, "from_time")
        return self._core.earliest_fit(from_time, duration, processors)

    def free_at(self, time: int) -> int:
        """Processors free at one moment; before `now`: those free at `now`."""
        _within("time", time, -LONGEST_S, LONGEST_S)
        return self._core.free_at(time)

    def min_free(self, start: int, end: int | None) -> int:
        """Least processors free in [start, end) (at ``start`` if empty); end ``None``: for good."""
        _within("start", start, -LONGEST_S, LONGEST_S)
        if end is not None:
            _within("end", end, -2 * LONGEST_S, 2 * LONGEST_S)
        return self._core.min_free(start, end)

    def advance(self, now: int) -> None:
        """Forget what lies before a moment.

        Raises
        ------
        InputError
            If the moment is before `now`: the past is not kept.
        """
        _within("now", now, self.now, LONGEST_S)
        self._core.advance(now)

    def copy(self) -> Self:
        """Give an independent copy, for a what-if."""
        copied = self.__class__.__new__(self.__class__)
        copied._core = self._core.copy()
        return copied

    def steps(self) -> list[tuple[int, int]]:
        """Each step's time (seconds) and free processors, until the next step; the last for good.

        The first begins `now`.
        """
        return self._core.steps()

    def _check(
        self, start: int, duration: int | None, processors: int, start_name: str = "start"
    ) -> None:
        _within(start_name, start, -LONGEST_S, LONGEST_S)
        if duration is not None:
            _within("duration", duration, 0, LONGEST_S)
        _within("processors", processors, 0, self.capacity)


def _within(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InputError(f"{name} is {value}: it must be from {least} to {most}")


def _lasting(duration: int | None) -> str:
    return "on, for good" if duration is None else f"for {duration} s"
