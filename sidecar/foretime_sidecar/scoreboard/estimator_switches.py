"""Which estimator jobs were planned by since when, and when another was found to be better.

Nothing is switched here: an administrator does, in the settings. A better prediction is not yet a
better schedule (docs/estimators.md), so the scores are evidence, and a replay of the site's own
jobs is more of it.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import threading
from dataclasses import dataclass
from typing import Any, Literal

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.scoreboard.estimator_board import BoardRow, EstimatorBoard
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

SAID_AGAIN_S = 7 * DAY_S
_INSERT = "INSERT INTO estimator_switches VALUES (NULL, ?, ?, ?, ?, ?)"
_SELECT = (
    "SELECT happened_at, event, estimator, instead_of, evidence FROM estimator_switches "
    "WHERE happened_at >= ? ORDER BY seq"
)


@dataclass(frozen=True, slots=True)
class Switch:
    """One line of the log.

    Attributes
    ----------
    happened_at
        Epoch seconds.
    event
        ``in-use``: from here on jobs are planned by it; ``more-accurate``: it predicts better than
        what they are planned by, and that is hardly chance.
    estimator
        Which.
    instead_of
        What jobs were planned by before, or are; ``None`` at the first of all.
    evidence
        The rows of the board of both, by name, as far as they are on it.
    """

    happened_at: int
    event: Literal["in-use", "more-accurate"]
    estimator: str
    instead_of: str | None
    evidence: dict[str, Any]


class EstimatorSwitches:
    """The log, in the store.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self._store = store
        self._lock = lock

    def all(self, since: int = 0) -> list[Switch]:
        """Give the lines since a time, oldest first.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        with self._lock:
            rows = self._store.rows(_SELECT, (since,))
        return [
            Switch(at, event, estimator, before, json.loads(evidence))
            for at, event, estimator, before, evidence in rows
        ]

    def note(self, board: EstimatorBoard) -> None:
        """Write down what a complete board tells that is new.

        Raises
        ------
        StateError
            If the store can't be read or written.
        """
        known = self.all()
        used = next((one for one in reversed(known) if one.event == "in-use"), None)
        if used is None or used.estimator != board.in_use:
            before = None if used is None else used.estimator
            self._write(Switch(board.made_at, "in-use", board.in_use, before, _of(board, before)))
            logger.info("jobs are planned by the estimator %s", board.in_use)
        best = better(board)
        if best is None:
            return
        since = board.made_at - SAID_AGAIN_S
        if any(
            one.event == "more-accurate" and one.estimator == best.name and one.happened_at > since
            for one in known
        ):
            return
        evidence = _of(board, best.name)
        self._write(Switch(board.made_at, "more-accurate", best.name, board.in_use, evidence))
        logger.info(
            "the estimator %s predicts this site's jobs better than %s, by which they are planned; "
            "see foretime estimators",
            best.name,
            board.in_use,
        )

    def _write(self, switch: Switch) -> None:
        row = (*dataclasses.astuple(switch)[:4], json.dumps(switch.evidence))
        with self._lock:
            self._store.write("log the estimator in use", _INSERT, [row])


def better(board: EstimatorBoard) -> BoardRow | None:
    """Give the best estimator if it is better than the one in use, beyond what may be chance.

    One that is in use and not eligible is passed by any that is.
    """
    used = board.row(board.in_use)
    if board.best is None or board.best == board.in_use or used is None or not used.jobs:
        return None
    if used.eligible and (used.behind_interval is None or used.behind_interval.low <= 0):
        return None
    return board.row(board.best)


def _of(board: EstimatorBoard, name: str | None) -> dict[str, Any]:
    rows = [board.row(each) for each in (board.in_use, name) if each is not None]
    found = {}
    for row in rows:
        if row is not None:
            figures = dataclasses.asdict(row)
            del figures["classes"]
            found[row.name] = figures
    return found
