"""Long runs on clusters, begun together with the session so that they wait side by side.

A module of tests says what it runs in ``EXPERIMENT``, a function of a release; its tests come
last, and the fixture ``experiment`` gives them what that function returned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

from tests.slurm.harness.slurm_releases import SlurmRelease

Experiment: TypeAlias = Callable[[SlurmRelease], Any]
LONGEST_S = 540


class RunningExperiment:
    """One function at work in a thread of its own, which no end of the session waits for."""

    def __init__(self, experiment: Experiment, release: SlurmRelease) -> None:
        self._work = (experiment, release)
        self._result: Any = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        experiment, release = self._work
        try:
            self._result = experiment(release)
        except BaseException as error:  # noqa: BLE001  # raised anew where the result is wanted
            self._error = error

    def result(self) -> Any:
        """Wait for what the function returns; raises what it raised."""
        self._thread.join(LONGEST_S)
        if self._thread.is_alive():
            raise TimeoutError(f"{self._work[0].__module__} took more than {LONGEST_S} s")
        if self._error is not None:
            raise self._error
        return self._result
