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
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sim.policies.families import family_named
from foretime_sim.policies.order import Order

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    QueueState,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.forecasts.latest_starts import NotedBounds
from foretime_sidecar.ordering.queue_order import contenders, name_of, qos_tier, site_factors
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
        self._store = store
        self._lock = lock
        self.refused = ""
        self.going_first = 0
        self._has_none = False  # for sure; the store may tell of a time before this start

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
        if self._settings.order == "none":
            return self.give_back(jobs)
        ours = self._ours()
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
        self._send(changes)
        if gone := ours.keys() - _names(jobs):
            with self._lock:
                self._store.forget_site_factors(gone)
        return len(changes)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> int:
        """Take away every site factor of ours, and give how many jobs still had one.

        Parameters
        ----------
        jobs
            The queue as it is; ``None`` asks for it if there is anything to give back.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change; it is tried again the next time.
        """
        if self._has_none:
            return 0
        ours = self._ours()
        if not ours:
            self._has_none = True
            return 0
        names = _names(self._client.queue().jobs if jobs is None else jobs)
        factors = self._client.site_factors()
        # One that Slurm does not weigh now (held since, say) has what we last gave it.
        mine = [
            job_id
            for job_id in sorted(ours.keys() & names)
            if factors.get(job_id, _LAST) in ours[job_id] | {_LAST}
        ]
        changes = [JobChange(job_id, site_factor=0) for job_id in mine]
        if changes:
            logger.warning("the queue's own order is given back: %d jobs", len(changes))
            self._client.update(changes)
        with self._lock:
            self._store.forget_site_factors(ours)
        self._has_none = True
        return len(changes)

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

    def _ours(self) -> dict[str, frozenset[int]]:
        with self._lock:
            return self._store.site_factors()

    def _bound(self, configuration: SchedulerConfiguration) -> tuple[int, str]:
        """Give the highest factor, and why there can be none."""
        if configuration.priority_type != "priority/multifactor":
            return 0, (
                f"PriorityType is {configuration.priority_type or 'unknown'}; site factors count "
                "with priority/multifactor alone"
            )
        if configuration.site_factor_plugin:
            return 0, (
                f"PrioritySiteFactorPlugin = {configuration.site_factor_plugin} sets the site "
                'factors; take it out, or set queue_order.order = "none"'
            )
        if configuration.federation:
            return 0, f"the cluster is in the federation {configuration.federation}"
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

    def _send(self, factors: Mapping[str, int]) -> None:
        if not factors:
            return
        self._has_none = False
        with self._lock:
            self._store.note_site_factors(factors)
        changes = [JobChange(job_id, site_factor=factor) for job_id, factor in factors.items()]
        try:
            self._client.update(changes)
        except SchedulerError as error:
            # Jobs start and end while we look, and the others are done; but not if none is.
            seen = self._client.site_factors()
            if not any(seen.get(job_id) == factor for job_id, factor in factors.items()):
                raise
            logger.info("some site factors were refused: %s", error)
        else:
            with self._lock:
                self._store.settle_site_factors(factors)


def ordering_of(
    settings: Settings,
    client: SchedulerClient,
    store: Store,
    lock: threading.RLock,
    runtimes: Callable[[], RuntimeHistories | None],
    bounds: NotedBounds | None,
    *,
    unhurried: bool,
) -> QueueOrdering | None:
    """Give what orders the queue as the settings say; ``None`` if their client can't.

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
    if settings.scheduler.client != "commands":
        return None
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


_LAST = -(2**31)  # no site factor that can be set: stands for one that does not show
_LEAST_LEVELS = 100  # with fewer an order is none


def _names(jobs: Sequence[QueuedJob]) -> set[str]:
    """Give the names, as site factors go by, of what is still pending."""
    return {name_of(job) for job in jobs if job.state is QueueState.PENDING}


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
