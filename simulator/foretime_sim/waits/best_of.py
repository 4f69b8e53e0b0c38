"""Chooses between forecasters by how they have done: the one with the least loss of late.

Forward runs are as right as what is known of the scheduler. Where its policy is not modelled, what
waits have been lately tells more; which of the two is the case, outcomes show. So each forecaster
says of every job how long it will wait, and once the job has started its first word is scored
(pinball loss of log10 of the wait). What counts is by how much it lost more than the first one in
the list, on the jobs of which both said something, as a mean that forgets: following the leader
with exponential forgetting (N. Cesa-Bianchi and G. Lugosi, "Prediction, Learning, and Games", 2006,
sections 2.11 and 3.2).
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float32Array
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts, considered
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.wait_scores import log10_s, pinball_loss


@dataclass(frozen=True, slots=True)
class ChoiceSettings:
    """Settings of `BestOf`; see docs/studies/waits.md for what they were chosen on.

    Attributes
    ----------
    half_life_s
        After so long an outcome counts half.
    fewest
        Outcomes, counted so, from which on a forecaster is judged.
    remembered
        Waiting jobs of which it is remembered what was said of them; the latest are.
    sureness
        Standard errors of its mean by which another must have lost less than the first one, to go
        before it: where the first is right by what is known, chance must not take its word away.
    """

    half_life_s: int = 10 * DAY_S
    fewest: float = 10.0
    remembered: int = 4_096
    sureness: float = 0.0

    def __post_init__(self) -> None:
        for name in ("half_life_s", "fewest", "remembered"):
            if getattr(self, name) <= 0:
                raise InputError(f"choice: {name} is {getattr(self, name)}: give more than 0")
        if self.sureness < 0:
            raise InputError(f"choice: sureness is {self.sureness}: give 0 or more")


@dataclass(frozen=True, slots=True)
class _Said:
    """What was first said of a job that waits: when, and by each, shape (forecasters, levels).

    The waits count from when the job can start.
    """

    made_at: int
    waits_from: int
    wait_s: Float32Array
    array_id: str | None


class BestOf:
    """A `foretime_sim.waits.forecaster.WaitForecaster` that answers as the best of several does.

    Where the best has no answer, the next best has the word. Those that have been judged too little
    come after those that have been, in the order given. Of an array one task at a time is judged,
    so that a large one does not outvote everybody else.

    Parameters
    ----------
    forecasters
        Fresh ones, with names of their own; the first is trusted until they are judged.
    name
        What tables call it.
    settings
        The defaults if not given.

    Attributes
    ----------
    spoke
        Names of those whose answers the last forecast is made of, the best first.
    """

    def __init__(
        self,
        forecasters: Sequence[WaitForecaster],
        name: str,
        settings: ChoiceSettings | None = None,
    ) -> None:
        if not forecasters:
            raise InputError("choice: give one forecaster or more")
        self.name = name
        self._forecasters = tuple(forecasters)
        self.spoke: tuple[str, ...] = ()
        self._settings = settings or ChoiceSettings()
        self._said: dict[str, _Said] = {}
        # Of each forecaster, as of the latest outcome: its losses beyond the first one's, summed,
        # their squares, and the outcomes counted.
        self._beyond = np.zeros(len(forecasters))
        self._squares = np.zeros(len(forecasters))
        self._judged = np.zeros(len(forecasters))
        self._as_of: int | None = None

    @property
    def oracle(self) -> bool:
        """Whether one of them is told the future."""
        return any(forecaster.oracle for forecaster in self._forecasters)

    @property
    def ranked(self) -> list[WaitForecaster]:
        """All forecasters, the best first, as of the latest outcome."""
        return [self._forecasters[place] for place in self._ranking()]

    def _ranking(self) -> list[int]:
        judged = self._judged >= self._settings.fewest
        counted = np.maximum(self._judged, 1e-9)
        mean = self._beyond / counted
        error = np.sqrt(np.maximum(self._squares / counted - mean**2, 0) / counted)
        loss = np.where(judged, mean + self._settings.sureness * error, math.inf)
        return [int(place) for place in np.argsort(loss, kind="stable")]

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait; what each forecaster says is kept."""
        answers = [forecaster.forecast(moment) for forecaster in self._forecasters]
        self._remember(moment, answers)
        best = WaitForecasts.none(len(moment.asked))
        spoke = []
        for place in self._ranking():
            if (answers[place].answered & ~best.answered).any():
                spoke.append(self._forecasters[place].name)
            best = _completed(best, answers[place])
        self.spoke = tuple(spoke)
        return best

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted: nothing is learned of them."""
        best = WaitForecasts.none(len(moment.asked))
        for place in self._ranking():
            best = _completed(best, considered(self._forecasters[place], moment))
            if best.answered.all():
                break
        return best

    def _remember(self, moment: Moment, answers: Sequence[WaitForecasts]) -> None:
        arrays = {said.array_id for said in self._said.values()} - {None}
        to_come_s = moment.to_come_s()
        answers = [answer.from_then(to_come_s) for answer in answers]
        for row, column in enumerate(moment.asked.tolist()):
            job = moment.requests[column]
            if job.job_id not in self._said and job.array_id not in arrays:
                said = np.array([answer.wait_s[row] for answer in answers], dtype=np.float32)
                self._said[job.job_id] = _Said(
                    moment.now, moment.now + int(to_come_s[row]), said, job.array_id
                )
                arrays |= {job.array_id} - {None}
        while len(self._said) > self._settings.remembered:
            del self._said[next(iter(self._said))]

    def submitted(self, job: JobRequest) -> None:
        """Tell every forecaster."""
        for forecaster in self._forecasters:
            forecaster.submitted(job)

    def started(self, job: JobRequest, start_time: int) -> None:
        """Tell every forecaster, and judge what they said of the job."""
        for forecaster in self._forecasters:
            forecaster.started(job, start_time)
        said = self._said.get(job.job_id)
        # What was said later is of the job requeued, which waits.
        if said is not None and said.made_at <= start_time:
            del self._said[job.job_id]
            self._judge(said, start_time)

    def finished(self, job: FinishedJob) -> None:
        """Tell every forecaster; what was said of a job that was withdrawn is dropped."""
        for forecaster in self._forecasters:
            forecaster.finished(job)
        if job.start_time is None:
            self._said.pop(job.request.job_id, None)

    def _judge(self, said: _Said, start_time: int) -> None:
        passed_s = 0 if self._as_of is None else max(start_time - self._as_of, 0)
        self._as_of = max(start_time, self._as_of or start_time)
        forgotten = 0.5 ** (passed_s / self._settings.half_life_s)
        self._beyond *= forgotten
        self._squares *= forgotten
        self._judged *= forgotten
        wait_s = np.full(len(said.wait_s), float(max(start_time - said.waits_from, 0)))
        loss = pinball_loss(log10_s(wait_s), log10_s(said.wait_s.astype(np.float64)))
        answered = np.flatnonzero(~np.isnan(loss))
        if len(answered):
            beyond = loss[answered] - loss[answered[0]]
            self._beyond[answered] += beyond
            self._squares[answered] += beyond**2
            self._judged[answered] += 1

    def state(self) -> dict[str, Any]:
        """Everything learned but what the forecasters have, as JSON can hold it."""
        return {
            "choice": 3,
            "settings": asdict(self._settings),
            "forecasters": [forecaster.name for forecaster in self._forecasters],
            "beyond": self._beyond.tolist(),
            "squares": self._squares.tolist(),
            "judged": self._judged.tolist(),
            "as_of": self._as_of,
            "said": {
                job_id: [
                    said.made_at,
                    said.waits_from,
                    base64.b64encode(said.wait_s.tobytes()).decode("ascii"),
                    said.array_id,
                ]
                for job_id, said in self._said.items()
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave, replacing all that was learned.

        Raises
        ------
        StateError
            If another version saved it, or it is of other forecasters or settings.
        """
        if (
            state.get("choice") != 3
            or state["settings"] != asdict(self._settings)
            or state["forecasters"] != [forecaster.name for forecaster in self._forecasters]
        ):
            raise StateError(
                "choice of forecasters: the state given is of another version, or of other"
                " forecasters or settings: begin anew"
            )
        shape = len(self._forecasters), len(LEVELS)
        said = {
            job_id: _Said(
                made_at,
                waits_from,
                np.frombuffer(base64.b64decode(rows), dtype=np.float32).reshape(shape),
                array_id,
            )
            for job_id, (made_at, waits_from, rows, array_id) in state["said"].items()
        }
        self._beyond = np.array(state["beyond"], dtype=np.float64)
        self._squares = np.array(state["squares"], dtype=np.float64)
        self._judged = np.array(state["judged"], dtype=np.float64)
        self._as_of = state["as_of"]
        self._said = said


def _completed(best: WaitForecasts, other: WaitForecasts) -> WaitForecasts:
    """Take over what another says where there is no answer yet."""
    known = best.answered
    return WaitForecasts(
        np.where(known[:, np.newaxis], best.wait_s, other.wait_s),
        np.where(known, best.starts_now, other.starts_now),
    )
