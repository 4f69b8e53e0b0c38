"""Makes any forecaster's quantiles hold as often as they say, by what came of its forecasts.

Where, on the scale of the forecasts themselves (`forecast_scale`), have the waits of alike and
recent forecasts come to lie? Each level is read off their distribution instead of the normal one
that right forecasts would have: conformal prediction, localised (L. Guan, "Localized conformal
prediction", Biometrika 110, 2023), with weights that forget (R. Barber, E. Candes, A. Ramdas and R.
Tibshirani, "Conformal prediction beyond exchangeability", Annals of Statistics 51, 2023). Jobs that
still wait are lower bounds, so that a wait beyond its bound counts as such before the job starts.
Alike are forecasts of like waits, like spread and like age of the job. Where few are, less alike
and older ones fill in up to a weight, and what they leave open is the forecaster's own word, taken
for a little too sure: were there nothing between, forecasts that are right would be widened
wherever few are alike.

The probability of a start at once is the share of alike forecasts that came true.

A second layer was tried and left out: bounds moved up at each miss and down at each hit (adaptive
conformal inference, Gibbs and Candes 2021), overall and in groups. It held no better and cost
tightness (docs/studies/waits.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sim.waits.calibration.censored_quantiles import censored_quantiles
from foretime_sim.waits.calibration.forecast_scale import (
    SCORES,
    ForecastScale,
    log_wait,
    wait_of_log,
)
from foretime_sim.waits.calibration.remembered_forecasts import (
    ROW,
    RememberedForecasts,
    Rows,
    State,
)
from foretime_sim.waits.forecaster import (
    LEVELS,
    MEDIAN,
    WaitForecaster,
    WaitForecasts,
    considered,
)
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.turns import NOBODY_WAITS, Turns

_LEVELS = np.array(LEVELS)
_EDGES = np.concatenate([[0.0], (_LEVELS[1:] + _LEVELS[:-1]) / 2, [1.0]])
_SAID_ALIKE = 0.1
"""Distance of probabilities of a start at once that are alike."""
_FURTHEST = np.log(2.0)
"""No bound is beyond twice the longest wait that was seen or forecast."""
_FIRST_LATER_S = 300
"""A first answer may come so long after the submission; later ones are told apart by doublings."""


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Settings of `CalibratedForecaster`; see docs/studies/waits.md for what they were chosen on.

    Examples
    --------
    >>> from foretime_sim.waits.calibration.calibrated_forecaster import CalibrationSettings
    >>> CalibrationSettings(remembered=1_000).half_life_s // 86_400
    10

    Attributes
    ----------
    remembered
        Forecasts kept.
    half_life_s
        Age at which a forecast counts half.
    likeness
        Distances in log wait, in its spread and in doublings of age at which a forecast counts
        for 0.44, being (1 + squared distance / 2)**-2.
    other_queue
        What a forecast for another queue counts.
    further
        How many times as far apart forecasts may be that are alike enough to fill in.
    filling_half_life_s
        Age at which one of them counts half.
    prior
        How many forecasts those that fill in count for, all together; and, among them, the wrapped
        forecaster's own word.
    prior_width
        How much wider than it says its forecasts are taken to be before anything is learned.
    """

    remembered: int = 4_096
    half_life_s: int = 10 * DAY_S
    likeness: tuple[float, float, float] = (0.7, 0.5, 1.0)
    other_queue: float = 0.3
    further: float = 2.0
    filling_half_life_s: int = 90 * DAY_S
    prior: float = 10.0
    prior_width: float = 1.1

    def __post_init__(self) -> None:
        for name in ("remembered", "half_life_s", "further", "filling_half_life_s", "prior"):
            if getattr(self, name) <= 0:
                raise InputError(f"calibration: {name} is {getattr(self, name)}: give more than 0")
        if min(self.likeness) <= 0:
            raise InputError(f"calibration: likeness is {self.likeness}: give more than 0")


_UNKNOWN = -1
"""Number of a queue that no job has been forecast in."""
_AT_A_TIME = 64
"""Jobs that are calibrated at a time, each with all that is remembered."""


