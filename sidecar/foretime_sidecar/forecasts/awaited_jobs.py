"""When the jobs that another waits for let it go, by what is forecast of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.engine.admission import After
from foretime_sim.waits.forecaster import LEVELS

from foretime_sidecar.forecasts.forecast_board import Board
from foretime_sidecar.queue.job_columns import EVENTS, Condition, conditions_of

_AT_ONCE = (0,) * len(LEVELS)


def let_go_s(
    dependency: str, board: Board, sees: Callable[[JobRequest], bool]
) -> tuple[int, ...] | None:
    """Say how long the jobs that a dependency names keep a job from the queue.

    Where all must let it go the latest counts, level by level, as if all came early or late
    together; a job that is not in the queue has let it go.

    Parameters
    ----------
    dependency
        As Slurm writes it, such as ``afterok:4711``.
    board
        What is forecast.
    sees
        Whether somebody may know of a job; one that is hidden is taken for none.

    Returns
    -------
    tuple
        Seconds from the board's moment at each of ``LEVELS``; ``None`` if it is not known of one
        of them.
    """
    conditions, any_suffices = conditions_of(dependency)
    found = [_let_go_s(each, board, sees) for each in conditions]
    known = [each for each in found if each is not None]
    if not known or (len(known) < len(found) and not any_suffices):
        return None
    combined = np.min(known, axis=0) if any_suffices else np.max(known, axis=0)
    return tuple(combined.tolist())


def _let_go_s(
    condition: Condition, board: Board, sees: Callable[[JobRequest], bool]
) -> tuple[int, ...] | None:
    event = EVENTS.get(condition.kind)
    if event is None:
        return None
    waiting = board.pending_job(condition.job_id)
    running = board.running_job(condition.job_id)
    seconds: tuple[int, ...] = _AT_ONCE
    if waiting is not None and sees(waiting.request):
        if waiting.waits is None or waiting.kept_back is not None or waiting.job.tasks > 1:
            return None
        seconds = waiting.waits.wait_s if event is After.START else waiting.waits.end_s
    elif running is not None and sees(running.request) and event is After.END:
        seconds = board.ends.get(running.request.job_id, ())
    return tuple(each + condition.delay_s for each in seconds) or None
