"""The estimators that run in the shadow: asked and taught, and never believed.

One that raises, answers what no estimator may, or is too slow is set aside, and the others go on.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from foretime_estimators.accuracy_settings import AccuracySettings
from foretime_estimators.errors import InputError, StateError
from foretime_estimators.estimator import RuntimeEstimator, StartObserver
from foretime_estimators.jobs import FinishedJob, JobRequest
from foretime_estimators.registry import ESTIMATORS, parse_estimator

logger = logging.getLogger("foretime")

Int64Array = npt.NDArray[np.int64]
_T = TypeVar("_T")

SLOWEST_S = 0.1
"""Processor time that an estimator may take for a job on average, seconds."""
JUDGED_FROM = 200
"""Predictions from which on the average counts: what is set up once is not held against it."""
LONGEST_CALL_S = 60
"""So long may one call take, such as one that fits a model anew."""

Build = Callable[[], RuntimeEstimator]


class ShadowEstimator:
    """One estimator in the shadow.

    Parameters
    ----------
    name
        As in the registry.
    build
        Makes a fresh one.

    Attributes
    ----------
    set_aside
        Why it is asked no more; "" while it is.
    """

    def __init__(self, name: str, build: Build) -> None:
        self.name = name
        self._build = build
        self.set_aside = ""
        self._predictions = 0
        self._used_s = 0.0
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything learned, as at a start."""
        self.set_aside = ""
        self._predictions, self._used_s = 0, 0.0
        self._estimator: RuntimeEstimator | None = None
        built = self._estimator = self._guarded("building it", self._build)
        self._observes_starts = isinstance(built, StartObserver)

    @property
    def cost_s(self) -> float | None:
        """Processor time for a job, seconds, to predict and to learn; ``None`` before the first."""
        return self._used_s / self._predictions if self._predictions else None

    def predict(self, job: JobRequest, now: int) -> int:
        """Scheduled time of a job, seconds; 0 if there is none to be had."""
        if self._estimator is None or self.set_aside:
            return 0
        answer = self._guarded("predicting", self._estimator.predict_one, job, now)
        if type(answer) is not int or not 1 <= answer <= job.requested_time:
            self._leave(f"it predicted {answer!r} s for a job of {job.requested_time} s")
            return 0
        self._predictions += 1
        if self._predictions >= JUDGED_FROM and self._used_s / self._predictions > SLOWEST_S:
            self._leave(f"it takes {self._used_s / self._predictions:.2g} s a job")
        return answer

    def start(self, job: JobRequest, start_time: int) -> None:
        """Tell it that a job has started."""
        if self._observes_starts and not self.set_aside:
            assert isinstance(self._estimator, StartObserver)  # noqa: S101 - for the type checker
            self._guarded("observing a start", self._estimator.start_one, job, start_time)

    def learn(self, job: FinishedJob) -> None:
        """Tell it that a job has ended."""
        if self._estimator is not None and not self.set_aside:
            self._guarded("learning", self._estimator.learn_one, job)

    def state(self) -> dict[str, Any] | None:
        """Give what it has learned; ``None`` if it is set aside, also if it can't tell."""
        if self._estimator is None or self.set_aside:
            return None
        return self._guarded("giving its state", self._estimator.state)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave.

        Raises
        ------
        StateError
            If it can't be used; it begins anew then.
        """
        if self._estimator is None:
            return
        try:
            self._estimator.restore(state)
        except StateError:
            self.begin_anew()
            raise
        except Exception as error:
            # Whatever was saved, and by whichever version: nothing in it may end the daemon.
            self.begin_anew()
            raise StateError(f"{type(error).__name__}: {error}") from error

    def _guarded(self, doing: str, call: Callable[..., _T], *arguments: object) -> _T | None:
        used, began = time.thread_time(), time.monotonic()
        try:
            answer = call(*arguments)
        except Exception as error:  # noqa: BLE001 - the others must go on
            self._leave(f"{doing}: {type(error).__name__}: {error}")
            return None
        self._used_s += time.thread_time() - used
        if (took_s := time.monotonic() - began) > LONGEST_CALL_S:
            self._leave(f"{doing} took {took_s:.0f} s at a time")
        return answer

    def _leave(self, why: str) -> None:
        if self.set_aside:
            return
        self.set_aside = why
        self._estimator = None  # its memory is free again
        logger.warning(
            "the estimator %s is set aside until the daemon is started again: %s", self.name, why
        )


def shadow_estimators(
    names: Sequence[str], settings: AccuracySettings
) -> tuple[ShadowEstimator, ...]:
    """Give fresh estimators by name.

    Parameters
    ----------
    names
        As in the registry; empty for all that need no number, are no oracles and have what they
        need installed.
    settings
        Of the schemes that go by past accuracy, as the table does.

    Raises
    ------
    InputError
        For a name that there is not, an oracle, or one whose extra is not installed.
    """
    chosen = []
    for name in dict.fromkeys(names or _available(settings)):
        build = _builder(name, settings)
        if not names or not build().oracle:
            chosen.append(ShadowEstimator(name, build))
            continue
        raise InputError(
            f"estimators.names: {name} must be told how long jobs will run, which no site knows; "
            "leave it out"
        )
    return tuple(chosen)


def _builder(name: str, settings: AccuracySettings) -> Build:
    return lambda: parse_estimator(name, settings=settings)


def _available(settings: AccuracySettings) -> list[str]:
    found = []
    for entry in ESTIMATORS:
        if entry.oracle or entry.parameter is not None:
            continue
        try:
            parse_estimator(entry.name, settings=settings)
        except (InputError, ModuleNotFoundError) as error:
            logger.info("the estimator %s is left out: %s", entry.name, error)
            continue
        found.append(entry.name)
    return found
