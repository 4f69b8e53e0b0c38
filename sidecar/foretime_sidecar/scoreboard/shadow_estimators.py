"""The estimators that run in the shadow: asked and taught, and never believed.

One that fails or is too slow is set aside, and the others go on.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence

from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.estimators.registry import ESTIMATORS, parse_estimator
from foretime_estimators.estimators.requested import Requested
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sidecar.learning.guarded_estimator import Given, HeldEstimator

logger = logging.getLogger("foretime")

SLOWEST_S = 0.1
"""Processor time that an estimator may take for a job on average, seconds."""
JUDGED_FROM = 200
"""Predictions from which on the average counts: what is set up once is not held against it."""
LONGEST_CALL_S = 60
"""Processor time that one call may take, such as one that fits a model anew, seconds."""


class ShadowEstimator(HeldEstimator):
    """A `HeldEstimator` that is set aside when it fails or is too slow.

    Attributes
    ----------
    set_aside
        Why it is asked no more; "" while it is.
    """

    def __init__(self, name: str, settings: AccuracySettings) -> None:
        super().__init__(name, settings)
        self.set_aside = ""
        self._predictions = 0
        self._used_s = 0.0

    def begin_anew(self) -> None:
        """Forget all that was learned, and why it was set aside."""
        super().begin_anew()
        self.set_aside = ""
        self._predictions, self._used_s = 0, 0.0

    @property
    def cost_s(self) -> float | None:
        """Processor time for a job, seconds, to predict and to learn; ``None`` before the first."""
        return self._used_s / self._predictions if self._predictions else None

    def predicted(self, job: JobRequest) -> int:
        """Scheduled time of a job at its submission, seconds; 0 if there is none to be had."""
        found = self._predict(job, job.submit_time)
        if found is None:
            return 0
        self._predictions += 1
        if self._predictions >= JUDGED_FROM and self._used_s / self._predictions > SLOWEST_S:
            self.leave(f"it takes {self._used_s / self._predictions:.2g} s a job")
        return found

    def state_text(self) -> str | None:
        """Give what it has learned, in JSON; ``None`` if it is set aside, also if it can't tell."""
        if self.set_aside:
            return None
        try:
            return json.dumps(self.state(), allow_nan=False)
        except (StateError, TypeError, ValueError) as error:
            self.leave(f"its state can't be saved: {error}")
            return None

    def leave(self, why: str) -> None:
        """Ask it no more."""
        self.set_aside = why
        self._estimator = Requested()  # which holds no memory
        logger.warning("the estimator %s is set aside in the shadow: %s", self.name, why)

    def _guarded(self, what: str, ask: Callable[[], Given], job: JobRequest) -> Given | None:
        if self.set_aside:
            return None
        # Processor time: on a busy machine this thread, which gives way to all others, takes long.
        began = time.thread_time()
        given = super()._guarded(what, ask, job)
        took_s = time.thread_time() - began
        self._used_s += took_s
        if took_s > LONGEST_CALL_S and not self.set_aside:
            self.leave(f"it took {took_s:.0f} s of processor time to {what} one job")
        return given

    def _failed(self) -> None:
        self.leave(self.last_failure)


def shadow_estimators(
    names: Sequence[str], in_use: str, settings: AccuracySettings
) -> tuple[ShadowEstimator, ...]:
    """Give fresh estimators by name.

    Parameters
    ----------
    names
        As in the registry; empty for all that are no oracles and are installed: with
        each name that may stand behind it, or one number as an example.
    in_use
        The one that jobs are planned by: always among them.
    settings
        Of the schemes that go by past accuracy, as the table does.
    """
    chosen = dict.fromkeys([*(names or _available(settings)), in_use])
    return tuple(ShadowEstimator(name, settings) for name in chosen)


def _available(settings: AccuracySettings) -> list[str]:
    found = []
    for entry in ESTIMATORS:
        if entry.oracle:
            continue
        try:
            parse_estimator(entry.example, settings=settings)
        except (InputError, ModuleNotFoundError) as error:
            logger.info("the estimator %s is left out: %s", entry.name, error)
            continue
        found += [f"{entry.name}:{choice}" for choice in entry.choices] or [entry.example]
    return found
