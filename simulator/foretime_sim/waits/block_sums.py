"""Figures made of sums over rows, with intervals from a bootstrap that draws whole weeks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array

from foretime_sim.scores.intervals import Interval, Weeks, percentile_interval

Added: TypeAlias = Int64Array | Float64Array | BoolArray


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and what it is in each resample of the weeks.

    Attributes
    ----------
    value
        NaN where there is nothing to take it of.
    resampled
        Shape (resamples,), in the order of the weeks' draws, so that figures of the same rows can
        be compared pair by pair; ``None`` with too few weeks.
    """

    value: float
    resampled: Float64Array | None

    @property
    def interval(self) -> Interval | None:
        """95% interval; ``None`` where there is none."""
        return None if self.resampled is None else percentile_interval(self.resampled)

    def less(self, other: Figure) -> Figure:
        """Give the difference to another figure of the same rows."""
        return combined(lambda one, two: one - two, self, other)


def combined(of: Callable[..., Float64Array], *figures: Figure) -> Figure:
    """Make a figure of several of the same rows, resample by resample."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = float(of(*(np.float64(figure.value) for figure in figures)))
        parts = [figure.resampled for figure in figures if figure.resampled is not None]
        return Figure(value, of(*parts) if len(parts) == len(figures) else None)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows by week.

    Attributes
    ----------
    weeks
        What is drawn; ``None`` where there are too few for intervals.
    week
        Of each row, from 0; shape (rows,).
    """

    weeks: Weeks | None
    week: Int64Array

    @classmethod
    def of(cls, weeks: Weeks | None, submit_time: Int64Array) -> Blocks:
        """Put rows into the weeks in which their jobs were submitted."""
        week = np.zeros(len(submit_time), np.int64) if weeks is None else weeks.week_of(submit_time)
        return cls(weeks, week)

    def take(self, rows: BoolArray | Int64Array) -> Blocks:
        """Give the blocks of some of the rows."""
        return Blocks(self.weeks, self.week[rows])

    def figure(self, of: Callable[..., Float64Array], *added: Added) -> Figure:
        """Make a figure of sums over rows.

        Parameters
        ----------
        of
            Of the sums of each of ``added``; called with numbers, and with arrays (resamples,).
        added
            What each row adds, each of shape (rows,).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(of(*(np.float64(np.sum(column)) for column in added)))
            if self.weeks is None:
                return Figure(value, None)
            count = self.weeks.draws.shape[1]
            totals = [np.bincount(self.week, column, minlength=count) for column in added]
            return Figure(value, of(*(self.weeks.draws @ total for total in totals)))

    def mean(self, values: Added, of: BoolArray | None = None) -> Figure:
        """Give the mean over rows, or over those chosen."""
        chosen: Sequence[Added] = [values, np.ones(len(self.week), dtype=np.bool_)]
        if of is not None:
            chosen = [np.where(of, values, 0), of]
        return self.figure(lambda total, rows: total / rows, *chosen)
