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
from foretime_sidecar.ordering.queue_order import contenders, qos_tier, site_factors
from foretime_sidecar.ordering.switched_order import SwitchedOrder
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.order_switches import OrderSwitches
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")


class QueueOrdering:
    """Puts pending jobs in order through their site factors.

    It refuses where that would do nothing or undo another's work: without priority/multifactor,
    with another site-factor plugin, in a federation, where QOS lie too close together, and as soon
    as a job has a site factor that somebody else set. Then all of its own are given back, and the
    log says why; it looks again the next time.

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
        factors: Mapping[str, int] = {}
        highest, refused = self._bound(configuration)
        if not refused:
            factors = self._client.site_factors()
            refused = _foreign(factors, ours)
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
        known = [
            each
            for each in contenders(jobs, order, scheduled_time, now, goes_first)
            if each.job_id in factors
        ]
        self.going_first = sum(each.goes_first for each in known)
        in_order = [each.job_id for each in known]
        changes = site_factors(in_order, factors, highest)
        self._own.send(changes)
        self._own.forget_gone(ours, jobs)
        return len(changes)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> int:
        """Take away every site factor of ours; see `OwnSiteFactors.give_back`."""
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

    def _bound(self, configuration: SchedulerConfiguration) -> tuple[int, str]:
        """Give the highest factor, and why there can be none."""
        unsuitable = why_no_site_factors(configuration)
        if unsuitable:
            return 0, unsuitable
        highest = self._settings.highest_site_factor
        tier = None
        if configuration.qos_weight:  # else there may be no slurmdbd to ask
            tier = qos_tier(configuration.qos_weight, self._client.qos_priorities())
        if tier is not None:
            highest = min(highest, tier - 1)
        if highest < _LEAST_LEVELS:
            return 0, (
                f"one step between QOS is worth {tier} of priority only, and the order must stay "
                f"below it; raise PriorityWeightQOS, so that it is more than {_LEAST_LEVELS}"
            )
        return highest, ""


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


_LEAST_LEVELS = 100  # with fewer an order is none


def _foreign(factors: Mapping[str, int], ours: Mapping[str, frozenset[int]]) -> str:
    """Say which jobs have a site factor that is not ours, "" if none has."""
    foreign = [
        f"{job_id} ({factor})"
        for job_id, factor in factors.items()
        if factor and factor not in ours.get(job_id, frozenset())
    ]
    if not foreign:
        return ""
    return (
        f"{len(foreign)} jobs have a site factor that is not Foretime's, such as job {foreign[0]}; "
        "find out who set it, or clear it: scontrol update JobId=... SiteFactor=0"
    )
