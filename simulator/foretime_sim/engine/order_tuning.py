"""Which queue order is best for a queue as it stands: the self-tuning of dynP on a snapshot.

The decider of `foretime_sim.policies.policy_switching` asked once, about any queue that a
`Snapshot` holds: a real scheduler's, or one in a simulation. The queue is run forward once in each
order, and the order whose schedule has the best quality is chosen.

- With the times that jobs are planned with and backfilling ``planning``, that is the schedule which
  the paper's scheduler plans at this moment (Streit 2002, section 3.2): every job as early as those
  before it allow, with jobs that end as planned.
- With samples of their real runtimes, and any backfilling, it is what is likely to come of each
  order. A quality is then over all samples together, and each sample is the same for every order.

Orders that change with time (``xf``, ``wfp``) are taken as they are at the moment of the snapshot.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.forward import forward_runs
from foretime_sim.engine.queue_places import places, waiting_now
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import TABLE_1_CASES, Decider, PolicySwitching, Quality
from foretime_sim.policies.role_times import by_role
from foretime_sim.policies.schedule_quality import Comparable, Ratio, as_double, exactly, relative

PLANNED = Policy(backfill=Backfill.PLANNING)
_BY_WIDTH = (Quality.ARTWW, Quality.WAITWW, Quality.SLDWW)
_SLOWDOWNS = (Quality.SLOWDOWN, Quality.SLDWW)
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Tuning:
    """What the decider found, and what it chose.

    Attributes
    ----------
    orders
        Those of the `PolicySwitching`.
    current
        The order until now.
    best
        What the decider chose by the qualities alone.
    chosen
        What is current from now on: ``best`` if it is better enough (slackness).
    values
        Quality of each order's schedule, lower is better: seconds, or for slowdowns a number; of
        several qualities the weighted sum relative to ``current``. Infinite where nobody starts
        within the horizon.
    case
        Of table 1, with three orders; else ``None``.
    waiting
        Jobs that the qualities are of.
    """

    orders: tuple[Order, ...]
    current: Order
    best: Order
    chosen: Order
    values: tuple[float, ...]
    case: str | None
    waiting: int


def planned_runtimes(snapshot: Snapshot, policy: Policy = PLANNED) -> Int64Array:
    """Give what all jobs would run if each ended as planned; seconds, shape (1, jobs).

    A running job that has outlived what it was planned with is taken to run to its request. Beside
    reservations all jobs are planned on their time limits.
    """
    columns = []
    for jobs, is_running in ((snapshot.running, True), (snapshot.pending, False)):
        _, backfill, drain = by_role(jobs.requested_time, jobs.scheduled_time, policy.roles)
        planned = drain if is_running else backfill
        if snapshot.reservations:
            planned = jobs.time_limits()
        if is_running:
            age = snapshot.now - snapshot.running.start_time
            planned = np.where(planned > age, planned, jobs.requested_time)
        columns.append(planned)
    return np.concatenate(columns)[np.newaxis, :]


def tune_order(
    snapshot: Snapshot,
    switching: PolicySwitching,
    current: Order,
    *,
    policy: Policy = PLANNED,
    runtimes: Int64Array | None = None,
    weight: Int64Array | None = None,
    goes_first: BoolArray | None = None,
    threads: int | None = 1,
) -> Tuning:
    """Ask a self-tuning decider which order is best for the queue of a snapshot.

    Parameters
    ----------
    snapshot
        What runs and what waits.
    switching
        Decider, orders, quality, slackness and reduced future.
    current
        The order until now, one of ``switching.orders``.
    policy
        How the queue is run forward; its order is not looked at.
    runtimes
        Samples of runtimes, shape (samples, jobs), seconds, as for
        `foretime_sim.engine.forward.forward_runs`; ``None``: one, of jobs that end as planned.
    weight
        How much each pending job counts in means, whole numbers from 1 on, shape (pending jobs,);
        ``None``: all the same. Where the quality weighs by width that is multiplied.
    goes_first
        Pending jobs that stand before the others in every order, by submission; ``None``: none.
    threads
        As for ``forward_runs``.

    Raises
    ------
    InputError
        If the decider compares no schedules, or the snapshot can't be run forward.
    """
    if not switching.tunes_itself:
        raise InputError(
            f"decider {switching.decider} compares no schedules: take simple or advanced"
        )
    if switching.one_list:
        raise InputError("one_list: a snapshot does not say how the queue was left; leave it out")
    if current not in switching.orders:
        names = ", ".join(str(order) for order in switching.orders)
        raise InputError(f"the current order is {current}, and is not among {names}")
    waits = waiting_now(snapshot)
    if int(waits.sum()) < switching.asked_from:
        none = (math.nan,) * len(switching.orders)
        waiting = int(waits.sum())
        return Tuning(switching.orders, current, current, current, none, None, waiting)
    sampled = planned_runtimes(snapshot, policy) if runtimes is None else runtimes
    by_priority = replace(policy, order=Order.PRIORITY)
    schedules = []
    for order in switching.orders:
        place = _places(snapshot, replace(policy, order=order), goes_first)
        ranked = snapshot.with_priorities(-place)
        starts = forward_runs(ranked, by_priority, sampled, threads=threads)
        schedules.append(_Schedules.of(snapshot, starts, sampled, place, waits, weight))
    return _decided(schedules, switching, current, int(waits.sum()))


def _places(snapshot: Snapshot, policy: Policy, goes_first: BoolArray | None) -> Int64Array:
    place = places(snapshot, policy)
    if goes_first is None or not goes_first.any():
        return place
    came = places(snapshot, replace(policy, order=Order.FCFS))
    in_order = np.lexsort((np.where(goes_first, came, place), ~goes_first))
    place = np.empty_like(place)
    place[in_order] = np.arange(len(place))
    return place


@dataclass(frozen=True, slots=True)
class _Schedules:
    """The schedules of one order: of the jobs that wait now, a row a sample.

    Attributes
    ----------
    now
        Seconds.
    submit, processors, weight, place
        Shape (jobs,).
    start, end
        Shape (samples, jobs), seconds.
    running_end
        Shape (samples,): when the last running job ends, the moment itself if none runs.
    """

    now: int
    submit: Int64Array
    processors: Int64Array
    weight: Int64Array
    place: Int64Array
    start: Int64Array
    end: Int64Array
    running_end: Int64Array

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        starts: Int64Array,
        runtimes: Int64Array,
        place: Int64Array,
        waits: BoolArray,
        weight: Int64Array | None,
    ) -> _Schedules:
        running, pending = len(snapshot.running), snapshot.pending
        limits = np.concatenate([snapshot.running.time_limits(), pending.time_limits()])
        ends = np.maximum(starts + np.minimum(runtimes, limits), snapshot.now)
        counted = np.ones(len(pending), dtype=np.int64) if weight is None else weight
        return cls(
            snapshot.now,
            pending.joins_at()[waits],
            pending.processors[waits],
            counted[waits],
            place[waits],
            starts[:, running:][:, waits],
            ends[:, running:][:, waits],
            ends[:, :running].max(axis=1, initial=snapshot.now),
        )

    def quality(self, quality: Quality, switching: PolicySwitching) -> Ratio | None:
        """Give numerator and denominator over all samples; ``None`` if nobody counts in any."""
        total = weights = 0
        for sample in range(len(self.start)):
            jobs = self._counted(sample, switching)
            if not len(jobs):
                continue
            start, end = self.start[sample, jobs], self.end[sample, jobs]
            if quality is Quality.MAKESPAN:
                total += max(int(end.max()), int(self.running_end[sample])) - self.now
                weights += 1
                continue
            match quality:
                case Quality.ART | Quality.ARTWW:
                    value = end - self.submit[jobs]
                case Quality.WAIT | Quality.WAITWW:
                    value = start - self.submit[jobs]
                case _:
                    bound = switching.slowdown_bound_s
                    ran = np.maximum(end - start, bound)
                    value = np.maximum(end - self.submit[jobs], bound) * _MILLION // ran
            weight = self.weight[jobs].tolist()
            if quality in _BY_WIDTH:
                weight = list(map(operator.mul, weight, self.processors[jobs].tolist()))
            # In Python's whole numbers, which do not overflow.
            total += sum(map(operator.mul, weight, value.tolist()))
            weights += sum(weight)
        return (total, weights) if weights else None

    def _counted(self, sample: int, switching: PolicySwitching) -> Int64Array:
        """Leave out what lies too far in the future (section 6)."""
        start = self.start[sample]
        if switching.first_starts is not None:
            return np.lexsort((self.place, start))[: switching.first_starts]
        if switching.horizon_s is not None:
            return np.flatnonzero(start <= self.now + switching.horizon_s)
        return np.arange(len(start))


def _decided(
    schedules: Sequence[_Schedules], switching: PolicySwitching, current: Order, waiting: int
) -> Tuning:
    orders, weighted = switching.orders, switching.weighted_qualities
    at = orders.index(current)
    exact = [[each.quality(quality, switching) for each in schedules] for quality, _ in weighted]
    doubles = [[as_double(value) for value in row] for row in exact]
    compared: Sequence[Comparable]
    if len(weighted) == 1:
        values = doubles[0]
        compared = [exactly(value) for value in exact[0]]
    else:
        values = [0.0] * len(orders)
        for (_, weight), row in zip(weighted, doubles, strict=True):
            for place, value in enumerate(row):
                values[place] += weight * relative(value, row[at])
        compared = values
    case, best = choose(compared, at, switching.decider)
    chosen = best
    if switching.slackness > 0 and not values[best] <= (1 - switching.slackness) * values[at]:
        chosen = at
    scale = _MILLION if len(weighted) == 1 and weighted[0][0] in _SLOWDOWNS else 1
    return Tuning(
        orders,
        current,
        orders[best],
        orders[chosen],
        tuple(value / scale for value in values),
        case,
        waiting,
    )


def choose(
    qualities: Sequence[Comparable], current: int, decider: Decider
) -> tuple[str | None, int]:
    """Choose among qualities, lower being better (Streit 2002, table 1).

    Parameters
    ----------
    qualities
        Of each order's schedule.
    current
        Place of the order until now.
    decider
        ``simple`` or ``advanced``.

    Returns
    -------
    tuple
        The case of table 1 if there are three orders, else ``None``; and the place of the chosen.
    """
    ranks = [sum(other < value for other in qualities) for value in qualities]
    case = TABLE_1_CASES[_core.case_of_table_1(ranks, current)] if len(ranks) == 3 else None
    return case, _core.chosen_order(str(decider), ranks, current)
