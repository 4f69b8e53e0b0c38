"""Slurm's limits of jobs, which the sidecar watches: there a planned time can end a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from foretime_sidecar.clients.client import JobChange, QueuedJob, SchedulerClient
from foretime_sidecar.limit_repairs import (
    endangered_by_time_min,
    unrestored_limits,
    without_time_min,
)
from foretime_sidecar.settings import Settings
from foretime_sidecar.store import Store
from foretime_sidecar.table import Mechanism, Mode, Table

logger = logging.getLogger("foretime")

_MOST_NAMED = 10  # jobs in one line of the log


class SlurmLimits:
    """Keeps in mind whether jobs may wait with a time_min of the hook's, and mends limits.

    Parameters
    ----------
    settings, client, store
        The sidecar's.
    lock
        Held while the store changes.

    Attributes
    ----------
    time_min_given
        Whether jobs may wait that the hook has given a time_min.
    """

    def __init__(
        self, settings: Settings, client: SchedulerClient, store: Store, lock: threading.RLock
    ) -> None:
        self._settings = settings
        self._client = client
        self._store = store
        self._lock = lock
        self.time_min_given = self._gives_time_min(Mode(settings.hook.mode))

    def recall(self, table: Table | None) -> None:
        """Take over what the store and the table in place say of the time before this start."""
        with self._lock:
            self.time_min_given |= self._store.time_min_given()
        if table is not None:
            self.time_min_given |= (
                table.settings.mode is Mode.ENFORCE
                and table.settings.mechanism is Mechanism.TIME_MIN
            )

    def mend(self, jobs: Sequence[QueuedJob], soft_limit: bool, now: int, pause_s: int) -> None:
        """Change the limits at which jobs would be ended too early.

        Parameters
        ----------
        jobs
            The queue as it is.
        soft_limit
            Whether Slurm takes time_min as a soft limit.
        now
            Epoch seconds.
        pause_s
            Seconds until the next look.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change.
        """
        unrestored = unrestored_limits(jobs)
        if unrestored:
            logger.warning(
                "PrologSlurmctld left %d running jobs with the limit that the hook had lowered; "
                "given back what was asked for: %s",
                len(unrestored),
                _names(unrestored),
            )
        endangered: list[JobChange] = []
        if self.time_min_given and self._settings.hook.mechanism == "slurm-soft-limit":
            if soft_limit:
                why = "with a deadline, of several parts, or before a reservation"
                endangered = endangered_by_time_min(
                    jobs,
                    self._client.reservations(),
                    now,
                    pause_s,
                )
            else:
                # At once: the next poll may fail at the accounting or the disk, and until the
                # table says otherwise the hook gives more.
                why = "as it is no soft limit any more"
                endangered = without_time_min(jobs)
            if endangered:
                logger.warning(
                    "time_min cleared from %d pending jobs %s: %s",
                    len(endangered),
                    why,
                    _names(endangered),
                )
        changes = unrestored + endangered
        if changes:
            self._client.update(changes)

    def will_carry(self, mode: Mode) -> None:
        """Note the mode of the table that is about to be written."""
        self.time_min_given |= self._gives_time_min(mode)

    def carries(self, mode: Mode) -> None:
        """Take time_min from all pending jobs, once a table stands with which the hook gives none.

        Without a soft limit they would be killed at it; and it is how the hook is switched off
        before the soft limit is taken from slurm.conf. A user's own is taken too, as nothing tells
        it from the hook's: such a job keeps its whole limit, and only starts later than it might
        have.
        """
        if not self.time_min_given or self._gives_time_min(mode):
            return
        changes = without_time_min(self._client.queue().jobs)
        if changes:
            logger.warning(
                "the hook gives no time_min any more: cleared from %d pending jobs", len(changes)
            )
            self._client.update(changes)
        with self._lock:
            self._store.time_min_cleared()
        self.time_min_given = False

    def _gives_time_min(self, mode: Mode) -> bool:
        """Say whether a table with this mode lets the hook give jobs a time_min."""
        return mode is Mode.ENFORCE and self._settings.hook.mechanism == "slurm-soft-limit"


def _names(changes: Sequence[JobChange]) -> str:
    named = [change.job_id for change in changes[:_MOST_NAMED]]
    return ", ".join(named) + (" and more" if len(changes) > len(named) else "")
