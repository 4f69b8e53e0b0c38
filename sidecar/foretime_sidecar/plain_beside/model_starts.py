"""Jobs started at once in a run of the model, as `ordering.start_now` does live."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from foretime_estimators.estimators.estimator import RolePrediction
from foretime_sim.engine.snapshot import PendingJobs, Snapshot

from foretime_sidecar.clients.client import Queue, QueuedJob
from foretime_sidecar.ordering.protected_jobs import LateJobs, ProtectedJobs
from foretime_sidecar.ordering.start_plan import plan_starts_in
from foretime_sidecar.plain_beside.beginnings import nodes_by_index
from foretime_sidecar.plain_beside.living_jobs import LivingJobs
from foretime_sidecar.queue.queue_snapshot import QueueSnapshot
from foretime_sidecar.queue.start_on_requests import start_on_requests
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings


class ModelStarts:
    """A `foretime_sidecar.plain_beside.lived_days.Raiser`.

    Parameters
    ----------
    interval_s
        Between two looks, seconds.
    order
        How late a head job may be before nobody goes before it on an expected runtime, and for how
        long a job waits before it holds a reservation.
    may_start
        Whether a job may be raised.
    late
        Who is late over its start without Foretime.
    """

    def __init__(
        self,
        interval_s: int,
        order: QueueOrderSettings,
        may_start: Callable[[QueuedJob], bool],
        late: LateJobs,
    ) -> None:
        self.interval_s = interval_s
        self._late = late
        self._order = order
        self._may_start = may_start
        self._given: dict[int, int] = {}  # site factors, by index
        self._heads: dict[str, int] = {}  # index of the head job of each slurm_partition
        self._promised: dict[int, int] = {}  # start of each head job, as first planned, by index

    def look(self, living: LivingJobs) -> None:
        """Raise the jobs that should start now, and give back the others."""
        engine, now = living.engine, living.engine.now
        snapshot, indices = _waiting_now(Snapshot.of(engine))
        records = [living.jobs[index][1] for index in indices]
        index_of = {id(record): index for record, index in zip(records, indices, strict=True)}
        taken = QueueSnapshot(snapshot, (), tuple(records), (), (), living.live)
        waiting = records[len(snapshot.running) :]

        protected = ProtectedJobs(
            self._late, self._order.protect_after_s, waiting, now, living.parts
        )

        def expected(record: QueuedJob) -> RolePrediction | None:
            known, _ = living.jobs[index_of[id(record)]]
            may = self._may_start(record) and protected.let_pass(record)
            return known.expected if may else None

        priority = {
            id(record): (engine.slurm_priority(index_of[id(record)]) or 0) for record in waiting
        }
        own = {key: value - self._given.get(index_of[key], 0) for key, value in priority.items()}

        def late(slurm_partition: str) -> float:
            start = self._promised.get(self._heads.get(slurm_partition, -1))
            return 0.0 if start is None else (now - start) / self._order.head_delay_s

        plan = plan_starts_in(
            taken,
            expected,
            lambda record: own[id(record)],
            late,
            protected.late_by,
        )
        self._heads = {name: index_of[id(head)] for name, head in plan.heads.items()}
        for head in plan.heads.values():
            if index_of[id(head)] not in self._promised:
                self._promised[index_of[id(head)]] = _promise(living, head)
        wanted: dict[int, int] = {}
        top = max(own.values(), default=0)
        for place, record in enumerate(plan.starts):
            index, base = index_of[id(record)], own[id(record)]
            given = self._given.get(index, 0)
            if not given or base + given <= top:
                given = top + _ABOVE + len(plan.starts) - place - base
            wanted[index] = given
        still = {index_of[id(record)] for record in waiting}
        for index in (self._given.keys() & still) - wanted.keys():
            engine.update(index, site_factor=0)
        for index, given in wanted.items():
            if self._given.get(index) != given:
                engine.update(index, site_factor=given)
        self._given = wanted


_ABOVE = 1000


def _promise(living: LivingJobs, head: QueuedJob) -> int:
    """Give when a head job could start if all who run took all that they asked for."""
    engine = living.engine
    running = [
        known.running_since(start, nodes)
        for index, nodes in nodes_by_index(engine, living.live).items()
        for known, _ in (living.jobs[index],)
        if (start := engine.job(index).start_time) is not None
    ]
    return start_on_requests(
        head, Queue(engine.machine_processors, tuple(running)), engine.now, living.cluster
    )


def _waiting_now(snapshot: Snapshot) -> tuple[Snapshot, list[int]]:
    """Give a snapshot without jobs that come later, and the index of each of its jobs."""
    pending, running = snapshot.pending, len(snapshot.running)
    there = np.flatnonzero(pending.submit_time <= snapshot.now)
    index = snapshot.engine_index
    if index is None or pending.requests is None:
        raise TypeError("a snapshot of an engine on nodes has indices and requests")
    kept = PendingJobs(
        pending.submit_time[there],
        pending.processors[there],
        pending.requested_time[there],
        requests=pending.requests.take(there),
    )
    columns = np.concatenate([index[:running], index[running:][there]])
    reduced = Snapshot(
        snapshot.now,
        snapshot.machine_processors,
        snapshot.running,
        kept,
        snapshot.reservations,
        machine=snapshot.machine,
    )
    return reduced, columns.tolist()
