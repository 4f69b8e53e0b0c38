"""Qualities of schedules as ratios of integers, and how they compare."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

Ratio: TypeAlias = "tuple[int, int]"
"""A numerator and a denominator."""


Comparable: TypeAlias = "Fraction | float"
"""A quality, exactly or in double precision; infinite where no job counts."""


def exactly(quality: Ratio | None) -> Comparable:
    """Give a quality as a fraction."""
    return math.inf if quality is None else Fraction(*quality)


def as_double(quality: Ratio | None) -> float:
    """Give a quality in double precision."""
    return math.inf if quality is None else float(quality[0]) / float(quality[1])


def relative(value: float, current: float) -> float:
    """Divide a quality by the current order's."""
    if value == current:  # 0 / 0 and infinite / infinite, too
        return 1.0
    return value / current if current else math.inf
