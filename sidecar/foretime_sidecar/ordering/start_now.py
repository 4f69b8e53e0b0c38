"""Starts jobs now that should: raises each to the top of the queue until the next look.

No time of a job is touched, so limits, deadlines, reservations and kills stay the scheduler's own.
A raised job is only the first that it looks at: it starts if it fits. One that has not started by
the next look, and should no more, has what it had before.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.jobs import JobRequest

from foretime_sidecar.clients.client import (
    QueuedJob,
    QueueState,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.learning.enforced_part import outside
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.machine_parts import MachineParts
from foretime_sidecar.ordering.own_site_factors import OwnSiteFactors
from foretime_sidecar.ordering.places_gained import places_gained
from foretime_sidecar.ordering.protected_jobs import LateJobs, ProtectedJobs
from foretime_sidecar.ordering.queue_order import can_start
from foretime_sidecar.ordering.raising import SeenFactors, raised_name
from foretime_sidecar.ordering.start_plan import StartPlan
from foretime_sidecar.ordering.start_way import SlurmStarts, StartWay
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.queue.start_on_requests import start_on_requests
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import HookSettings
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")

_ASKED_AGAIN_S = 3600
_JUDGED = 200
_FEWEST_JUDGED = 50
_MOST_MISSED = 0.1
_FIRST_PAUSE_S = 60
_LONGEST_PAUSE_S = 3600
Expected = Callable[[JobRequest, int], RolePrediction | None]


class StartNow:
    """Raises jobs that should start now through their site factors; on PBS through their ranks.

    It refuses where that does nothing, or can do harm. On Slurm: without priority/multifactor, with
    another site-factor plugin, in a federation, with ``enable_user_top`` (``scontrol top`` makes a
    site factor a nice value for good), with PriorityFlags=INCR_ONLY (what was raised could not be
    lowered), with preemption (a raised job could end others). On PBS: see
    `foretime_sidecar.ordering.pbs_starts.why_no_ranks`. On both: while somebody disabled Foretime
    or the circuit breaker is open. Then all that it raised is given back, and the log says why.

    Left alone are jobs whose site factor somebody else has set, and those that Slurm does not
    weigh, as their priority is fixed; those of others than the settings are for; jobs in
    reservations and heterogeneous ones; and those that ask for what the plan does not know.

    Parameters
    ----------
    hook
        Whom the settings leave alone.
    order
        How late a head job may be before nobody goes before it on an expected runtime, and for how
        long a job waits before it holds a reservation; how many others a job may pass.
    client, store, lock
        As of `OwnSiteFactors`.
    way
        The scheduler's; ``None``: Slurm's.
    late
        Who waits too long over its start without Foretime; ``None``: nobody.

    Attributes
    ----------
    refused
        Why nothing is started, "" if it is.
    raised, missed
        How often a job was raised, and how often one that still fitted had not started by the next
        look.
    """

    def __init__(
        self,
        hook: HookSettings,
        order: QueueOrderSettings,
        client: SchedulerClient,
        store: Store,
        lock: threading.RLock,
        way: StartWay | None = None,
        late: LateJobs | None = None,
    ) -> None:
        self._way = way or SlurmStarts()
        self._hook = hook
        self._order = order
        self._late_jobs = late
        self._client = client
        self._lock = lock
        self._own = OwnSiteFactors(client, store, lock, owns_all=self._way.owns_all)
        self._breaker = BreakerEvents(store)
        self.refused = ""
        self.raised = self.missed = 0
        self._has_begun = False
        self._raised_last: frozenset[str] = frozenset()
        self._misses: dict[str, tuple[int, int]] = {}  # how often, and when it may be again
        self._outcomes: deque[bool] = deque(maxlen=_JUDGED)  # whether it was missed
        self._asked: dict[str, tuple[int, RolePrediction | None]] = {}
        self._promised: dict[str, int] = {}  # start of each head job, as first planned
        self._heads: Mapping[str, str] = {}

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        expected: Expected,
        exclusions: Exclusions,
        why_not: str,
    ) -> int:
        """Raise the jobs that should start now, and give back the others; give how many it raised.

        Parameters
        ----------
        look
            The queue as it is, with its nodes.
        configuration
            The scheduler's.
        expected
            How long a job is expected to run, as of a time.
        exclusions
            Whom the settings leave alone.
        why_not
            Why nothing may be started now; "" if it may.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused all changes.
        StateError
            If the store can't be read or written.
        """
        why_not = why_not or self._way.why_not(look, configuration)
        if why_not:
            if why_not != self.refused:
                logger.error("no job is started by Foretime: %s", why_not)
            self.refused = why_not
            if self._late_jobs is not None:  # where nothing is raised nobody waits for it
                self._late_jobs.behind_in((), look.taken_at, MachineParts(None))
            self.give_back(look.queue.jobs)
            return 0
        self.refused = ""
        if not self._has_begun:
            # What another daemon, or another order, has left stands in the look's priorities.
            given_back = self._own.give_back(look.queue.jobs)
            self._has_begun = True
            if given_back:
                return 0
        now, ours = look.taken_at, self._own.all()
        waiting = {
            job.request.job_id: job for job in look.queue.jobs if job.state is QueueState.PENDING
        }
        self._forget_gone(waiting)
        protected = ProtectedJobs(
            self._late_jobs,
            self._order.protect_after_s,
            waiting.values(),
            now,
            MachineParts(look.cluster),
        )
        started = self._own.of_started(ours, look.queue.jobs)
        if not waiting:
            self._judge(waiting, (), now)
            self._own.send(started, started)
            self._own.forget_gone(ours, look.queue.jobs)
            return 0
        factors = self._client.site_factors()
        if self._way.owns_all:
            ours = self._own.take_over(factors)
        seen = SeenFactors(factors, ours)
        too_far: set[str] = set()
        if bound := self._order.most_places_gained:
            places = places_gained(waiting.values(), seen.own_priority, now)
            too_far = {name for name, place in places.items() if place > bound}

        said: dict[str, RolePrediction | None] = {}

        def expected_of(job: QueuedJob) -> RolePrediction | None:
            name = job.request.job_id
            if name not in said:
                may = self._may_start(job, seen, exclusions, now) and name not in too_far
                may = may and protected.let_pass(job)
                said[name] = self._expected(job, now, expected) if may else None
            return said[name]

        def planned() -> tuple[StartPlan, dict[str, int]]:
            return self._way.plan(
                look,
                expected_of,
                seen,
                lambda name: self._late(name, now),
                protected.late_by,
            )

        plan, wanted = planned()
        if missed := self._judge(waiting, plan.starts, now):
            said |= dict.fromkeys(missed)  # which pause
            plan, wanted = planned()
        self._note_heads(plan.heads, look)
        changes = {
            name: 0
            for name in ours.keys() & waiting.keys()
            if name not in wanted and seen.own_part(waiting[name])
        }
        changes |= {name: to for name, to in wanted.items() if ours.get(name, {}).keys() != {to}}
        self._own.send(changes | started, started)
        self._own.forget_gone(ours.keys() - wanted.keys(), look.queue.jobs)
        raised = [raised_name(job) for job in plan.starts]
        self._raised_last = frozenset(raised)
        if raised:
            logger.info("raised to start at once: %s", ", ".join(raised))
        return len(raised)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> int:
        """Take away every site factor of ours; see `OwnSiteFactors.give_back`."""
        self._raised_last = frozenset()
        return self._own.give_back(jobs)

    def _judge(
        self, waiting: Mapping[str, QueuedJob], starts: Sequence[QueuedJob], now: int
    ) -> list[str]:
        """Count who has not started though it was raised; give who was missed.

        One that still fits was missed, and too many of them open the breaker. One that does not was
        overtaken: since the daemon had looked, another has taken its nodes.
        """
        fit = {job.request.job_id for job in starts}
        all_missed: list[str] = []
        for name in self._raised_last:
            self.raised += 1
            missed = name in waiting and name in fit
            if missed:
                all_missed.append(name)
                self.missed += 1
                times, _ = self._misses.get(name, (0, 0))
                pause_s = min(_FIRST_PAUSE_S * 2**times, _LONGEST_PAUSE_S)
                self._misses[name] = times + 1, now + pause_s
            if missed or name not in waiting:
                self._outcomes.append(missed)
        self._raised_last = frozenset()
        missed_jobs, judged = sum(self._outcomes), len(self._outcomes)
        if judged >= _FEWEST_JUDGED and missed_jobs > _MOST_MISSED * judged:
            self._outcomes.clear()
            reason = (
                f"{missed_jobs} of the last {judged} jobs that were raised to start at once had not"
                " started by the next look, though they still fitted"
            )
            with self._lock:
                self._breaker.add(BreakerEvent(now, "tripped", reason))
        return all_missed

    def _forget_gone(self, waiting: Mapping[str, QueuedJob]) -> None:
        for known in (self._misses, self._asked, self._promised):
            for gone in known.keys() - waiting.keys():
                del known[gone]

    def _may_start(
        self, job: QueuedJob, seen: SeenFactors, exclusions: Exclusions, now: int
    ) -> bool:
        """Whether this job may be raised, if the plan says so."""
        name = job.request.job_id
        _, again_at = self._misses.get(name, (0, 0))
        return (
            can_start(job, now)
            and now >= again_at
            # Of an array whose tasks are not told nobody can raise one alone.
            and (job.tasks == 1 or job.task_ids[0] != name)
            and job.reservation is None
            and not _needs_more_than_is_known(job)
            and not job.opted_out
            and seen.is_free(job)
            and not outside(job, self._hook)
            and not exclusions.chooses(job)
        )

    def _expected(self, job: QueuedJob, now: int, expected: Expected) -> RolePrediction | None:
        """Ask how long a job will run; from time to time anew."""
        name = job.request.job_id
        asked_at, said = self._asked.get(name, (-_ASKED_AGAIN_S, None))
        if said is None or not 0 <= now - asked_at < _ASKED_AGAIN_S:
            said = expected(as_submitted(job), now)
            self._asked[name] = now, said
        return said

    def _note_heads(self, heads: Mapping[str, QueuedJob], look: Look) -> None:
        """Note when the head jobs are planned to start, as each is first seen to be one."""
        self._heads = {queue: head.request.job_id for queue, head in heads.items()}
        for head in heads.values():
            if head.request.job_id not in self._promised:
                planned = head.start_time
                if planned is None:
                    planned = start_on_requests(head, look.queue, look.taken_at, look.cluster)
                self._promised[head.request.job_id] = planned

    def _late(self, queue: str, now: int) -> float:
        """Say how late the head job of a slurm_partition is, as a share of what it may be."""
        planned = self._promised.get(self._heads.get(queue, ""))
        return 0.0 if planned is None else (now - planned) / self._order.head_delay_s


def _needs_more_than_is_known(job: QueuedJob) -> bool:
    """Whether a job asks for something, such as licenses, of which nobody here knows what is free.

    Raised, it would wait all the same.
    """
    return any(asked.not_modelled for asked in (job.asked, job.chunks) if asked is not None)
