"""Which estimator jobs were planned by since when, and when another was found to be better.

Nothing is switched here: an administrator does, in the settings. A better prediction is not yet a
better schedule (docs/estimators.md), so the scores are evidence, and a replay of the site's own
jobs is more of it.
"""

from __future__ import annotations

import dataclasses
import logging
import threading
from typing import Any

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.scoreboard.estimator_board import BoardRow, EstimatorBoard
from foretime_sidecar.store.estimator_switches import EstimatorSwitch, EstimatorSwitches
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

SAID_AGAIN_S = 7 * DAY_S


class SwitchWatch:
    """Writes into the log what a board tells.

    Parameters
    ----------
    store, lock
        The sidecar's; the lock is held for a statement at a time.

    Attributes
    ----------
    log
        The log.
    """

    def __init__(self, store: Store, lock: threading.RLock) -> None:
        self.log = EstimatorSwitches(store, lock)

    def note(self, board: EstimatorBoard) -> None:
        """Write down what a complete board tells that is new.

        Raises
        ------
        StateError
            If the store can't be read or written.
        """
        known = self.log.all()
        used = next((one for one in reversed(known) if one.event == "in-use"), None)
        if used is None or used.estimator != board.in_use:
            before = None if used is None else used.estimator
            evidence = _of(board, before)
            self.log.add(EstimatorSwitch(board.made_at, "in-use", board.in_use, before, evidence))
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
        self.log.add(
            EstimatorSwitch(board.made_at, "more-accurate", best.name, board.in_use, evidence)
        )
        logger.info(
            "the estimator %s predicts this site's jobs better than %s, by which they are planned; "
            "see foretime estimators",
            best.name,
            board.in_use,
        )


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
