"""Site factors of ours: written down before they are sent, and given back.

So whenever the sidecar dies, its next start knows which site factors are its own.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.queue.site_factors import (
    of_started,
    pending_names,
    put_back,
    queued_names,
    take_ranks,
)
from foretime_sidecar.store.site_factors import GivenFactors
from foretime_sidecar.store.store import Store

logger = logging.getLogger("foretime")


class OwnSiteFactors:
    """The site factors that the sidecar has set.

    Parameters
    ----------
    client
        The scheduler.
    store
        Remembers them.
    lock
        Held while the store is used.
    owns_all
        Whether every factor of a pending job is ours, whatever the store says: the ranks of a PBS.
    """

    def __init__(
        self,
        client: SchedulerClient,
        store: Store,
        lock: threading.RLock,
        *,
        owns_all: bool = False,
    ) -> None:
        self._owns_all = owns_all
        self._client = client
        self._store = store
        self._lock = lock
        self._has_none = False  # for sure; the store may tell of a time before this start
        self._gone: set[str] = set()  # from the queue, at the last look
        self._cleared: set[str] = set()  # of ours, since they have started

    def all(self) -> GivenFactors:
        """Give them by job: the one that it has is among them. And what was there before each."""
        if self._has_none:
            return {}
        with self._lock:
            return self._store.site_factors()

    def take_over(self, factors: Mapping[str, int]) -> GivenFactors:
        """Note that every factor of some jobs is ours, as of one that ran and waits again."""
        ours = self.all()
        strange = {
            job_id: factor
            for job_id, factor in factors.items()
            if factor and factor not in ours.get(job_id, ())
        }
        if not strange:
            return ours
        self._has_none = False
        with self._lock:
            self._store.note_site_factors(strange, {})
        return self.all()

    def send(self, factors: Mapping[str, int], earlier: Mapping[str, int] | None = None) -> None:
        """Set site factors of jobs, in one request; what a job had before ours takes ours away.

        Parameters
        ----------
        factors
            To set, by job.
        earlier
            What a job has without ours; 0 where nothing is said.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused all of them.
        """
        if not factors:
            return
        before = earlier or {}
        given = {name: factor for name, factor in factors.items() if factor != before.get(name, 0)}
        self._has_none = False
        self._cleared -= given.keys()
        with self._lock:
            self._store.note_site_factors(given, before)
        changes = [JobChange(job_id, site_factor=factor) for job_id, factor in factors.items()]
        try:
            self._client.update(changes)
        except SchedulerError as error:
            # Jobs start and end while we look, and the others are done; but not if none is.
            seen = self._client.site_factors()
            waits = any({job_id, job_id.partition("_")[0]} & seen.keys() for job_id in factors)
            if waits and not any(seen.get(job_id) == to for job_id, to in factors.items()):
                raise
            logger.info("some site factors were refused: %s", error)
        else:
            with self._lock:
                self._store.settle_site_factors(given)
                self._store.forget_site_factors(factors.keys() - given.keys())
            self._cleared |= factors.keys() - given.keys()

    def of_started(self, ours: GivenFactors, jobs: Sequence[QueuedJob]) -> dict[str, int]:
        """Give what jobs that have started had before ours: requeued, they would wait with it.

        PBS changes no rank of a job that runs.
        """
        if self._owns_all or not ours:
            return {}
        started = of_started(ours, jobs)
        self._cleared &= started.keys()
        return {name: to for name, to in started.items() if name not in self._cleared}

    def forget_gone(self, ours: Iterable[str], jobs: Sequence[QueuedJob]) -> None:
        """Forget those of jobs that the queue has no more; on PBS, too, of those that run.

        One that is requeued is not told of while its last run completes, so it counts as gone when
        it is at two looks.
        """
        gone = set(ours) - (pending_names(jobs) if self._owns_all else queued_names(jobs))
        forgotten = gone if self._owns_all else gone & self._gone
        self._gone = gone - forgotten
        if forgotten:
            with self._lock:
                self._store.forget_site_factors(forgotten)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> int:
        """Put back what jobs had before every site factor of ours; give how many still had one.

        Parameters
        ----------
        jobs
            The queue as it is; ``None`` asks for it if there is anything to give back.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change; it is tried again the next time.
        """
        ours = self.all()
        if self._owns_all:
            return self._give_back_ranks(ours, jobs)
        if not ours:
            self._has_none = True
            return 0
        queue = self._client.queue().jobs if jobs is None else jobs
        given = put_back(self._client, ours, queue)
        if given:
            logger.warning("the queue's own order is given back: %d jobs", len(given))
        done = ours.keys() & queued_names(queue)
        with self._lock:
            self._store.forget_site_factors(done)
        self.forget_gone(ours.keys() - done, queue)
        self._has_none = not self._gone
        return len(given)

    def _give_back_ranks(self, ours: Iterable[str], jobs: Sequence[QueuedJob] | None) -> int:
        """Take every rank away, also from a job that ran with one and waits again."""
        given = take_ranks(self._client, jobs)
        if given:
            logger.warning("the queue's own order is given back: %d jobs", len(given))
        self._forget(ours)
        return len(given)

    def _forget(self, ours: Iterable[str]) -> None:
        with self._lock:
            self._store.forget_site_factors(ours)
        self._has_none = True


def why_no_site_factors(configuration: SchedulerConfiguration) -> str:
    """Say why site factors do nothing, or harm, under a configuration; "" if neither."""
    if configuration.priority_type != "priority/multifactor":
        return (
            f"PriorityType is {configuration.priority_type or 'unknown'}; site factors count "
            "with priority/multifactor alone: put that into slurm.conf, and restart slurmctld"
        )
    if configuration.site_factor_plugin:
        return (
            f"PrioritySiteFactorPlugin = {configuration.site_factor_plugin} sets the site "
            'factors; take it out, or set queue_order.order = "none"'
        )
    if configuration.federation:
        return f"the cluster is in the federation {configuration.federation}"
    if "INCR_ONLY" in configuration.priority_flags:
        return "PriorityFlags has INCR_ONLY, so that a job once raised could not be lowered again"
    if "enable_user_top" in configuration.parameters:
        return (
            "SchedulerParameters has enable_user_top, and scontrol top makes what a job was "
            "raised by its own for good"
        )
    return ""
