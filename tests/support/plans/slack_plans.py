"""Plans of waiting jobs written out by hand, and every schedule of section 4.5 of the paper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.policies.slack import INFINITE_SLACK, SlackSettings
from foretime_sim.reference.profile import PlainProfile
from foretime_sim.reference.slack import PlannedJob, SlackPlan

Claim = tuple[int, int]
"""Until when, and how many processors, from now on."""


def waiting_job(
    rank: int,
    start: int,
    time: int,
    processors: int,
    *,
    priority: float = 0.5,
    slack: int = 10,
    of: int = 10,
) -> PlannedJob:
    """Give a job with a planned start; its slack is ``slack`` of ``of`` seconds."""
    return PlannedJob(rank, processors, time, priority, start, of, slack)


def plan_of(
    machine: int,
    waiting: Sequence[PlannedJob],
    settings: SlackSettings | None = None,
    *,
    now: int = 0,
    running: Sequence[Claim] = (),
) -> SlackPlan:
    """Give a plan with running jobs."""

    def profile() -> PlainProfile:
        claimed = PlainProfile(machine, now)
        for end, processors in running:
            claimed.reserve(now, end - now, processors)
        return claimed

    ends = [end for end, _ in running]
    return SlackPlan(settings or SlackSettings(), now, profile, ends, waiting)


def paper_cost(
    settings: SlackSettings, job: PlannedJob, moved_by: int, for_priority: float
) -> float:
    """Give the formula of section 4.4, for finite priorities above 0 and slacks above 0."""
    if moved_by > job.slack:
        return math.inf
    fairness = 1.0 if job.initial_slack == INFINITE_SLACK else job.initial_slack / job.slack
    alpha_p, alpha_f = settings.priority_weight, settings.fairness_weight
    return float(
        job.processors**settings.utilization_weight
        * math.copysign(abs(moved_by) ** settings.time_weight, moved_by)
        * (job.priority / for_priority) ** alpha_p
        * fairness ** (alpha_p * alpha_f)
    )


def all_schedules(
    machine: int,
    waiting: Sequence[PlannedJob],
    new: PlannedJob,
    settings: SlackSettings,
    running: Sequence[Claim] = (),
) -> Iterator[tuple[float, dict[int, int]]]:
    """Go through what the exponential algorithm of section 4.5 looks at: prices, and starts.

    Written apart from the specification: free processors second by second, from 0 on.
    """
    longest = sum(job.time for job in [*waiting, new]) + max((end for end, _ in running), default=0)
    end = longest + max((job.start + job.time for job in waiting), default=0) + 1
    free = np.full(end, machine)
    for until, processors in running:
        free[:until] -= processors
    claims = {0, *(until for until, _ in running)}
    claims |= {time for job in waiting for time in (job.start, job.start + job.time)}
    for slot in sorted(claims):
        staying = free.copy()
        for job in waiting:
            if job.start < slot:
                staying[job.start : job.start + job.time] -= job.processors
        if staying[slot : slot + new.time].min() < new.processors:
            continue
        staying[slot : slot + new.time] -= new.processors
        own = slot**settings.time_weight * new.processors**settings.utilization_weight
        for order in itertools.permutations(job for job in waiting if job.start >= slot):
            starts = _packed(order, staying.copy())
            price = own + sum(
                paper_cost(settings, job, starts[job.rank] - job.start, new.priority)
                for job in order
                if starts[job.rank] != job.start
            )
            stay = {job.rank: job.start for job in waiting if job.start < slot}
            yield price, stay | starts | {new.rank: slot}


def _packed(order: Sequence[PlannedJob], free: Int64Array) -> dict[int, int]:
    starts = {}
    for job in order:
        start = next(s for s in range(len(free)) if free[s : s + job.time].min() >= job.processors)
        free[start : start + job.time] -= job.processors
        starts[job.rank] = start
    return starts
