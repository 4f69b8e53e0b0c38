"""Switching between queue orders while a scheduler plans, in plain Python: dynP (Streit 2002).

Part of the specification, beside `foretime_sim.reference.plans`, which plans. Written to be read.
`foretime_sim.policies.policy_switching` has the settings and what each of them means.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol, TypeAlias

import numpy as np

from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_switching import (
    TABLE_1_CASES,
    Decider,
    PolicySwitching,
    Quality,
)
from foretime_sim.policies.schedule_quality import Comparable, Ratio, as_double, exactly, relative
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.reference.profile import Profile
from foretime_sim.reference.simulated import ReferenceJob, Simulated

Plan: TypeAlias = "list[tuple[ReferenceJob, int]]"
"""Waiting jobs in queue order, each with its planned start."""


class DynpPlanner(Protocol):
    """The planner as `PolicySwitcher` sees it (`foretime_sim.reference.plans.Planner`)."""

    simulation: Simulated
    policy: Policy
    planned: dict[int, int]

    @property
    def now(self) -> int:
        """Seconds."""

    def time(self, job: ReferenceJob) -> int:
        """Give what a job is planned with, seconds."""

    def claimed_now(self) -> int:
        """Give the processors that are claimed from outside now."""

    def claimed_until(self, job: ReferenceJob) -> int:
        """Give until when a running job is planned to run."""

    def profile_of_running(self) -> Profile:
        """Give what running jobs and claims leave free."""

    def earliest(self, profile: Profile, job: ReferenceJob) -> int:
        """Give when a job could start at the earliest."""


class PolicySwitcher:
    """The decider of one simulation, and what it counts.

    Parameters
    ----------
    planner
        Whose jobs wait, and in whose profile they are planned.
    settings
        How it decides.
    """

    def __init__(self, planner: DynpPlanner, settings: PolicySwitching) -> None:
        self.planner = planner
        self.settings = settings
        self.current = next(o for o in settings.orders if o is planner.policy.order)
        self.tries = self.waiting_at_tries = 0
        self.switches = dict.fromkeys(settings.orders, 0)
        self.cases = dict.fromkeys(TABLE_1_CASES, 0)
        self.started_under: dict[int, Order] = {}  # by job index
        self.list: list[ReferenceJob] = []  # of one list: the queue as it was left

    def queue(self, waiting: Sequence[ReferenceJob]) -> list[ReferenceJob]:
        """Ask the decider, if it is time to, and give the queue in the order that is current."""
        if self.settings.one_list:
            listed = {job.index for job in self.list}
            waits = {job.index for job in waiting}
            arrived = [job for job in waiting if job.index not in listed]
            self.list = [*(job for job in self.list if job.index in waits), *arrived]
        self.decide(waiting)
        return list(self.in_order(waiting, self.current))

    def in_order(self, waiting: Sequence[ReferenceJob], order: Order) -> Sequence[ReferenceJob]:
        """Put the waiting jobs in an order: one list is sorted for good, but not by FCFS."""
        if not self.settings.one_list:
            return self.planner.simulation.in_order(list(waiting), order)
        if order is Order.SJF:
            self.list.sort(key=lambda job: job.queue_time)
        elif order is Order.LJF:
            self.list.sort(key=lambda job: -job.queue_time)
        return self.list

    def decide(self, waiting: Sequence[ReferenceJob]) -> None:
        """Ask the decider, if it is time to: what it says is current from now on."""
        if len(waiting) < self.settings.asked_from:
            return
        if self.settings.decider is Decider.BASIC and not self.any_new(waiting):
            return
        self.tries += 1
        self.waiting_at_tries += len(waiting)
        match self.settings.decider:
            case Decider.BASIC:
                chosen = self.by_mean_runtime(waiting)
            case Decider.VOTING:
                chosen = self.by_votes(waiting)
            case Decider.SIMPLE | Decider.ADVANCED:
                chosen = self.by_schedules(waiting)
        if chosen is not self.current:
            self.switches[chosen] += 1
            self.current = chosen

    def any_new(self, waiting: Sequence[ReferenceJob]) -> bool:
        """Say whether somebody has arrived since the last pass."""
        return any(job.index not in self.planner.planned for job in waiting)

    # Deciders

    def by_mean_runtime(self, waiting: Sequence[ReferenceJob]) -> Order:
        """Decide as the basic dynP does (section 3.1)."""
        mean = Fraction(sum(job.queue_time for job in waiting), len(waiting))
        if mean <= self.settings.lower_bound_s:
            return Order.SJF
        if mean <= self.settings.upper_bound_s:
            return Order.FCFS
        return Order.LJF

    def by_votes(self, waiting: Sequence[ReferenceJob]) -> Order:
        """Decide as the implicit voting system does (section 2)."""
        planner = self.planner
        asked_for = sum(job.processors for job in [*planner.simulation.running, *waiting])
        asked_for += planner.claimed_now()
        if not asked_for > self.settings.saturation * planner.simulation.machine_processors:
            return Order.FCFS
        interactive = sum(job.queue_time <= self.settings.interactive_s for job in waiting)
        batch = len(waiting) - interactive
        if interactive == batch:
            return self.current
        return Order.SJF if interactive > batch else Order.LJF

    def by_schedules(self, waiting: Sequence[ReferenceJob]) -> Order:
        """Decide by the quality of a schedule in each order (section 3.2)."""
        planned = self.settings.orders
        if self.settings.one_list and self.current is Order.LJF:
            planned = (Order.SJF, Order.FCFS, Order.LJF)
        made = {order: self.plan(waiting, order) for order in planned}
        plans = {order: made[order] for order in self.settings.orders}
        weighted = self.settings.weighted_qualities
        if len(weighted) == 1:
            quality = weighted[0][0]
            ratios = {order: self.quality(quality, plan) for order, plan in plans.items()}
            values = {order: as_double(ratio) for order, ratio in ratios.items()}
            chosen = self.best({order: exactly(ratio) for order, ratio in ratios.items()})
        else:
            values = self.combined(plans)
            chosen = self.best(dict(values))
        if self.settings.slackness > 0:
            enough = (1 - self.settings.slackness) * values[self.current]
            return chosen if values[chosen] <= enough else self.current
        return chosen

    def best(self, quality: dict[Order, Comparable]) -> Order:
        """Choose among qualities, lower being better (table 1)."""
        if len(quality) == 3:
            self.cases[case_of_table_1(list(quality.values()), self.place_of(self.current))] += 1
        lowest = min(quality.values())
        best = [order for order, value in quality.items() if value == lowest]
        if self.settings.decider is Decider.ADVANCED and self.current in best:
            return self.current
        return best[0]

    # Schedules and their quality

    def plan(self, waiting: Sequence[ReferenceJob], order: Order) -> Plan:
        """Plan every waiting job in an order."""
        profile = self.planner.profile_of_running()
        plan: Plan = []
        for job in self.in_order(waiting, order):
            start = self.planner.earliest(profile, job)
            profile.reserve(start, self.planner.time(job), job.processors)
            plan.append((job, start))
        return plan

    def reduced(self, plan: Plan) -> Plan:
        """Leave out what lies too far in the future (section 6)."""
        if self.settings.first_starts is not None:
            # A stable sort: ties stay in the order of the queue.
            return sorted(plan, key=lambda planned: planned[1])[: self.settings.first_starts]
        if self.settings.horizon_s is not None:
            until = self.planner.now + self.settings.horizon_s
            return [(job, start) for job, start in plan if start <= until]
        return plan

    def quality(self, quality: Quality, whole_plan: Plan) -> Ratio | None:
        """Give the quality of a schedule; ``None`` if none of its jobs counts."""
        plan = self.reduced(whole_plan)
        if not plan:
            return None
        time = self.planner.time
        if quality is Quality.MAKESPAN:
            ends = [start + time(job) for job, start in plan]
            ends += [self.planner.claimed_until(job) for job in self.planner.simulation.running]
            return max(ends) - self.planner.now, 1
        total = weights = 0
        for job, start in plan:
            wait = start - job.submit
            match quality:
                case Quality.ART | Quality.ARTWW:
                    value = wait + time(job)
                case Quality.WAIT | Quality.WAITWW:
                    value = wait
                case Quality.SLOWDOWN | Quality.SLDWW:
                    bound = self.settings.slowdown_bound_s
                    value = max(wait + time(job), bound) * 1_000_000 // max(time(job), bound)
            by_width = quality in (Quality.ARTWW, Quality.WAITWW, Quality.SLDWW)
            weight = job.processors if by_width else 1
            total += weight * value
            weights += weight
        return total, weights

    def combined(self, plans: dict[Order, Plan]) -> dict[Order, float]:
        """Give several qualities as one: each relative to that of the current order."""
        values = dict.fromkeys(plans, 0.0)
        for quality, weight in self.settings.weighted_qualities:
            each = {order: as_double(self.quality(quality, plan)) for order, plan in plans.items()}
            for order, value in each.items():
                values[order] += weight * relative(value, each[self.current])
        return values

    # Counters

    def place_of(self, order: Order) -> int:
        """Give an order's place among those that are switched."""
        return self.settings.orders.index(order)

    def counters(self, jobs: Sequence[ReferenceJob]) -> SwitchingCounters:
        """Give what was counted, once all jobs have started."""
        counts_cases = self.settings.tunes_itself and len(self.settings.orders) == 3
        return SwitchingCounters(
            orders=self.settings.orders,
            started_under=np.array(
                [self.place_of(self.started_under[job.index]) for job in jobs], dtype=np.int8
            ),
            tries=self.tries,
            switches=tuple(self.switches.values()),
            waiting_at_tries=self.waiting_at_tries,
            cases=self.cases if counts_cases else None,
        )


def case_of_table_1(quality: Sequence[Comparable], current: int) -> str:
    """Name the case of table 1.

    Parameters
    ----------
    quality
        Of the schedules by FCFS, SJF and LJF, lower being better.
    current
        Which of them is current: 0, 1 or 2.
    """
    fcfs, sjf, ljf = quality
    which = "abc"[current]
    if fcfs == sjf == ljf:
        return "1"
    if fcfs == sjf:
        return "4b" if ljf < fcfs else f"6{which}"
    if fcfs == ljf:
        return "7" if sjf < fcfs else f"8{which}"
    if sjf == ljf:
        return "9" if fcfs < sjf else f"10{which}"
    if sjf == min(quality):
        return "2"
    if fcfs == min(quality):
        return "3"
    return "4a" if fcfs < sjf else "4c"
