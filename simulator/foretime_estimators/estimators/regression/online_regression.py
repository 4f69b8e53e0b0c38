"""Online regression on a degree-2 polynomial, learned by normalised adaptive gradients (NAG).

The model is f(w, x) = w . phi(x) with phi(x) = (1, x_i, x_i x_l for i < l, x_i^2): 1 + 2n + C(n, 2)
terms for n features (Gaussier 2015, equation 1). For each example it takes one step of Ross,
Mineiro and Langford, "Normalized online learning", UAI 2013, algorithm 2, on the example's loss
plus l2 / 2 * |w|^2. (Gaussier's equation 2 has lambda * |w|_2, but its lambda of 4e9 is of the
squared norm in the simulator published with it, and is added to every example's gradient as there.)
NAG does not depend on the scale of a feature; with l2, which shrinks raw weights, the model does.

An example (t-th, counted from 1) is learned in this order of operations, i over the terms:

1. where |phi_i| > s_i: w_i = w_i * (s_i / |phi_i|), s_i = |phi_i|
2. f = sum of w_i * phi_i
3. N = N + sum of (phi_i / s_i)^2, terms with s_i = 0 left out
4. g_i = slope(f) * phi_i + l2 * w_i
5. G_i = d * G_i + g_i^2, with d = 1, or d = (1/2)^(2/h) where an example h examples ago is to count
   for half (footnote 2 of Gaussier: with loss j weighted by 2^(j/h), this is the same algorithm)
6. w_i = w_i - ((eta * sqrt(t / N)) * g_i) / (s_i * sqrt(G_i)), where neither s_i nor G_i is 0

Both sums are of eight lanes: lane k adds terms k, k + 8, ... in turn, starting at the first; then
((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)). So with IEEE doubles and no fused operations another
implementation gets the same numbers to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from foretime_estimators.arrays import Float64Array
from foretime_estimators.jobs.errors import InputError, StateError

_LANES = 8


@dataclass(frozen=True, slots=True)
class RegressionSettings:
    """How the regression learns; the defaults are those behind Gaussier 2015.

    Attributes
    ----------
    eta
        Learning rate, in units of the prediction (seconds): about how far the first step of each
        term can move it.
    l2
        Of the regulariser; 0 for none.
    recent_half_life
        After how many examples one counts for half; ``None``: all count alike.
    absolute
        Whether a negative prediction is taken without its sign, as in the simulator published with
        the paper; it learns from it with the sign. Without this it is cut to the least value.

    Raises
    ------
    InputError
        If a value is out of range.
    """

    eta: float = 5_000.0
    l2: float = 4e9
    recent_half_life: float | None = None
    absolute: bool = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.eta) and self.eta > 0):
            raise InputError(f"eta is {self.eta}: give a learning rate above 0, such as 5000")
        if not (math.isfinite(self.l2) and self.l2 >= 0):
            raise InputError(f"l2 is {self.l2}: give 0 or more, such as 4e9")
        half_life = self.recent_half_life
        if half_life is not None and not (math.isfinite(half_life) and half_life > 0):
            raise InputError(
                f"recent_half_life is {half_life}: give a number of jobs above 0, or leave it out"
            )

    @property
    def decay(self) -> float:
        """d: what is left of squared gradients at each example."""
        half_life = self.recent_half_life
        return 1.0 if half_life is None else 0.5 ** (2.0 / half_life)


class OnlineRegression:
    """The model and what it has learned.

    Parameters
    ----------
    features
        How many an example has (n).
    settings
        How it learns.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_estimators.estimators.regression.online_regression import OnlineRegression
    >>> model = OnlineRegression(features=1)
    >>> for _ in range(50):
    ...     _ = model.learn(np.array([2.0]), lambda predicted: 2.0 * (predicted - 600.0))
    >>> bool(model.predict(np.array([2.0])) > 0)
    True
    """

    def __init__(self, features: int, settings: RegressionSettings | None = None) -> None:
        self.settings = settings or RegressionSettings()
        self.features = features
        self._first, self._second = np.triu_indices(features, k=1)
        self.terms = 1 + 2 * features + len(self._first)
        self.examples = 0
        size = -(-self.terms // _LANES) * _LANES  # the terms that fill up the lanes are always 0
        self._weight = np.zeros(size)
        self._scale = np.zeros(size)
        self._gradient_squares = np.zeros(size)
        self._normalised_squares = 0.0

    @property
    def weights(self) -> Float64Array:
        """The model's parameters w, in the order of phi; shape (terms,)."""
        return self._weight[: self.terms].copy()

    def basis(self, features: Float64Array) -> Float64Array:
        """Give phi(x) of features of shape (n,), filled up with zeros to whole lanes."""
        count = self.features
        phi = np.zeros(len(self._weight))
        phi[0] = 1.0
        phi[1 : 1 + count] = features
        phi[1 + count : self.terms - count] = features[self._first] * features[self._second]
        phi[self.terms - count : self.terms] = features * features
        return phi

    def predict(self, features: Float64Array) -> float:
        """Give f(w, x) of features of shape (n,)."""
        return _sum(self._weight * self.basis(features))

    def learn(self, features: Float64Array, slope: Callable[[float], float]) -> float:
        """Learn one example.

        Parameters
        ----------
        features
            Shape (n,), finite.
        slope
            Derivative of the example's loss by the prediction.

        Returns
        -------
        float
            What was predicted before the step.
        """
        phi = self.basis(features)
        size = np.abs(phi)
        weight, scale = self._weight, self._scale
        grown = size > scale
        weight[grown] *= scale[grown] / size[grown]
        scale[grown] = size[grown]
        predicted = _sum(weight * phi)
        seen = scale > 0
        normalised = np.divide(phi, scale, out=np.zeros_like(phi), where=seen)
        self._normalised_squares += _sum(normalised * normalised)
        self.examples += 1
        gradient = slope(predicted) * phi + self.settings.l2 * weight
        self._gradient_squares *= self.settings.decay
        self._gradient_squares += gradient * gradient
        rate = self.settings.eta * math.sqrt(self.examples / self._normalised_squares)
        weight -= np.divide(
            rate * gradient,
            scale * np.sqrt(self._gradient_squares),
            out=np.zeros_like(phi),
            where=seen & (self._gradient_squares > 0),
        )
        return predicted

    def state(self) -> dict[str, Any]:
        """Everything learned and the settings, as JSON can hold it; floats as they are."""
        return {
            "settings": asdict(self.settings),
            "examples": self.examples,
            "normalised_squares": self._normalised_squares,
            "weight": self._weight[: self.terms].tolist(),
            "scale": self._scale[: self.terms].tolist(),
            "gradient_squares": self._gradient_squares[: self.terms].tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If a regression with other features or settings saved it, or it is none at all.
        """
        if state.get("settings") != asdict(self.settings):
            raise StateError(
                f"the regression's settings are {asdict(self.settings)}, those of the saved state "
                f"{state.get('settings')}: it was saved by another estimator"
            )
        try:
            learned = [
                np.array(state[name], dtype=np.float64)
                for name in ("weight", "scale", "gradient_squares")
            ]
            examples, squares = int(state["examples"]), float(state["normalised_squares"])
        except (KeyError, TypeError, ValueError) as error:
            raise StateError(
                f"the regression can't be restored ({type(error).__name__}: {error}): the state "
                "was saved by another estimator"
            ) from None
        if any(values.shape != (self.terms,) for values in learned):
            raise StateError(
                f"the regression has {self.terms} terms, the saved state "
                f"{' and '.join(str(values.size) for values in learned)}: it was saved by another "
                "estimator"
            )
        self.examples, self._normalised_squares = examples, squares
        for own, values in zip(
            (self._weight, self._scale, self._gradient_squares), learned, strict=True
        ):
            own[: self.terms] = values


def _sum(terms: Float64Array) -> float:
    """Add up in eight lanes, in the order that the module's docstring fixes."""
    lane = np.add.reduce(terms.reshape(-1, _LANES), axis=0).tolist()
    return float(
        ((lane[0] + lane[1]) + (lane[2] + lane[3])) + ((lane[4] + lane[5]) + (lane[6] + lane[7]))
    )
