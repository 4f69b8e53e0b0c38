"""Slurm's limits of jobs, which the sidecar watches: there a planned time can end a job."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from foretime_sidecar.clients.client import QueuedJob, SchedulerClient
from foretime_sidecar.exclusions import Exclusions
from foretime_sidecar.limit_repairs import (
    Repair,
    changes_of,
    limits_waited_with,
    lowered_in_danger,
    lowered_limits,
    started,
    time_min_changes,
    undone,
)
from foretime_sidecar.settings import Settings
from foretime_sidecar.table import Mode

logger = logging.getLogger("foretime")

_MOST_NAMED = 10  # jobs in one line of the log


class SlurmLimits:
    """Mends limits at each look, and sets time_min of pending jobs.

    Parameters
    ----------
    settings, client
        The sidecar's.
    """

    def __init__(self, settings: Settings, client: SchedulerClient) -> None:
        self._mechanism = settings.hook.mechanism
        self._client = client
        self._waited_with: dict[str, int] = {}
        self._started: frozenset[str] = frozenset()

    def mend(
        self,
        jobs: Sequence[QueuedJob],
        exclusions: Exclusions | None,
        mode: Mode,
        soft_limit: bool,
        now: int,
        pause_s: int,
    ) -> None:
        """Make the changes that the queue needs, in one request.

        Parameters
        ----------
        jobs
            The queue as it is.
        exclusions
            What is left alone; ``None`` if it can't be told: then no job is planned short.
        mode
            Whether the hook may plan jobs now.
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
        repairs = lowered_limits(jobs, soft_limit, self._waited_with, self._started)
        native = self._mechanism == "slurm-soft-limit"
        planning = mode is Mode.ENFORCE and exclusions is not None
        why = "planned by the other mechanism" if planning else "as no job is planned short now"
        if planning and exclusions is not None:
            # Two pauses: one for a job that starts just before the next look, one to spare.
            change = time_min_changes if native else lowered_in_danger
            repairs += change(jobs, exclusions, now, 2 * pause_s)
        repairs += undone(
            jobs, why, time_min=not (planning and native), limits=not planning or native
        )
        if repairs:
            log_repairs(repairs)
            self._client.update(changes_of(repairs))
        self._waited_with, self._started = limits_waited_with(jobs), started(jobs)


def log_repairs(repairs: Sequence[Repair]) -> None:
    """Write one line for each reason, naming some of its jobs."""
    by_reason: dict[tuple[int, str, str], list[str]] = {}
    for repair in repairs:
        if repair.change.time_limit is not None:
            done, level = "given its own limit back to", logging.WARNING
        elif repair.change.time_min:
            done, level = "set time_min of", logging.INFO
        else:
            done, level = "took time_min from", logging.WARNING
        by_reason.setdefault((level, done, repair.why), []).append(repair.change.job_id)
    for (level, done, why), names in by_reason.items():
        named = ", ".join(names[:_MOST_NAMED]) + (" and more" if names[_MOST_NAMED:] else "")
        logger.log(level, "%s %d jobs %s: %s", done, len(names), why, named)
