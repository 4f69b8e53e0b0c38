"""dynP for a real queue: at each look the order that suits it best is chosen (Streit 2002).

Choosing never does harm by itself: whatever goes wrong (planning fails or takes too long, jobs that
nobody knows how to plan, a store that can't be written), the queue keeps the order that it has, and
the log says why.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import ForetimeError
from foretime_sim.engine.order_tuning import PLANNED, Tuning, tune_order
from foretime_sim.engine.queue_places import waiting_now
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.backfilling import Backfilling
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy, Roles
from foretime_sim.policies.policy_switching import Quality
from foretime_sim.policies.role_times import RoleTimes, by_role

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.ordering.order_switches import beginning, switch_of
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.user_shares import capped_weights
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot, snapshot_of
from foretime_sidecar.queue.time_bound import TimeBound, TooLongError
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.store.order_switches import OrderSwitch, OrderSwitches

logger = logging.getLogger("foretime")

# Of the jobs that could start, so many may be of needs that are not known. With none allowed, one
# user's odd job would keep the order for everybody; with many, a plan says little of the queue.
MOST_UNKNOWN_SHARE = 0.1
_BY_WIDTH = (Quality.ARTWW, Quality.WAITWW, Quality.SLDWW)


@dataclass(frozen=True, slots=True)
class LastTry:
    """What the last look came to.

    Attributes
    ----------
    tried_at
        Epoch seconds.
    tuning
        What the decider found; ``None`` if it was not asked.
    kept
        Why it was not asked, or could not answer, so that the order stayed; "" if it was.
    took_s
        How long it took, seconds.
    """

    tried_at: int
    tuning: Tuning | None
    kept: str
    took_s: float


class SwitchedOrder:
    """Chooses the order that the queue is put in.

    Parameters
    ----------
    settings
        How it decides.
    backfill
        What the scheduler does, where the queue is run forward.
    switches
        The log; its last line is the present order, over restarts, too.
    limit_s
        How long planning may take, seconds.
    runtimes
        Gives how long jobs really take, as far as that is learned; ``None`` if it is decided on
        what Slurm plans.

    Attributes
    ----------
    now_in
        The last line of the log, ``None`` before the first look.
    last
        What the last look came to, ``None`` before.
    tries, failures
        How often the decider has been asked, and could not answer, since the start.
    """

    def __init__(
        self,
        settings: QueueOrderSettings,
        backfill: Backfilling,
        switches: OrderSwitches,
        limit_s: float,
        runtimes: Callable[[], RuntimeHistories | None],
    ) -> None:
        self._settings = settings
        self._switching = settings.to_switching()
        self._backfill = backfill
        self._switches = switches
        self._bound = TimeBound(limit_s)
        self._runtimes = runtimes
        self.now_in: OrderSwitch | None = None
        self.last: LastTry | None = None
        self.tries = 0
        self.failures = 0

    @property
    def log(self) -> OrderSwitches:
        """The log of all decisions."""
        return self._switches

    def choose(
        self,
        look: Look,
        scheduled_time: Callable[[QueuedJob], int],
        goes_first: Callable[[QueuedJob], bool],
    ) -> Order:
        """Give the order that the queue is to stand in from this look on.

        Parameters
        ----------
        look
            The queue as it is.
        scheduled_time
            t_sched of a job, seconds: what jobs are ordered by.
        goes_first
            Whether a job goes before the others, whatever the order.

        Raises
        ------
        StateError
            If the log can't be read or written; then nothing is switched.
        """
        now, current = look.taken_at, self._present(look.taken_at)
        if (again_s := self._too_soon(now)) > 0:
            self.last = LastTry(now, None, f"it may be switched again in {again_s} s", 0.0)
            return current
        began = time.monotonic()
        tuning, kept = None, ""
        try:
            tuning = self._tuned(look, scheduled_time, goes_first, current)
        except (TooLongError, _IncompleteError, ForetimeError) as error:
            kept = str(error)
        except Exception as error:
            logger.exception("the best order of the queue was not found")
            kept = f"our mistake: {error!r}; see the log"
        if kept:
            self.failures += 1
            if self.last is None or self.last.kept != kept:
                logger.warning("the queue stays in the order %s: %s", current, kept)
        elif tuning is not None and tuning.waiting < self._switching.asked_from:
            tuning, kept = None, "fewer than two jobs wait that could start"
        else:
            self.tries += 1
        self.last = LastTry(now, tuning, kept, time.monotonic() - began)
        if tuning is not None and tuning.chosen is not current:
            self.now_in = self._switches.add(switch_of(now, tuning, self._settings.quality))
            logger.info(
                "the queue is put in the order %s instead of %s; see foretime decisions "
                "--queue-order",
                tuning.chosen,
                current,
            )
            return tuning.chosen
        return current

    def _present(self, now: int) -> Order:
        """Give the order until now; that of before a restart, if it still is one."""
        known = self.now_in or self._switches.latest()
        names = [order.value for order in self._switching.orders]
        if known is None or known.order not in names:
            first = self._switching.orders[0]
            known = self._switches.add(beginning(now, first, self._settings.quality))
        self.now_in = known
        return Order(known.order)

    def _too_soon(self, now: int) -> int:
        """Give how long the order must stay on, seconds; 0 or less if it need not."""
        if self.now_in is None or self.now_in.instead_of is None:
            return 0
        since = max(now - self.now_in.happened_at, 0)
        return self._settings.least_time_between_switches_s - since

    def _tuned(
        self,
        look: Look,
        scheduled_time: Callable[[QueuedJob], int],
        goes_first: Callable[[QueuedJob], bool],
        current: Order,
    ) -> Tuning:
        if look.nodes_unread:
            raise _IncompleteError(f"the nodes are not known: {look.nodes_unread}")
        taken = snapshot_of(
            look.queue,
            look.cluster,
            taken_at=look.taken_at,
            soft_limit=look.soft_limit,
            reservations=look.reservations,
        )
        _check_complete(taken, look)
        snapshot = _ordered_by(taken, scheduled_time)
        pending = taken.jobs[len(snapshot.running) :]
        policy, runtimes = PLANNED, None
        if (histories := self._runtimes()) is not None:
            policy, runtimes = Policy(backfill=self._backfill), self._drawn(taken, histories)
        first = np.array([goes_first(job) for job in pending], dtype=np.bool_)
        weight = self._weights(taken)
        return self._bound.run(
            lambda: tune_order(
                snapshot,
                self._switching,
                current,
                policy=policy,
                runtimes=runtimes,
                weight=weight,
                goes_first=first,
            )
        )

    def _drawn(self, taken: QueueSnapshot, histories: RuntimeHistories) -> Int64Array:
        """Draw runtimes; the same at one moment, whatever was asked before."""
        snapshot = taken.snapshot
        age = np.zeros(len(snapshot), dtype=np.int64)
        age[: len(snapshot.running)] = snapshot.now - snapshot.running.start_time
        return histories.sample(
            taken.requests,
            age,
            snapshot.now,
            self._settings.samples,
            np.random.default_rng(snapshot.now),
        )

    def _weights(self, taken: QueueSnapshot) -> Int64Array | None:
        """Weigh the jobs that wait now, so that no user's count for too much."""
        share = self._settings.most_user_share
        if share >= 1:
            return None
        snapshot = taken.snapshot
        waiting = np.flatnonzero(waiting_now(snapshot))
        by_width = all(quality in _BY_WIDTH for quality, _ in self._switching.weighted_qualities)
        mass = snapshot.pending.processors[waiting].tolist() if by_width else [1] * len(waiting)
        first = len(snapshot.running)
        users = [taken.requests[first + column].user for column in waiting.tolist()]
        weight = np.ones(len(snapshot.pending), dtype=np.int64)
        weight[waiting] = capped_weights(users, mass, share)
        return weight


