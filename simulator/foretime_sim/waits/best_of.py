"""Chooses between forecasters by how they have done: the one with the least loss of late.

Forward runs are as right as what is known of the scheduler. Where its policy is not modelled, what
waits have been lately tells more; which of the two is the case, outcomes show. So each forecaster
says of every job how long it will wait, and once the job has started its first word is scored
(pinball loss of log10 of the wait). What counts is by how much it lost more than the first one in
the list, on the jobs of which both said something, as a mean that forgets: following the leader
with exponential forgetting (N. Cesa-Bianchi and G. Lugosi, "Prediction, Learning, and Games", 2006,
sections 2.11 and 3.2). Jobs of one queue and of like width are judged by themselves once enough of
them have started: past waits may tell more of a small queue, and the plan of the main one.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from foretime_estimators.arrays import Float32Array
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sim.waits.excess_losses import ExcessLosses
from foretime_sim.waits.forecaster import LEVELS, WaitForecaster, WaitForecasts, considered
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.turns import NOBODY_WAITS, Turns
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
    fewest_days
        On so many days at least.
    remembered
        Waiting jobs of which it is remembered what was said of them; the latest are.
    sureness
        Standard errors of its mean by which another must have lost less than the first one, to go
        before it: where the first is right by what is known, chance must not take its word away.
    """

    half_life_s: int = 10 * DAY_S
    fewest: float = 10.0
    fewest_days: int = 0
    remembered: int = 4_096
    sureness: float = 0.0

    def __post_init__(self) -> None:
        for name in ("half_life_s", "fewest", "remembered"):
            if getattr(self, name) <= 0:
                raise InputError(f"choice: {name} is {getattr(self, name)}: give more than 0")
        for name in ("fewest_days", "sureness"):
            if getattr(self, name) < 0:
                raise InputError(f"choice: {name} is {getattr(self, name)}: give 0 or more")


JobClass = tuple[str | None, int]
"""Jobs that are judged together: a queue, and the width in powers of four."""
_MOST_CLASSES = 200
_OF_A_CLASS = 3
"""A class must have as many times the outcomes to be judged by itself."""


def class_of(job: JobRequest) -> JobClass:
    """Say with which jobs one is judged."""
    return job.queue, job.processors.bit_length() // 2


@dataclass(frozen=True, slots=True)
class _Said:
    """What was first said of a job that waits: when, and by each, shape (forecasters, levels).

    The waits count from when the job can start.
    """

    made_at: int
    waits_from: int
    wait_s: Float32Array
    array_id: str | None
    job_class: JobClass


