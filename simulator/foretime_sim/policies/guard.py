"""The starvation guard: plans go by requested times alone while the head job waits for too long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.choices import NamedChoice


class GuardBy(NamedChoice):
    """Guard by: what tells the starvation guard that a head job waits for too long."""

    REQUESTED_PLAN = "requested-plan"
    """Its start as planned on t_req when it was first seen blocked at the head of the queue."""
    PLAIN_EASY = "plain-easy"
    """Its start in a plain EASY on t_req that runs beside, with the same jobs in the same queue
    order: what would have happened without predictions. There a job ends after its actual runtime
    from the moment on at which it has ended here; until then it is taken to end after its
    t_sched(backfill), unless it runs here, too, and began no later than there. Of a flat pool
    without advance reservations, from its first job on."""
    PLAIN_EASY_GRADUAL = "plain-easy-gradual"
    """The same EASY, from the moment on at which it began to keep processors for the job: when it
    was first blocked at the head of the queue there, or started if it never was. The guard eases
    in: the later the head job is, the more of their t_req do candidates need to fit."""
    PLAIN_EASY_LONGEST = "plain-easy-longest"
    """The same; and a job may not be later than the longest wait that has ended there so far."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A starvation guard.

    When a job is first seen blocked at the head of the queue, its start as planned on t_req is
    noted and kept with the job. If it is still blocked at the head at a pass more than ``bound_s``
    after that, then from that pass on, until it has started, plans and backfilling go by t_req
    alone. The deadline is no event of its own: it takes effect at the first pass after it, which an
    arrival, a completion or an expiry brings about. (Planning on t_req moves the shadow time later,
    so a pass at the deadline itself could let a job in that waits for the next event; a real
    scheduler, too, notices at its next pass.)

    Attributes
    ----------
    bound_s
        How much later than planned, seconds.
    by, share
        What the guard goes by. With ``plain-easy`` a job that is blocked at the head is late when
        it started there more than ``bound_s - share * (its wait there)`` ago, or at all if that is
        negative (``share`` from 0 on); then candidates go in queue order, too: until the job has
        started all is as in a plain EASY. With ``plain-easy-gradual`` the same goes for the time
        since processors are kept for it there, and its wait until then; and candidates fit by
        t_sched + (t_req - t_sched) * lateness / bound (whole seconds, rounded down) as long as the
        job is late by less than the bound. With ``plain-easy-longest`` the longest wait there takes
        the place of ``bound_s`` while it is less.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.policies.guard import Guard
    >>> policy = Policy().guarded(Guard(bound_s=3600))
    >>> policy.guard.bound_s
    3600
    """

    bound_s: int
    by: GuardBy = GuardBy.REQUESTED_PLAN
    share: float = 0.0

    @property
    def runs_beside(self) -> bool:
        """Whether a plain EASY runs beside."""
        return self.by is not GuardBy.REQUESTED_PLAN

    @property
    def eases_in(self) -> bool:
        """Whether it eases in, from predictions to requested times."""
        return self.by in (GuardBy.PLAIN_EASY_GRADUAL, GuardBy.PLAIN_EASY_LONGEST)

    def __post_init__(self) -> None:
        if self.bound_s < 0:
            raise InputError(f"guard_s is {self.bound_s}: give a bound of 0 seconds or more")
        if not 0 <= self.share < math.inf:
            raise InputError(f"guard_share is {self.share}: give a share of 0 or more")
        if self.share and not self.runs_beside:
            raise InputError(
                f"guard_share is {self.share}: only a guard by a plain EASY knows how long a job"
                " waited there"
            )


def parse_guard(
    bound_s: int | None, by: GuardBy = GuardBy.REQUESTED_PLAN, share: float = 0.0
) -> Guard | None:
    """Give the guard that somebody wrote down as three settings; ``None`` for none.

    Raises
    ------
    InputError
        If a value is out of its range, or the guard is said to go by something, but not after what.
    """
    if bound_s is not None:
        return Guard(bound_s, by, share)
    if by is not GuardBy.REQUESTED_PLAN or share:
        said = f"guard_share is {share:g}" if share else f"guard_by is {by}"
        raise InputError(f"{said}, but there is no guard: give guard_s as well")
    return None
