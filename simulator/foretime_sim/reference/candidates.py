"""The order of candidates for backfilling, where it is not that of the queue."""

from __future__ import annotations

from foretime_sim.policies.policy import Backfill
from foretime_sim.policies.python_policy import PythonBackfill
from foretime_sim.reference.simulated import ReferenceJob


def candidate_place(
    backfill: Backfill | PythonBackfill, job: ReferenceJob, time: int | None
) -> tuple[int, int]:
    """Give a candidate's place under easy-sjbf or easy-wspt, smallest first.

    Parameters
    ----------
    time
        Seconds that it goes by whatever its t_sched; ``None``: its t_sched.
    """
    if time is not None:
        return time, job.rank
    return job.queue_time if backfill is Backfill.EASY_WSPT else job.backfill_time, job.rank
