"""Keeps Slurm's queue in an order by t_sched, and gives back what it changed.

What is set is written down before it is sent, so that whenever the sidecar dies, its next start
knows which site factors are its own.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence

from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_sim.policies.families import family_named
from foretime_sim.policies.order import Order

from foretime_sidecar.clients.client import (
    QueuedJob,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.forecasts.latest_starts import NotedBounds
from foretime_sidecar.ordering.own_site_factors import OwnSiteFactors, why_no_site_factors
from foretime_sidecar.ordering.queue_order import contenders
from foretime_sidecar.ordering.switched_order import SwitchedOrder
from foretime_sidecar.ordering.wanted_places import heads_of, places_of, wanted_factors
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.queue.site_factors import name_of
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.order_switches import OrderSwitches
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")


class QueueOrdering:
    """Puts pending jobs in order through their site factors.

    A job of a better QOS stays before those of others. A site factor that somebody else has set
    counts as any other part of a job's priority, and is put back as it was.

    It refuses where that would do nothing or harm (`why_no_site_factors`), while somebody disabled
    Foretime, or while the circuit breaker is open. Then all of its own are given back, and the log
    says why; it looks again the next time.

    Parameters
    ----------
    settings
        Which order, and how high a factor may be.
    client
        The scheduler.
    store
        Remembers which site factors are ours.
    lock
        Held while the store is used.
    switched
        What chooses the order, where the settings name none.
    promises
        When jobs start no later than, if jobs that near it go first.

    Attributes
    ----------
    switched
        As given.
    refused
        Why the queue is not put in order, "" if it is.
    going_first
        Jobs at the last look that went before the others whatever the order.
    """

    def __init__(
        self,
        settings: QueueOrderSettings,
        client: SchedulerClient,
        store: Store,
        lock: threading.RLock,
        switched: SwitchedOrder | None = None,
        promises: NotedBounds | None = None,
    ) -> None:
        self.switched = switched
        self._promises = promises
        self._settings = settings
        self._client = client
        self._own = OwnSiteFactors(client, store, lock)
        self.refused = ""
        self.going_first = 0

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        scheduled_time: Callable[[QueuedJob], int],
        why_not: str = "",
    ) -> int:
        """Put the pending jobs in order, and give how many site factors changed.

        Parameters
        ----------
        look
            The queue as it is.
        configuration
            The scheduler's.
        scheduled_time
            t_sched of a job, seconds.
        why_not
            Why nothing may be put in order now; "" if it may.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change.
        StateError
            If the store can't be read or written.
        """
        jobs, now = look.queue.jobs, look.taken_at
        if not self._settings.keeps_order:
            return self.give_back(jobs)
        ours = self._own.all()
        refused = why_not or why_no_site_factors(configuration)
        if refused:
            if refused != self.refused:
                logger.error("the queue is not put in order: %s", refused)
            self.refused = refused
            return self.give_back(jobs)
        self.refused = ""
        goes_first = self._goes_first(now)
        if self.switched is None:
            order = Order(self._settings.order)
        else:
            order = self.switched.choose(look, scheduled_time, goes_first)
        # Of a job that Slurm does not weigh yet, nothing shows what factor it has.
        places = places_of(jobs, self._client.site_factors(), ours)
        known = [
            each
            for each in contenders(jobs, order, scheduled_time, now, goes_first)
            if each.job_id in places
        ]
        self.going_first = sum(each.goes_first for each in known)
        qos = self._qos_of(jobs, configuration)
        in_order = sorted((each.job_id for each in known), key=lambda name: -qos.get(name, 0))
        if self._settings.head_first:
            first = heads_of(jobs, places, now)
            in_order = [*first, *(name for name in in_order if name not in first)]
        changes = wanted_factors(in_order, places, self._settings.highest_site_factor)
        started = self._own.of_started(ours, jobs)
        earlier = {name: places[name].earlier for name in changes}
        self._own.send(changes | started, earlier | started)
        self._own.forget_gone(ours, jobs)
        return len(changes)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> int:
        """Put back what jobs had before ours; see `OwnSiteFactors.give_back`."""
        return self._own.give_back(jobs)

    def _goes_first(self, now: int) -> Callable[[QueuedJob], bool]:
        """Say who goes before the others, so that no order starves anybody."""
        bound_s, lead_s = self._settings.longest_wait_s, self._settings.promise_lead_s

        def goes_first(job: QueuedJob) -> bool:
            if bound_s > 0 and now - (job.eligible_time or now) >= bound_s:
                return True
            if self._promises is None:
                return False
            return any(
                now >= bound.latest_start - lead_s
                for task in job.task_ids
                if (bound := self._promises.bound_of(task, job.request.submit_time)) is not None
            )

        return goes_first

    def _qos_of(
        self, jobs: Sequence[QueuedJob], configuration: SchedulerConfiguration
    ) -> Mapping[str, int]:
        """Give the priority of each job's QOS where that counts, by the job's name."""
        if configuration.qos_weight <= 0:  # there may be no slurmdbd to ask
            return {}
        priorities = self._client.qos_priorities()
        return {name_of(job): priorities.get(job.qos or "", 0) for job in jobs}


def ordering_of(
    settings: Settings,
    client: SchedulerClient,
    store: Store,
    lock: threading.RLock,
    runtimes: Callable[[], RuntimeHistories | None],
    bounds: NotedBounds | None,
    *,
    unhurried: bool,
) -> QueueOrdering:
    """Give what orders the queue as the settings say.

    Parameters
    ----------
    settings, client, store, lock
        The sidecar's.
    runtimes
        Gives how long jobs really take, as far as that is learned.
    bounds
        When jobs start no later than, if that is noted.
    unhurried
        Whether choosing the order may take as long as it takes.
    """
    chosen, switched = settings.queue_order, None
    if chosen.switches:
        switched = SwitchedOrder(
            chosen,
            family_named(settings.forecast.backfill),
            OrderSwitches(store, lock),
            math.inf if unhurried else chosen.planning_limit_s,
            runtimes,
        )
    promises = bounds if chosen.keep_promises else None
    return QueueOrdering(chosen, client, store, lock, switched, promises)