class CalibratedForecaster:
    """A forecaster, calibrated online.

    Examples
    --------
    >>> from foretime_sim.waits.calibration.calibrated_forecaster import CalibratedForecaster
    >>> from foretime_sim.waits.qbets import Qbets
    >>> CalibratedForecaster(Qbets(60), "past waits", now_within_s=60).oracle
    False

    Parameters
    ----------
    forecaster
        A fresh one.
    name
        What tables call it.
    settings
        The defaults if not given.
    now_within_s
        A start within so many seconds is one at once.

    Attributes
    ----------
    turns
        Of those who wait for a question's answer meanwhile.
    """

    def __init__(
        self,
        forecaster: WaitForecaster,
        name: str,
        settings: CalibrationSettings | None = None,
        *,
        now_within_s: int = 0,
    ) -> None:
        self.name = name
        self.turns: Turns = NOBODY_WAITS
        self._forecaster = forecaster
        self._settings = settings or CalibrationSettings()
        self._now_within_s = now_within_s
        self._remembered = RememberedForecasts(self._settings.remembered)
        self._queues: dict[str | None, int] = {}
        self._asked: dict[str, set[int]] = {}  # ages of those that wait, in doublings

    @property
    def oracle(self) -> bool:
        """Whether the wrapped forecaster is told the future."""
        return self._forecaster.oracle

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait."""
        self._remembered.look(moment.now)
        made = self._forecaster.forecast(moment)
        forecasts, jobs, fresh = self._calibrate(made, moment, self.turns)
        # From here on the job's queue is known.
        for job in jobs:
            self._queues.setdefault(job.queue, len(self._queues))
        fresh["queue"] = [self._queues[job.queue] for job in jobs]
        self._remember(jobs, fresh)
        return forecasts

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted: nothing is learned of them."""
        return self._calibrate(considered(self._forecaster, moment), moment)[0]

    def _calibrate(
        self, made: WaitForecasts, moment: Moment, turns: Turns = NOBODY_WAITS
    ) -> tuple[WaitForecasts, list[JobRequest], Rows]:
        """Calibrate; and give the jobs with an answer, and what is to be remembered of them."""
        rows = np.flatnonzero(made.answered)
        jobs = [moment.requests[column] for column in moment.asked[rows].tolist()]
        to_come_s = moment.to_come_s()
        made = made.from_then(to_come_s)
        fresh = self._fresh(made, jobs, moment, rows)
        wait_s, starts_now = made.wait_s.copy(), made.starts_now.copy()
        for first in range(0, len(rows), _AT_A_TIME):
            turns.give_way()
            some = slice(first, first + _AT_A_TIME)
            wait_s[rows[some]], starts_now[rows[some]] = self._calibrated(fresh[some], moment.now)
        calibrated = WaitForecasts(wait_s, starts_now, made.planned_s)
        return calibrated.later(to_come_s), jobs, fresh

    def submitted(self, job: JobRequest) -> None:
        """Tell the wrapped forecaster."""
        self._forecaster.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Learn what came of the job's forecasts."""
        self._forecaster.started(job, start_time)
        found = self._remembered.resolve(job.job_id, start_time, State.STARTED)
        if len(found):
            rows = self._remembered.rows
            rows["started_now"][found] = rows["wait_s"][found] <= self._now_within_s
        self._asked.pop(job.job_id, None)

    def finished(self, job: FinishedJob) -> None:
        """Tell the wrapped forecaster; a job that was withdrawn waited at least as long."""
        self._forecaster.finished(job)
        if job.start_time is None:
            self._remembered.resolve(job.request.job_id, job.end_time, State.WITHDRAWN)
            self._asked.pop(job.request.job_id, None)

    def _fresh(
        self, made: WaitForecasts, jobs: list[JobRequest], moment: Moment, rows: Int64Array
    ) -> Rows:
        """Describe the forecasts of some rows, as they come from the wrapped forecaster."""
        made = WaitForecasts(made.wait_s[rows], made.starts_now[rows])
        scale = ForecastScale.of(made)
        fresh = np.zeros(len(jobs), dtype=ROW)
        fresh["made_at"] = moment.now
        fresh["waits_from"] = moment.now + moment.to_come_s()[rows]
        fresh["stands_for"] = 1
        fresh["starts_now"] = made.starts_now
        fresh["knots"], fresh["below"], fresh["above"] = scale.knots, scale.below, scale.above
        age = moment.waited_s()[rows]
        fresh["features"][:, 0] = scale.knots[:, MEDIAN]
        fresh["features"][:, 1] = np.log(scale.above + scale.below)
        fresh["features"][:, 2] = np.log2(np.maximum(age / _FIRST_LATER_S, 0.5))
        fresh["queue"] = [self._queues.get(job.queue, _UNKNOWN) for job in jobs]
        return fresh

    def _calibrated(self, fresh: Rows, now: int) -> tuple[Float64Array, Float64Array]:
        """Give the calibrated quantiles and the probabilities of a start at once."""
        rows = self._remembered.rows
        alike, filling = self._weights(fresh, rows, now)
        started = rows["state"] == State.STARTED
        started_now = rows["started_now"]
        settled = started | (rows["wait_s"] > self._now_within_s)
        starts_now = self._starts_now(fresh, rows["starts_now"], started_now, alike * settled)
        waited = np.flatnonzero(settled & ~started_now)
        alike, filling = alike[:, waited], filling[:, waited]
        # Those that fill in count for so many forecasts at most, and what they leave open is the
        # wrapped forecaster's.
        prior = self._settings.prior
        share = prior / (filling.sum(axis=1, keepdims=True) + prior)
        # Of waits that are not starts at once; what is at once has its own probability.
        now_share = starts_now[:, np.newaxis]
        left = np.clip((_LEVELS - now_share) / np.maximum(1 - now_share, 1e-9), 0, 1)
        scores = censored_quantiles(
            np.concatenate([rows["score"][waited], self._settings.prior_width * SCORES]),
            np.concatenate([started[waited], np.ones(len(LEVELS), dtype=np.bool_)]),
            np.hstack([alike + share * filling, share * prior * np.diff(_EDGES)]),
            left,
        )
        scale = ForecastScale(fresh["knots"], fresh["below"], fresh["above"])
        logs = scale.log_waits(scores)
        longest = log_wait(rows["wait_s"].max(initial=0)) + _FURTHEST
        logs = np.minimum(logs, np.maximum(fresh["knots"][:, -1:] + _FURTHEST, longest))
        wait_s = np.where(left > 0, wait_of_log(logs), 0)
        return np.maximum.accumulate(np.rint(wait_s), axis=1), starts_now

    def _weights(self, fresh: Rows, rows: Rows, now: int) -> tuple[Float64Array, Float64Array]:
        """Say how much each remembered forecast tells of each fresh one, and how much it fills in.

        Both of shape (fresh, remembered).
        """
        settings = self._settings
        widths = np.array(settings.likeness)
        apart = (fresh["features"] / widths)[:, np.newaxis] - rows["features"] / widths
        squared = np.einsum("ijk,ijk->ij", apart, apart)
        same = fresh["queue"][:, np.newaxis] == rows["queue"]
        stands_for = np.where(same, 1.0, settings.other_queue) * rows["stands_for"]
        age = now - rows["made_at"]
        alike = (1 + squared / 2) ** -2 * stands_for * 0.5 ** (age / settings.half_life_s)
        filling = (1 + squared / (2 * settings.further**2)) ** -2 * stands_for
        filling *= 0.5 ** (age / settings.filling_half_life_s)
        return np.asarray(alike), np.asarray(filling)

    def _starts_now(
        self,
        fresh: Rows,
        said: Float64Array,
        started_now: BoolArray,
        weights: Float64Array,
    ) -> Float64Array:
        """Give the probability of a start at once: of those of which it was said alike."""
        apart = (fresh["starts_now"][:, np.newaxis] - said) / _SAID_ALIKE
        alike = weights * np.exp(-apart * apart / 2)
        prior = self._settings.prior
        share = alike @ started_now + prior * fresh["starts_now"]
        # Rounding may make it a little more than 1.
        return np.asarray(np.minimum(share / (alike.sum(axis=1) + prior), 1.0))

    def _remember(self, jobs: list[JobRequest], fresh: Rows) -> None:
        """Keep forecasts to learn from: a job's first, and one for each doubling of its age."""
        ages = np.floor(fresh["features"][:, 2]).astype(int).tolist()
        new = []
        for row, (job, age) in enumerate(zip(jobs, ages, strict=True)):
            known = self._asked.setdefault(job.job_id, set())
            if age not in known:
                known.add(age)
                new.append(row)
        self._remembered.add([jobs[row].job_id for row in new], fresh[new])

    def state(self) -> dict[str, Any]:
        """Everything learned but what the wrapped forecaster has, as JSON can hold it."""
        return {
            "calibration": 1,
            "settings": asdict(self._settings),
            "now_within_s": self._now_within_s,
            "queues": list(self._queues),
            "asked": {job_id: sorted(ages) for job_id, ages in self._asked.items()},
            "remembered": self._remembered.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another version saved it, or it was learned under other settings.
        """
        settings = json.loads(json.dumps(asdict(self._settings)))
        if (
            state.get("calibration") != 1
            or json.loads(json.dumps(state["settings"])) != settings
            or state["now_within_s"] != self._now_within_s
        ):
            raise StateError(
                "calibration: the state given was learned by another version or under other"
                " settings: begin anew"
            )
        queues = {queue: number for number, queue in enumerate(state["queues"])}
        asked = {job_id: set(ages) for job_id, ages in state["asked"].items()}
        self._remembered.restore(state["remembered"])
        self._queues, self._asked = queues, asked
