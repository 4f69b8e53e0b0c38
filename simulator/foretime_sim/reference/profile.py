"""Free processors over time, in plain Python."""

from __future__ import annotations

from typing import Protocol


class Profile(Protocol):
    """What a plan is made in; `tests.support.plans.availability_profile` has the fast one."""

    def reserve(self, start: int, duration: int, processors: int) -> None:
        """Take processors."""

    def release(self, start: int, duration: int, processors: int) -> None:
        """Give them back."""

    def earliest_fit(self, from_time: int, duration: int, processors: int) -> int | None:
        """Find the first start."""


class PlainProfile:
    """A list of claims, looked at anew for each question."""

    def __init__(self, capacity: int, now: int) -> None:
        self.capacity = capacity
        self.now = now
        self.claims: list[tuple[int, int, int]] = []

    def reserve(self, start: int, duration: int, processors: int) -> None:
        """Take processors."""
        self.claims.append((start, start + duration, processors))

    def release(self, start: int, duration: int, processors: int) -> None:
        """Give them back."""
        self.claims.remove((start, start + duration, processors))

    def free_at(self, time: int) -> int:
        """Processors that no claim holds."""
        return self.capacity - sum(p for start, end, p in self.claims if start <= time < end)

    def earliest_fit(self, from_time: int, duration: int, processors: int) -> int | None:
        """Find the first start: a job that can't start at once starts when a claim ends."""

        def fits(start: int) -> bool:
            changes = [s for s, _, _ in self.claims if start < s < start + duration]
            return all(self.free_at(time) >= processors for time in [start, *changes])

        ends = [end for _, end, _ in self.claims if end > from_time]
        return next((start for start in sorted({from_time, *ends}) if fits(start)), None)
