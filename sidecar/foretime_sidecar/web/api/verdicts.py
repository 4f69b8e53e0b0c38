"""A line of the operators' view: what was measured, a verdict on it in words, and what to do."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Verdict(enum.StrEnum):
    """What a line comes to; the words are what people read."""

    WELL = "all is well"
    EARLY = "too early to tell"
    OFF = "not in use"
    LOOK = "look at it"
    ACT = "act now"


_WORST_FIRST = (Verdict.ACT, Verdict.LOOK, Verdict.WELL, Verdict.EARLY, Verdict.OFF)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the operators' view.

    Attributes
    ----------
    name
        A word for programs, which stays the same.
    title
        What it is about.
    verdict
        What it comes to.
    text
        What was measured, in a sentence.
    remedy
        What to do, in a sentence; "" if nothing is.
    """

    name: str
    title: str
    verdict: Verdict
    text: str
    remedy: str = ""


def worst(lines: Iterable[Line]) -> Verdict:
    """Give the verdict that most asks for somebody."""
    return min((line.verdict for line in lines), key=_WORST_FIRST.index, default=Verdict.OFF)


def against(value: float, limit: float | None, near: float = 1.0) -> Verdict:
    """Judge a figure that should stay below a limit, and from a share of it on is looked at."""
    if limit is None or value <= near * limit:
        return Verdict.WELL
    return Verdict.ACT if value > limit else Verdict.LOOK
