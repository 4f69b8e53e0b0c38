"""What a wrong prediction costs: the losses of Gaussier 2015, section 4.2, tables 3 and 5.

The loss of predicting f for a job that ran for p on q processors is weight * L(|f - p|), with L one
branch where f >= p (too long: *over*) and another where f < p (too short: *under*), each z^2 or z,
and the weight one of table 3. Section 4.2 and figure 1 name the branches the other way round (L_u
where f >= p); equation 3 and section 6.4 agree with each other and are followed: the E-loss is
squared where f >= p and linear where f < p. Equation 3 writes r_j (the submission) for q_j.

Logarithms are to base 10 unless another is asked for: the constants 5 and 11 keep the weights of
table 3 positive, as the paper says that they do, for p/q up to 10^5 s and q*p up to 10^11 s, while
with natural logarithms 5 + log(q/p) would be negative beyond p/q = 148 s, 5 + log(p/q) below 1/148
s, 11 + log(1/(q*p)) beyond 59,874 s. (The simulator published with the paper takes natural ones,
lets weights be negative, which teaches a model to be wrong, and adds 1 to log(q*p).) Whatever the
base, a weight is at least `LEAST_WEIGHT`: a loss with a negative one has no minimum.

A runtime below a second counts as a second, the least that is ever predicted.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

LEAST_WEIGHT = 0.01


class Branch(enum.Enum):
    """How a cost grows with the error z."""

    SQUARED = "squared"
    LINEAR = "linear"


class Weight(enum.Enum):
    """How much a job counts, by its processors q and its runtime p (table 3)."""

    CONSTANT = "constant"
    """1."""
    SHORT_WIDE = "short-wide"
    """5 + log(q / p): short jobs with many processors."""
    LONG_NARROW = "long-narrow"
    """5 + log(p / q): long jobs with few processors."""
    SMALL_AREA = "small-area"
    """11 + log(1 / (q p)): jobs of small area."""
    LARGE_AREA = "large-area"
    """log(q p): jobs of large area."""


@dataclass(frozen=True, slots=True)
class PredictionLoss:
    """One loss of the family.

    Attributes
    ----------
    over
        Where the prediction is not below the runtime (f >= p).
    under
        Where it is below (f < p).
    weight
        How much a job counts.
    log_base
        Of the weight's logarithm; above 1.

    Examples
    --------
    >>> from foretime_estimators.estimators.regression.prediction_loss import E_LOSS
    >>> E_LOSS.name, E_LOSS.value(predicted=110, runtime=100, processors=10)
    ('squared-linear-large-area', 300.0)
    """

    over: Branch
    under: Branch
    weight: Weight
    log_base: float = 10.0

    @property
    def name(self) -> str:
        """Over, under and weight, as in `LOSSES`."""
        return f"{self.over.value}-{self.under.value}-{self.weight.value}"

    def weight_of(self, runtime: float, processors: int) -> float:
        """Give the weight of a job, from `LEAST_WEIGHT`.

        The logarithm is worked out as ln(processors) and ln(seconds), their sum or difference
        divided by ln(base), so that it is the same in any implementation.
        """
        if self.weight is Weight.CONSTANT:
            return 1.0
        q, p = math.log(processors), math.log(max(runtime, 1.0))
        if self.weight is Weight.SHORT_WIDE:
            weight = 5.0 + (q - p) / math.log(self.log_base)
        elif self.weight is Weight.LONG_NARROW:
            weight = 5.0 + (p - q) / math.log(self.log_base)
        elif self.weight is Weight.SMALL_AREA:
            weight = 11.0 - (q + p) / math.log(self.log_base)
        else:
            weight = (q + p) / math.log(self.log_base)
        return max(weight, LEAST_WEIGHT)

    def value(self, predicted: float, runtime: float, processors: int) -> float:
        """Give the loss of a prediction, seconds or seconds squared; see `weight_of`."""
        error = predicted - max(runtime, 1.0)
        branch = self.over if error >= 0 else self.under
        cost = error * error if branch is Branch.SQUARED else abs(error)
        return self.weight_of(runtime, processors) * cost

    def slope(self, predicted: float, runtime: float, processors: int) -> float:
        """Give the derivative of the loss by the prediction; 0 where that is the runtime itself.

        There a linear branch has none, and 0 is one of its subgradients: the loss is least.
        """
        error = predicted - max(runtime, 1.0)
        if error == 0:
            return 0.0
        branch = self.over if error > 0 else self.under
        slope = 2.0 * error if branch is Branch.SQUARED else math.copysign(1.0, error)
        return self.weight_of(runtime, processors) * slope


LOSSES: Mapping[str, PredictionLoss] = MappingProxyType(
    {
        loss.name: loss
        for loss in (
            PredictionLoss(over, under, weight)
            for over in Branch
            for under in Branch
            for weight in Weight
        )
    }
)
"""The 20 of table 5 by name, such as ``squared-linear-large-area``."""

E_LOSS = LOSSES["squared-linear-large-area"]
"""Equation 3: an overestimate costs by its square, an underestimate by itself; by log(q p)."""
