"""What would have happened without predictions: an EASY on requested times that runs beside.

The same jobs in the same queue order. Both know the same: there a job ends after its actual runtime
from the moment on at which it has ended here. Until then it is taken to end after its
t_sched(backfill), unless it runs here, too, and began no later than there: then its end will be
known in time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from foretime_sim.policies.guard import Guard, GuardBy
from foretime_sim.policies.policy import Policy
from foretime_sim.reference.simulated import ReferenceJob, Simulated


class Lateness(NamedTuple):
    """How late a head job is, and how late it may be, seconds."""

    late_s: int
    bound_s: int


class PlainEasy:
    """The other schedule of a simulation's jobs, for its guard.

    Parameters
    ----------
    simulation
        The other schedule, of `jobs_beside`; nothing has happened in it.
    """

    def __init__(self, simulation: Simulated) -> None:
        self.simulation = simulation
        self.jobs = {job.index: job for job in simulation.to_submit}

    def advance(self, now: int) -> None:
        """Do all that happens there before now."""
        while (time := self.simulation.next_time()) is not None and time < now:
            self.simulation.step(time)

    def started(self, index: int, now: int) -> None:
        """Take note that a job starts here now."""
        self.advance(now)
        job = self.jobs[index]
        if job.started_by is None or job.start == now:
            self._tell_runtime(job, job.time_limit, now)

    def ended(self, index: int, runtime: int, now: int) -> None:
        """Take note that a job has ended here now, after this runtime."""
        self.advance(now)
        self._tell_runtime(self.jobs[index], runtime, now)

    def _tell_runtime(self, job: ReferenceJob, runtime: int, now: int) -> None:
        job.actual_runtime = runtime
        if job in self.simulation.running:
            job.end = max(now, job.start + min(runtime, job.time_limit))

    def lateness(self, index: int, guard: Guard, now: int) -> Lateness:
        """Say how late a head job is now by this EASY."""
        self.advance(now)
        while self.simulation.next_time() == now:
            self.simulation.step(now)
        job = self.jobs[index]
        since = None if job.started_by is None else job.start
        if guard.eases_in and job.blocked_since is not None:
            since = job.blocked_since
        if since is None:
            return Lateness(0, 0)
        bound_s = guard.bound_s
        if guard.by is GuardBy.PLAIN_EASY_LONGEST:
            bound_s = min(bound_s, self.longest_wait())
        off = int(guard.share * float(since - job.submit))
        return Lateness(now - since, max(0, bound_s - off))

    def longest_wait(self) -> int:
        """Give the longest wait of those that have started there, seconds."""
        started = (job for job in self.jobs.values() if job.started_by is not None)
        return max((job.start - job.submit for job in started), default=0)


def jobs_beside(jobs: list[ReferenceJob]) -> list[ReferenceJob]:
    """Give the same jobs, with what is known of them at their submission."""
    return [
        replace(
            job,
            queue_time=job.requested,
            backfill_time=job.requested,
            drain_time=job.requested,
            actual_runtime=min(job.backfill_time, job.time_limit),
        )
        for job in jobs
    ]


def policy_beside(policy: Policy) -> Policy:
    """Give the policy of the other schedule."""
    return Policy(order=policy.order, scheduling_interval_s=policy.scheduling_interval_s)
