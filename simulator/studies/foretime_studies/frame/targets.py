"""Targets that a study judges its cases by, and figures with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from foretime_sim.scores.intervals import Interval, t_interval
from foretime_sim.scores.repeats import FEWEST_REPEATS


class Target(NamedTuple):
    """A target: what is measured in each run, and the bounds of its mean.

    Attributes
    ----------
    title
        As tables say it.
    measure
        Figure of a case's run, from those of the baseline, of perfect knowledge, and its own.
    least, most
        Bounds of its mean over the repeats on a log; ``None`` for none.
    least_mean
        Bound of its mean over the logs.
    """

    title: str
    measure: Callable[[Any, Any, Any], float]
    least: float | None = None
    most: float | None = None
    least_mean: float | None = None

    def met(self, value: float) -> bool:
        """Whether a log's mean meets the target."""
        if self.least is not None and not value >= self.least:
            return False
        return self.most is None or value <= self.most

    def bound(self, each: str = "") -> str:
        """Give the bounds as tables have them; ``each`` stands behind those of a log."""
        bounds = (
            (f"at least {{:.2f}}{each}", self.least),
            ("at least {:.2f} on average", self.least_mean),
            (f"at most {{:.2f}}{each}", self.most),
        )
        return ", ".join(words.format(at) for words, at in bounds if at is not None) or "–"


class Spread(NamedTuple):
    """A figure over several runs, and Student's interval of its mean from three on.

    Attributes
    ----------
    first
        Of the first run, which is what a paper with single runs would print.
    mean, interval
        Over all of them.
    """

    first: float
    mean: float
    interval: Interval | None

    @classmethod
    def of(cls, values: Sequence[float], level: float = 0.95) -> Spread:
        """Sum up the figures of at least one run."""
        interval = t_interval(values, level) if len(values) >= FEWEST_REPEATS else None
        return cls(values[0], float(np.mean(values)), interval)

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends of the interval."""
        return (None, None) if self.interval is None else (self.interval.low, self.interval.high)

    def ranging(self) -> str:
        """Write it with both ends of its interval."""
        if self.interval is None:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} [{self.interval.low:.2f}, {self.interval.high:.2f}]"

    def give_or_take(self) -> str:
        """Write it with half of its interval."""
        if self.interval is None:
            return f"{self.mean:.2f}"
        return f"{self.mean:.2f} ± {(self.interval.high - self.interval.low) / 2:.2f}"
