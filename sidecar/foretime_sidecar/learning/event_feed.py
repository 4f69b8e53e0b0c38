"""Tells a model what happens to jobs: all that is stored, and then from look to look.

Nothing is told twice or left out over a restart: saved is what the model has learned together with
how far it was told. A model that has nothing saved, or nothing that can be used, is told the whole
store, a few seconds of it at a time.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_events import Event, Listener, PastEvents, QueueEvents, in_order
from foretime_sidecar.store.model_states import ModelStates

logger = logging.getLogger("foretime")

_VERSION = 1
_SAVED_EVERY_S = 3600
# What is learned grows, and to save it takes ever longer: in a replay an hour is over in no time.
_MOST_SAVING = 0.01


class Model(Listener, Protocol):
    """What is told, and can be kept."""

    def begin_anew(self) -> None:
        """Forget all that was learned."""

    def state(self) -> dict[str, Any]:
        """Give what was learned, as JSON can hold it."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` gave; if it can't be used, begin anew and raise ValueError."""


class EventFeed:
    """Feeds one model; used from the thread that polls, but for `forget`.

    Parameters
    ----------
    model
        What is told.
    name
        By which its state is saved; see `ModelStates.save`.
    past
        The store's events, read for this feed alone.
    states
        Where it is saved.
    history_s
        Jobs that ended longer ago are not told at the beginning, seconds.
    """

    def __init__(
        self, model: Model, name: str, past: PastEvents, states: ModelStates, history_s: int
    ) -> None:
        self._is_up_to_date = False
        self._model = model
        self._name = name
        self._past = past
        self._states = states
        self._history_s = history_s
        self._seen = QueueEvents()
        self._to_tell: Iterator[Event] = iter(())
        self._begun = False
        self._saved_at = 0
        self._next_save = 0.0  # by the monotonic clock
        self._must_begin_anew = False

    @property
    def caught_up(self) -> bool:
        """Whether the model knows all that was seen at the last `follow`, and may be asked."""
        return self._is_up_to_date and not self._must_begin_anew

    def follow(self, look: Look, most_s: float = math.inf) -> None:
        """Tell what has happened up to a look, and save now and then.

        Parameters
        ----------
        look
            The queue as it is.
        most_s
            About how long it may take, seconds; it goes on at the next call, and until then the
            model has not caught up.

        Raises
        ------
        StateError
            If the store can't be read; the next call begins with what was saved last.
        """
        until = time.monotonic() + most_s
        try:
            if self._must_begin_anew or not self._begun:
                self._begin(look)
            self._is_up_to_date = self._tell(until)
            if self._is_up_to_date:
                self._to_tell = iter(self._seen.since_last(look, self._past.new()))
                self._is_up_to_date = self._tell(until)
        except StateError:
            self._begun = self._is_up_to_date = False
            raise
        is_due = not 0 <= look.taken_at - self._saved_at < _SAVED_EVERY_S
        if self._is_up_to_date and is_due and time.monotonic() >= self._next_save:
            self.save(look.taken_at)

    def _tell(self, until: float) -> bool:
        """Tell what is to be told, and say whether that was all of it."""
        for event in self._to_tell:
            event.tell(self._model)
            if time.monotonic() > until:
                return False
        return True

    def _begin(self, look: Look) -> None:
        """Take over what was saved; without it, begin anew with all that is stored.

        What is in the queue is told among it, at its own time.
        """
        now = look.taken_at
        self._must_begin_anew, self._begun, self._saved_at = False, True, now
        self._seen, self._past.last_seq, self._to_tell = QueueEvents(), 0, iter(())
        try:
            if self._restore(self._states.saved(self._name)):
                return
        except (StateError, LookupError, TypeError, ValueError) as error:
            logger.warning("%s is learned anew from the store: %s", self._name, error)
        self._model.begin_anew()
        past = self._past.all(now - self._history_s)
        self._to_tell = in_order(past, self._seen.since_last(look, ()))

    def _restore(self, saved: Mapping[str, Any] | None) -> bool:
        if saved is None:
            return False
        if saved["version"] != _VERSION:
            raise ValueError(f"it was saved in version {saved['version']!r}, not {_VERSION}")
        last_seq = saved["last_seq"]
        if type(last_seq) is not int:
            raise ValueError(f"last_seq is {last_seq!r}")
        seen = QueueEvents()
        seen.restore(saved["seen"])
        self._model.restore(saved["model"])
        self._seen, self._past.last_seq = seen, last_seq
        return True

    def forget(self) -> None:
        """Have the model begin anew at the next `follow`, as somebody's history was erased.

        Called from any thread, with the store's lock held.
        """
        self._must_begin_anew = True

    def save(self, now: int) -> None:
        """Save what the model knows, if it is up to date; what fails is logged."""
        if not self.caught_up:
            return
        self._saved_at, began = now, time.monotonic()
        try:
            state = {
                "version": _VERSION,
                "last_seq": self._past.last_seq,
                "seen": self._seen.state(),
                "model": self._model.state(),
            }
            self._states.save(self._name, now, state, lambda: not self._must_begin_anew)
        except StateError as error:
            logger.warning("%s is not saved: %s", self._name, error)
        ended = time.monotonic()
        self._next_save = ended + (ended - began) / _MOST_SAVING
