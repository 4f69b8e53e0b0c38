"""What a self-tuning scheduler chooses between: queue order, runtimes it goes by, backfilling.

Orders become priorities, larger first: so one engine, or a Slurm by its SiteFactor, can go from one
to another, and what has waited for too long can be put before all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.families import FAMILIES, Backfill, Easy, FirstFit, Planning
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy

ORDERS = (Order.FCFS, Order.SJF, Order.LJF)
BACKFILLS = (Easy, Planning, FirstFit)
_STEPS = 1e9
"""Priorities in a change of the time or the width by a factor of e; times of 31 years differ by a
second still."""
_ALL_ORDERS = 1 << 50
"""Larger than any priority of an order."""


class OrderedBy(NamedChoice):
    """Ordered by: the runtime that a queue order goes by."""

    REQUESTED = "requested"
    """t_req."""
    EXPECTED = "expected"
    """The mean that was learned from finished jobs of its kind."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to schedule. Backfilling always plans with requested times, so plans hold.

    Attributes
    ----------
    order
        ``fcfs``, ``sjf`` or ``ljf``.
    by
        What t is in the order.
    width_exponent
        Of ``sjf``: smallest t / processors^this first, from 0 on. By Smith's rule (1956) the mean
        response time weighted by width is least if jobs go by what they keep from others over what
        they count for, which is their width: t / processors if jobs run one after the other, t if
        they fit beside each other like water, as a job then keeps only t * processors from others.
    backfill
        One of `BACKFILLS`, with any depth.
    """

    order: Order = Order.SJF
    by: OrderedBy = OrderedBy.REQUESTED
    width_exponent: float = 0.0
    backfill: Backfilling = Backfill.EASY

    def __post_init__(self) -> None:
        if self.order not in ORDERS:
            names = ", ".join(str(order) for order in ORDERS)
            raise InputError(
                f"candidate: order {self.order} is no fixed priority of a job; take {names}"
            )
        if not isinstance(self.backfill, BACKFILLS):
            there_are = [name for name, family in FAMILIES.items() if isinstance(family, BACKFILLS)]
            raise InputError(
                f"candidate: {self.backfill} remembers what it promised in another order; take"
                f" {', '.join(there_are)}"
            )
        if not 0 <= self.width_exponent < math.inf:
            raise InputError(f"candidate: width_exponent {self.width_exponent}: give 0 or more")
        if self.width_exponent and self.order is not Order.SJF:
            raise InputError(f"candidate: width_exponent is for sjf, not for {self.order}")
        if self.by is OrderedBy.EXPECTED and self.order is Order.FCFS:
            raise InputError("candidate: fcfs goes by no runtime; leave by out")
        self.policy()

    @property
    def name(self) -> str:
        """As tables call it, such as ``sjf/width^0.5 expected, easy-16``."""
        width = f"/width^{self.width_exponent:g}" if self.width_exponent else ""
        by = "" if self.order is Order.FCFS else f" {self.by}"
        deep = isinstance(self.backfill, Easy) and self.backfill.depth > 1
        depth = f"-{self.backfill.shown['depth']}" if deep else ""
        return f"{self.order}{width}{by}, {self.backfill}{depth}"

    def policy(self) -> Policy:
        """Give the policy of an engine in which jobs have the priorities."""
        return Policy(Order.PRIORITY, self.backfill)

    def priorities(
        self,
        submit_time: Int64Array,
        processors: Int64Array,
        requested_time: Int64Array,
        expected_s: Float64Array,
    ) -> Int64Array:
        """Give priorities, larger first, that stay the same while jobs wait.

        Parameters
        ----------
        submit_time, processors, requested_time
            Of each job, shape (jobs,); times in seconds.
        expected_s
            Mean runtimes as learned, seconds, above 0.
        """
        if self.order is Order.FCFS:
            return -submit_time
        time = requested_time if self.by is OrderedBy.REQUESTED else expected_s
        first = self.width_exponent * np.log(processors) - np.log(time)
        if self.order is Order.LJF:
            first = -first
        return np.rint(first * _STEPS).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a job may be passed over: then it goes before all orders, first due first.

    Attributes
    ----------
    least_s
        Seconds from its submission, whatever waits.
    backlogs
        Besides, so many times what the jobs that waited at its submission would have taken the
        whole machine, as expected then.
    """

    least_s: int = 30 * 86_400
    backlogs: float = 16.0

    def __post_init__(self) -> None:
        if self.least_s < 0:
            raise InputError(f"patience: least_s {self.least_s}: give 0 s or more")
        if not 0 <= self.backlogs < math.inf:
            raise InputError(f"patience: backlogs {self.backlogs}: give 0 or more")

    def until(self, submit_time: int, backlog_s: float) -> int:
        """Give when a job becomes due, seconds; fixed at its submission."""
        return submit_time + self.least_s + math.ceil(self.backlogs * backlog_s)


def due_first(priority: Int64Array, due: Int64Array, now: int) -> Int64Array:
    """Put those that are due before all others.

    Parameters
    ----------
    priority
        Of each job, as `Candidate.priorities` gives it.
    due
        When each becomes due, seconds.
    now
        Seconds.
    """
    return np.where(due <= now, _ALL_ORDERS - due, priority)
