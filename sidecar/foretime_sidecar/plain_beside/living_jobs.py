"""Jobs in an engine of the site's own scheduler, as a run begins with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.begun_engine import begun_engine
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs
from foretime_sim.engine.stepwise import Engine
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.moment import Moment

from foretime_sidecar.clients.client import Queue, QueuedJob
from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.forecasts.slurm_moment import under_slurm
from foretime_sidecar.ordering.machine_parts import MachineParts
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.queue.queue_snapshot import snapshot_of


@dataclass(slots=True)
class LivingJobs:
    """Jobs in an engine, by index.

    Attributes
    ----------
    engine
        At its clock's time, epoch seconds.
    jobs
        Of each index: what is known of it, and its record as the queue has it.
    joins_at
        When each can first start, sorted.
    live, cluster, parts
        The machine of nodes, what it was made of, and the parts that jobs wait for.
    """

    engine: Engine
    jobs: Sequence[tuple[KnownJob, QueuedJob]]
    joins_at: Sequence[int]
    live: LiveMachine
    cluster: Cluster
    parts: MachineParts


def begin(
    known: Iterable[KnownJob], moment: RealMoment, beginning: Beginning, now: int
) -> LivingJobs:
    """Begin an engine with the jobs of a moment, and those that come later.

    Jobs take as long as they took, or as long as is expected of them ``now``, epoch seconds.

    Raises
    ------
    InputError
        If the site or the queue can't be simulated.
    """
    began_at = moment.began_at
    of_key: dict[Key, KnownJob] = {}
    queue: list[QueuedJob] = []
    for job in known:
        if job.key in beginning.over:
            continue
        if (runs := beginning.running.get(job.key)) is not None:
            queue.append(job.running_since(*runs))
        elif job.could_start is not None:
            queue.append(job.waiting_from(job.could_start))
        of_key[job.key] = job
    queue.sort(key=lambda job: submission_order((job.request.job_id, job.request.submit_time)))
    taken = snapshot_of(
        Queue(1, tuple(queue)),
        moment.cluster,
        taken_at=began_at,
        reservations=moment.reservations,
        knows_limits=True,
    )
    rows = [
        (of_key[record.request.job_id, record.request.submit_time], record) for record in taken.jobs
    ]
    runtimes = np.array([job.runtime_at(now) for job, _ in rows], dtype=np.int64)
    snapshot, running = taken.snapshot, len(taken.snapshot.running)
    # The real scheduler may be slow to end a job at its limit.
    snapshot = replace(
        snapshot,
        running=replace(snapshot.running, time_limit=_limits(snapshot.running, runtimes[:running])),
        pending=replace(snapshot.pending, time_limit=_limits(snapshot.pending, runtimes[running:])),
    )
    asked = np.empty(0, dtype=np.int64)
    under = under_slurm(
        Moment(snapshot, Policy(order=Order.PRIORITY), taken.requests, asked), moment.site
    )
    engine, index = begun_engine(under.snapshot, under.policy, runtimes)
    jobs = [rows[column] for column in np.argsort(index).tolist()]
    joins_at = sorted(record.eligible_time or 0 for _, record in jobs[running:])
    if taken.live is None:
        raise TypeError("a snapshot on nodes has a machine")
    parts = MachineParts(moment.cluster)
    return LivingJobs(engine, jobs, joins_at, taken.live, moment.cluster, parts)


def submission_order(key: Key) -> tuple[int, int, str]:
    """Sort jobs as they were submitted; those of one second by number."""
    job_id, submit_time = key
    return submit_time, len(job_id), job_id


def _limits(jobs: RunningJobs | PendingJobs, runtimes: Int64Array) -> Int64Array:
    return np.maximum(jobs.requested_time, runtimes)


def leave(engine: Engine, index: int, now: int) -> None:
    """Take a job out that was withdrawn ``now``: of the queue, or while it runs."""
    job = engine.job(index)
    if job.state in ("submitted", "pending"):
        engine.cancel(index)
    elif job.state == "running" and job.start_time is not None:
        engine.update(index, actual_runtime=max(now - job.start_time, 0))
