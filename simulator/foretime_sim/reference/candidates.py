"""The order of candidates for backfilling, where it is not that of the queue."""

from __future__ import annotations

from foretime_sim.policies.families import Candidates
from foretime_sim.reference.simulated import ReferenceJob


def candidate_place(candidates: Candidates, job: ReferenceJob, time: int | None) -> tuple[int, int]:
    """Give a candidate's place in an order of candidates' own, smallest first.

    Parameters
    ----------
    time
        Seconds that it goes by whatever its t_sched; ``None``: its t_sched.
    """
    if time is not None:
        return time, job.rank
    return job.queue_time if candidates is Candidates.WSPT else job.backfill_time, job.rank
