"""What came of dynP's decisions, counted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from foretime_estimators.arrays import Int8Array, Int64Array

from foretime_sim.policies.order import Order


@dataclass(frozen=True, slots=True)
class SwitchingCounters:
    """What a decider did (Streit 2002, tables 5 and 6).

    Attributes
    ----------
    orders
        Those of `foretime_sim.policies.policy_switching.PolicySwitching`.
    started_under
        int8, shape (jobs,): index in ``orders`` of that which was current when each job started;
        -1 for one that has not been started.
    tries
        How often the decider was asked.
    switches
        Of these, how often each order became current that was not.
    waiting_at_tries
        Jobs waiting at the tries, summed up.
    cases
        How often each of `foretime_sim.policies.policy_switching.TABLE_1_CASES` arose; ``None``
        unless self-tuning with three orders.
    """

    orders: tuple[Order, ...]
    started_under: Int8Array
    tries: int
    switches: tuple[int, ...]
    waiting_at_tries: int
    cases: dict[str, int] | None

    @property
    def same_policy(self) -> int:
        """Tries after which the order was the same as before."""
        return self.tries - sum(self.switches)

    @property
    def mean_backlog(self) -> float:
        """Jobs waiting at a try, on average; nan without one."""
        return self.waiting_at_tries / self.tries if self.tries else math.nan

    @property
    def jobs_started(self) -> Int64Array:
        """Jobs that started under each of ``orders``."""
        started = self.started_under[self.started_under >= 0]
        return np.bincount(started, minlength=len(self.orders)).astype(np.int64)
