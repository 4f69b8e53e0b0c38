"""Start no later than: what slack-based backfilling would promise the waiting jobs of a snapshot.

The jobs are planned as conservative backfilling would plan them, each for all of the time at which
it is killed, in the queue's order; and each gets its initial slack from its planned wait (Talby and
Feitelson 1999, section 4.3). That is a plan in which every latest start can be kept, whatever is
submitted later, by a scheduler that goes on from it with slack-based backfilling
(`foretime_sim.reference.slack`). Other schedulers have promised nothing: of them it says when a job
would have started at the latest, had it been treated so.

A bound that has been told stands: ask about a job once, when it comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import BoolArray, Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.forward import first_plan
from foretime_sim.engine.queue_places import places, waiting_now
from foretime_sim.engine.snapshot import PendingJobs, Snapshot
from foretime_sim.policies.families import Backfill
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slack import INFINITE_SLACK, SlackJobs, SlackSettings
from foretime_sim.policies.slack_rules import initial_slack, priority, scheduler_priority


@dataclass(frozen=True, slots=True)
class StartBounds:
    """Bounds of the pending jobs, in the order of the snapshot's rows; seconds, its clock.

    Attributes
    ----------
    planned_start
        When each is planned to start if every job runs until it is killed; `NEVER` of one that is
        not in the queue yet.
    latest_start
        The planned start and the initial slack. Masked where nothing can be promised: of a job
        whose quota is exceeded (others are planned around it all the same), and of one that is not
        in the queue yet, because of its eligible time, a dependency or a limit: others may come
        before it joins.
    """

    planned_start: Int64Array
    latest_start: MaskedInt64Array


def start_bounds(
    snapshot: Snapshot,
    settings: SlackSettings,
    *,
    order: Order = Order.FCFS,
    slack_jobs: SlackJobs | None = None,
) -> StartBounds:
    """Give when each pending job would start no later than.

    Parameters
    ----------
    snapshot
        The queue, on a flat pool or nodes. What is noted of plans and estimates is left aside.
    settings
        With an average wait, as a snapshot has no past to learn it from.
    order
        Of the queue.
    slack_jobs
        Priorities of the pending jobs and average waits of their kinds, by row; ``None``: priority
        0 and the average of the settings.

    Raises
    ------
    InputError
        If there is no average wait, or a column is wrong; it names the row and the field.
    """
    pending = snapshot.pending
    if slack_jobs is None:
        slack_jobs = SlackJobs.equal(len(pending))
    slack_jobs.check("pending jobs", np.arange(len(pending)))
    average_wait_s = slack_jobs.average_wait_s
    if average_wait_s is None:
        if settings.average_wait_s is None:
            raise InputError(
                "average_wait_s is not given: a snapshot has no past to learn the average wait from"
            )
        average_wait_s = np.full(len(pending), settings.average_wait_s)
    limited = _planned_on_limits(snapshot)
    policy = Policy(order, Backfill.CONSERVATIVE)
    start = first_plan(limited, policy)
    slack = [
        _slack(settings, user, political, planned - since, wait)
        for user, political, planned, since, wait in zip(
            slack_jobs.user_priority.tolist(),
            slack_jobs.political_priority.tolist(),
            start.tolist(),
            pending.joins_at().tolist(),
            average_wait_s.tolist(),
            strict=True,
        )
    ]
    initial = np.array(slack, dtype=np.int64)
    unbounded = (initial == INFINITE_SLACK) | ~can_be_promised(snapshot)
    latest = np.ma.MaskedArray(start + np.where(unbounded, 0, initial), mask=unbounded)
    return StartBounds(start, latest)


def front_of_queue(snapshot: Snapshot, order: Order, most: int) -> tuple[Snapshot, Int64Array]:
    """Give the snapshot with the first jobs of its queue alone, and their rows.

    They have the bounds that they have in the whole queue: who stands behind delays nobody. Jobs
    that are not in the queue yet are left out, and limits: bounds are later for them, not earlier.
    """
    pending = snapshot.pending
    here = np.flatnonzero(waiting_now(snapshot))
    place = places(_planned_on_limits(snapshot), Policy(order))
    rows = np.sort(here[np.argsort(place[here])[:most]])
    requests = pending.requests
    front = PendingJobs(
        pending.submit_time[rows],
        pending.processors[rows],
        pending.time_limits()[rows],
        priority=pending.priorities()[rows],
        eligible_time=pending.joins_at()[rows],
        requests=requests and replace(requests, number=requests.number[rows]),
    )
    return replace(
        snapshot, pending=front, limits=(), engine_index=None, slurm_notes=None, told=None
    ), rows


def can_be_promised(snapshot: Snapshot) -> BoolArray:
    """Say which pending jobs are in the queue, and under no limit that may keep them waiting."""
    can = waiting_now(snapshot)
    first = len(snapshot.running)
    for limit in snapshot.limits:
        can[limit.jobs[limit.jobs >= first] - first] = False
    return can


def _slack(
    settings: SlackSettings, user: float, political: float, wait_s: int, average_wait_s: float
) -> int:
    if political == -math.inf:
        return INFINITE_SLACK
    final = priority(user, political, scheduler_priority(max(wait_s, 0), average_wait_s))
    return initial_slack(final, settings.slack_factor, average_wait_s)


def _planned_on_limits(snapshot: Snapshot) -> Snapshot:
    """Give the snapshot with every job planned until it is killed."""
    return replace(
        snapshot,
        running=replace(
            snapshot.running,
            requested_time=snapshot.running.time_limits(),
            scheduled_time=None,
            time_limit=None,
        ),
        pending=replace(
            snapshot.pending,
            requested_time=snapshot.pending.time_limits(),
            scheduled_time=None,
            time_limit=None,
            guard=None,
            plans=None,
        ),
        pass_due=True,
        estimated_at=None,
        engine_index=None,
    )