class _IncompleteError(Exception):
    """What is seen of the queue is too little to plan it."""


def _ordered_by(taken: QueueSnapshot, scheduled_time: Callable[[QueuedJob], int]) -> Snapshot:
    """Give the snapshot with t_sched as what pending jobs are ordered by."""
    snapshot = taken.snapshot
    pending = snapshot.pending
    _, backfill, drain = by_role(pending.requested_time, pending.scheduled_time, Roles())
    order = [scheduled_time(job) for job in taken.jobs[len(snapshot.running) :]]
    times = RoleTimes(np.array(order, dtype=np.int64), backfill, drain)
    return replace(snapshot, pending=replace(pending, scheduled_time=times))


# What Slurm says of jobs that only the machine and other jobs keep waiting.
_WAITS_FOR_ROOM = ("", "None", "Resources", "Priority")


def _check_complete(taken: QueueSnapshot, look: Look) -> None:
    """Refuse a snapshot that leaves out too many of the jobs that could start."""
    unknown: Counter[str] = Counter()
    for left in taken.left_out:
        if can_start(left.job, look.taken_at) and left.job.reason in _WAITS_FOR_ROOM:
            unknown[left.reason] += left.job.tasks
    known = int(waiting_now(taken.snapshot).sum())
    missing = sum(unknown.values())
    if missing > MOST_UNKNOWN_SHARE * (known + missing):
        reason, jobs = unknown.most_common(1)[0]
        raise _IncompleteError(
            f"of {missing} of {known + missing} jobs that could start it is not known what they "
            f"need, such as of {jobs}: {reason}"
        )
