"""Downey's model of the speedup of parallel programs: run times on any number of processors.

A. B. Downey, "A model for speedup of parallel programs", Technical Report CSD-97-933, University
of California at Berkeley, 1997 (reference [4] of Downey 1997, "Predicting queue times"). A program
has an average parallelism A, and sigma says how much its parallelism varies; on as many processors
as you like it is A times as fast as on one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError


@dataclass(frozen=True, slots=True)
class Speedup:
    """How much faster a program is on n processors than on one.

    Attributes
    ----------
    parallelism
        A, its average parallelism, at least 1.
    variation
        sigma, 0 or more: 0 is linear speedup up to A; the larger, the more gradual.
    """

    parallelism: float
    variation: float

    def __post_init__(self) -> None:
        if self.parallelism < 1 or self.variation < 0:
            raise InputError(
                f"parallelism is {self.parallelism} and variation {self.variation}: give at least"
                " 1, and 0 or more"
            )

    def __call__(self, processors: Int64Array | int) -> Float64Array:
        """Give the speedup on n processors.

        With low variation, sigma <= 1: A n / (A + sigma (n - 1) / 2) up to A, then
        A n / (sigma (A - 1/2) + n (1 - sigma / 2)) up to 2 A - 1, then A. With high variation:
        n A (sigma + 1) / (sigma (n + A - 1) + A) up to A + A sigma - sigma, then A.
        """
        return speedups(self.parallelism, self.variation, processors)

    def runtime_s(self, sequential_s: float, processors: Int64Array | int) -> Float64Array:
        """Give the run time on n processors of what takes so long on one."""
        return sequential_s / self(processors)


def speedups(
    parallelism: Float64Array | float, variation: Float64Array | float, processors: npt.ArrayLike
) -> Float64Array:
    """Give the speedup of programs on n processors; arguments of any shapes that go together."""
    a, sigma = np.asarray(parallelism), np.asarray(variation)
    n = np.asarray(processors, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # where the other formula is taken
        narrow = a * n / (a + sigma * (n - 1) / 2)
        wide = a * n / (sigma * (a - 0.5) + n * (1 - sigma / 2))
        low = np.where(n <= a, narrow, np.where(n < 2 * a - 1, wide, a))
    rising = n * a * (sigma + 1) / (sigma * (n + a - 1) + a)
    high = np.where(n < a + a * sigma - sigma, rising, a)
    return np.where(sigma <= 1, low, high)