class BestOf:
    """A `foretime_sim.waits.forecaster.WaitForecaster` that answers as the best of several does.

    Where the best has no answer, the next best has the word. Those that have been judged too little
    come after those that have been, in the order given; with any sureness the first one comes first
    until another is surely better. Of an array one task at a time is judged,
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
        Names of those whose answers the last forecast is made of, who said most first.
    turns
        Of those who wait for a question's answer meanwhile.
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
        self.turns: Turns = NOBODY_WAITS
        self._settings = settings or ChoiceSettings()
        self._said: dict[str, _Said] = {}
        self._all_losses = self._no_losses()
        self._losses: dict[JobClass, ExcessLosses] = {}  # those judged last come last

    def _no_losses(self) -> ExcessLosses:
        return ExcessLosses(len(self._forecasters), self._settings.half_life_s)

    @property
    def oracle(self) -> bool:
        """Whether one of them is told the future."""
        return any(forecaster.oracle for forecaster in self._forecasters)

    def ranked(self, job_class: JobClass | None = None) -> list[WaitForecaster]:
        """Give all forecasters, the best first: for jobs of a class, or else over all."""
        return [self._forecasters[place] for place in self._ranking(job_class)]

    def _ranking(self, job_class: JobClass | None) -> list[int]:
        settings = self._settings
        loss = np.full(len(self._forecasters), math.inf)
        of_class = None if job_class is None else self._losses.get(job_class)
        for losses, times in ((self._all_losses, 1), (of_class, _OF_A_CLASS)):
            if losses is not None:
                judged = losses.judged(settings.fewest * times, settings.fewest_days)
                loss = np.where(judged, losses.upper(settings.sureness), loss)
        if settings.sureness:
            loss[0] = 0.0  # it has the word until another is surely better
        return [int(place) for place in np.argsort(loss, kind="stable")]

    def forecast(self, moment: Moment) -> WaitForecasts:
        """Say how much longer the jobs asked about will wait; what each forecaster says is kept."""
        answers = []
        for forecaster in self._forecasters:
            self.turns.give_way()
            answers.append(forecaster.forecast(moment))
        self._remember(moment, answers)
        best, spoke = self._best(moment, dict(enumerate(answers)))
        names = sorted(spoke, key=lambda place: (-spoke[place], place))
        self.spoke = tuple(self._forecasters[place].name for place in names)
        return best

    def consider(self, moment: Moment) -> WaitForecasts:
        """Say the same of jobs that may never be submitted: nothing is learned of them."""
        return self._best(moment, {})[0]

    def _best(
        self, moment: Moment, answers: dict[int, WaitForecasts]
    ) -> tuple[WaitForecasts, dict[int, int]]:
        """Give the best answer on each job asked about, and on how many each forecaster has it.

        Who has not answered yet is asked what if, where nobody better knows.
        """
        rows_of: dict[JobClass, list[int]] = {}
        for row, column in enumerate(moment.asked.tolist()):
            rows_of.setdefault(class_of(moment.requests[column]), []).append(row)
        best = WaitForecasts.none(len(moment.asked))
        planned_s = np.full(len(moment.asked), np.nan)
        spoke: dict[int, int] = {}
        for job_class, rows in rows_of.items():
            open_rows = np.array(rows)
            for place in self._ranking(job_class):
                if not len(open_rows):
                    break
                if place not in answers:
                    answers[place] = considered(self._forecasters[place], moment)
                answer = answers[place]
                answered = answer.answered[open_rows]
                told, open_rows = open_rows[answered], open_rows[~answered]
                best.wait_s[told] = answer.wait_s[told]
                best.starts_now[told] = answer.starts_now[told]
                if len(told):
                    spoke[place] = spoke.get(place, 0) + len(told)
        for _, answer in sorted(answers.items()):
            if answer.planned_s is not None:
                planned_s = np.where(np.isnan(planned_s), answer.planned_s, planned_s)
        return replace(best, planned_s=planned_s), spoke

    def _remember(self, moment: Moment, answers: Sequence[WaitForecasts]) -> None:
        arrays = {said.array_id for said in self._said.values()} - {None}
        to_come_s = moment.to_come_s()
        answers = [answer.from_then(to_come_s) for answer in answers]
        for row, column in enumerate(moment.asked.tolist()):
            job = moment.requests[column]
            if job.job_id not in self._said and job.array_id not in arrays:
                said = np.array([answer.wait_s[row] for answer in answers], dtype=np.float32)
                self._said[job.job_id] = _Said(
                    moment.now,
                    moment.now + int(to_come_s[row]),
                    said,
                    job.array_id,
                    class_of(job),
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
        wait_s = np.full(len(said.wait_s), float(max(start_time - said.waits_from, 0)))
        loss = pinball_loss(log10_s(wait_s), log10_s(said.wait_s.astype(np.float64)))
        answered = np.flatnonzero(~np.isnan(loss))
        if not len(answered):
            return
        beyond = loss - loss[answered[0]]
        self._all_losses.add(start_time, beyond)
        of_class = self._losses.pop(said.job_class, None) or self._no_losses()
        of_class.add(start_time, beyond)
        self._losses[said.job_class] = of_class
        if len(self._losses) > _MOST_CLASSES:
            del self._losses[next(iter(self._losses))]

    def state(self) -> dict[str, Any]:
        """Everything learned but what the forecasters have, as JSON can hold it."""
        return {
            "choice": 5,
            "settings": asdict(self._settings),
            "forecasters": [forecaster.name for forecaster in self._forecasters],
            "all_losses": self._all_losses.state(),
            "losses": [[*of, losses.state()] for of, losses in self._losses.items()],
            "said": {
                job_id: [
                    said.made_at,
                    said.waits_from,
                    base64.b64encode(said.wait_s.tobytes()).decode("ascii"),
                    said.array_id,
                    *said.job_class,
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
            state.get("choice") != 5
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
                (queue, width),
            )
            for job_id, (made_at, waits_from, rows, array_id, queue, width) in state["said"].items()
        }
        losses = {}
        for queue, width, saved in state["losses"]:
            losses[queue, width] = self._no_losses()
            losses[queue, width].restore(saved)
        self._all_losses.restore(state["all_losses"])
        self._losses = losses
        self._said = said
