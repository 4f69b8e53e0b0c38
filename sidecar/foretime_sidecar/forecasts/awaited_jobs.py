"""When the jobs that another waits for let it go, by what is forecast of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    together; a job that is not in the queue has let it go. Of an array all tasks count.

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
    event, delay_s = EVENTS.get(condition.kind), condition.delay_s
    if event is None:
        return None
    each: list[Sequence[int]] = []
    for row in board.rows:
        if not (_is_named(condition.job_id, row.job.request, row.request) and sees(row.request)):
            continue
        if row.waits is None or row.kept_back is not None or row.job.tasks > 1:
            return None
        seconds = row.waits.wait_s if event is After.START else row.waits.end_s
        each.append([second + delay_s for second in seconds])
    for job in board.running.values():
        if not (_is_named(condition.job_id, job.request) and sees(job.request)):
            continue
        if event is After.START:
            left_s = (job.start_time or board.made_at) + delay_s - board.made_at
            each.append([max(left_s, 0)] * len(LEVELS))
        else:
            ends = board.ends.get(job.request.job_id, ())
            each.append([second + delay_s for second in ends])
    if not all(each):
        return None
    # Of who is gone nobody knows since when, and so not of the delay.
    return tuple(np.max(each, axis=0).tolist()) if each else _AT_ONCE


def _is_named(job_id: str, *requests: JobRequest) -> bool:
    """Whether an id is a job's or task's, or its whole array's; PBS's without the server, too."""
    names = {name for one in requests for name in (one.job_id, one.array_id) if name}
    return job_id in names or job_id in {name.partition(".")[0] for name in names}
