"""What stands over the hook: the disable file, the circuit breaker, the audit, who was told."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from foretime_sidecar.clients.client import FinishedRecord, QueuedJob
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.safety.advice_log import ToldUsers
from foretime_sidecar.safety.circuit_breaker import CircuitBreaker, Trip
from foretime_sidecar.safety.decision_log import DecisionLog
from foretime_sidecar.safety.hook_record import HookRecord
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import NO_ADVICE, Advice, Mode

logger = logging.getLogger("foretime")


class Oversight:
    """Watches what the hook does, and takes enforce from it where it must.

    Parameters
    ----------
    settings, store
        The sidecar's.
    lock
        Held while the store is used.

    Attributes
    ----------
    decisions, breaker
        The audit, and the circuit breaker; use them with ``lock`` held.
    record
        What has become of jobs lately, counted; takes the lock itself.
    """

    def __init__(self, settings: Settings, store: Store, lock: threading.RLock) -> None:
        self._settings = settings
        self._lock = lock
        self.decisions = DecisionLog(settings.hook, store)
        self.breaker = CircuitBreaker(settings.breaker, store)
        self.record = HookRecord(settings.breaker, store, lock, self.breaker)
        self._told = ToldUsers(store)
        self._finished: list[FinishedRecord] = []
        self._stands: tuple[bool, Trip | None] | None = None

    def disabled(self) -> bool:
        """Whether foretime disable was said: the file is there, or it can't be told."""
        try:
            os.lstat(self._settings.hook.disable_file)
        except FileNotFoundError:
            return False
        except OSError:
            return True
        return True

    def note(
        self,
        jobs: Sequence[QueuedJob],
        learner: Learner,
        exclusions: Exclusions,
        now: int,
        refined: Refined = NOTHING_REFINED,
    ) -> bool:
        """Record what is seen of the queue; say whether the table must be written anew at once.

        Parameters
        ----------
        jobs
            The queue, with what was changed at this look.
        learner, exclusions, now, refined
            As of `DecisionLog.note`.

        Raises
        ------
        StateError
            If it can't be stored.
        """
        with self._lock:
            self.decisions.note(jobs, learner, exclusions, now, refined)
            self.breaker.note_heads(jobs, now)
            if self._settings.hook.mode == "advise":
                ended = [record.job.request for record in self._finished]
                self._told.note(jobs, ended, learner, now)
            self._finished.clear()
            trip = None
            if self._settings.hook.mode == "enforce":
                trip = self.breaker.judge(now)
            stands = (self.disabled(), trip)
        changed = self._stands is not None and stands != self._stands
        if trip is not None and (self._stands is None or self._stands[1] is None):
            logger.error(
                "the circuit breaker is open, so the hook only observes: %s; look into it, then "
                "foretime enable",
                trip.reason,
            )
        self._stands = stands
        return changed

    def learned(self, records: list[FinishedRecord]) -> None:
        """Take note of jobs that have ended, which no look may have seen."""
        if self._settings.hook.mode == "advise":
            self._finished += records

    def forget(self, user: str) -> None:
        """Drop what is in memory of a user who is in the store no more."""
        self._finished = [one for one in self._finished if one.job.request.user != user]
        self._told.reread()
        self.record.forget()

    def allowed(self, mode: Mode, reason: str) -> tuple[Mode, str]:
        """Give the mode that the table may carry, and why if it is not the one given.

        Parameters
        ----------
        mode, reason
            What the settings and the scheduler allow, and why.
        """
        if mode not in (Mode.ENFORCE, Mode.ADVISE):
            return mode, reason
        if self.disabled():
            return Mode.OBSERVE, (
                f"{self._settings.hook.disable_file} exists; foretime enable removes it"
            )
        with self._lock:
            trip = self.breaker.trip()
        if mode is Mode.ENFORCE and trip is not None:
            return Mode.OBSERVE, f"the circuit breaker is open: {trip.reason}; foretime enable"
        return mode, reason

    def advice(self, mode: Mode, learner: Learner, now: int) -> Advice:
        """Give what the table tells the hook to tell users."""
        if mode is not Mode.ADVISE:
            return NO_ADVICE
        with self._lock:
            return self._told.advice(learner, now)
