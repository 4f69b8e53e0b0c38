"""The site's limits and reservations, as they say which jobs are left alone."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import (
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.learning.exclusions import Exclusions, exclusions_of
from foretime_sidecar.settings.settings import Settings

logger = logging.getLogger("foretime")


class LimitsReading:
    """Reads them from the scheduler; only the thread that polls asks for it.

    Parameters
    ----------
    settings, client
        The sidecar's.
    """

    def __init__(self, settings: Settings, client: SchedulerClient) -> None:
        self._settings = settings
        self._client = client
        self._limits: SiteLimits | None = None
        self._last: tuple[SiteLimits, Exclusions] | None = None  # without reservations
        self._read_at = 0

    def exclusions(
        self,
        configuration: SchedulerConfiguration,
        now: int,
        reservations: Sequence[Reservation] | None = None,
    ) -> Exclusions:
        """Give what must be left alone; limits are not read more often than a table is due.

        Parameters
        ----------
        configuration
            Of the scheduler.
        now
            Epoch seconds.
        reservations
            As they were just read; ``None``: they are read here.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, unless limits that were read before can be kept.
        """
        limits = self._limits
        age_s = now - self._read_at
        if limits is None or not 0 <= age_s < self._settings.table.publish_interval_s:
            try:
                limits = self._limits = self._client.limits(configuration)
                self._read_at = now
            except SchedulerError as error:
                if limits is None:
                    raise
                # As slurmctld itself does while slurmdbd is down.
                logger.warning("the limits read before count on: %s", error)
        if reservations is None:
            reservations = self._client.reservations()
        # With none ahead, time changes nothing.
        if reservations or self._last is None or self._last[0] is not limits:
            found = exclusions_of(self._settings, limits, reservations, now)
            self._last = None if reservations else (limits, found)
            return found
        return self._last[1]

    def longest_time(self, slurm_partition: str | None) -> int | None:
        """Give MaxTime of a slurm_partition as last read, seconds; ``None`` if none is known."""
        known = () if self._limits is None else self._limits.slurm_partitions
        return next((each.max_time for each in known if each.name == slurm_partition), None)
