"""Turns at a forecaster that several threads ask: the long work of one lets others go first."""

from __future__ import annotations

import contextlib
from typing import Protocol


class Turns(Protocol):
    """What a forecaster is told of those who wait for it, by whoever asks it."""

    def give_way(self) -> None:
        """Let those go first who wait now."""
        ...

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Let others go while native code runs, which changes nothing that they need."""
        ...


class NobodyWaits:
    """`Turns` where only one thread asks."""

    def give_way(self) -> None:
        """Go on."""

    def aside(self) -> contextlib.AbstractContextManager[None]:
        """Go on."""
        return contextlib.nullcontext()


NOBODY_WAITS = NobodyWaits()
