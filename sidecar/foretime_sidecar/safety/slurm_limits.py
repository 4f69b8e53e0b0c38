"""Slurm's limits of jobs, which the sidecar watches: there a planned time can end a job."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import JobChange, QueuedJob, SchedulerClient
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.safety.limit_repairs import (
    PLANS,
    Repair,
    changes_of,
    limit_changes,
    limits_waited_with,
    lowered_limits,
    started,
    time_min_changes,
    undone,
)
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import Mode

logger = logging.getLogger("foretime")

_MOST_NAMED = 10  # jobs in one line of the log


class SlurmLimits:
    """Mends limits at each look, and sets time_min of pending jobs.

    Parameters
    ----------
    settings, client
        The sidecar's.

    Attributes
    ----------
    refused
        Whether Slurm refused to give a job back what its user asked for, at the last look.
    """

    def __init__(self, settings: Settings, client: SchedulerClient) -> None:
        self._mechanism = settings.hook.mechanism
        self._client = client
        self._waited_with: dict[str, int] = {}
        self._started: frozenset[str] = frozenset()
        self.refused = False

    def mend(
        self,
        jobs: Sequence[QueuedJob],
        exclusions: Exclusions | None,
        mode: Mode,
        soft_limit: bool,
        now: int,
        pause_s: int,
        refined: Refined = NOTHING_REFINED,
    ) -> list[JobChange]:
        """Make the changes that the queue needs, in one request, and give those that were made.

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
        refined
            What time_min is to be, and has been, where it is not what the hook noted.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, refused all changes, or one that gives a job back what
            its user asked for. A job that has ended since the queue was read does not count.
        """

        def due(queue: Sequence[QueuedJob]) -> list[Repair]:
            return self._due(queue, exclusions, mode, soft_limit, now, pause_s, refined)

        repairs = due(jobs)
        raised: Sequence[Repair] = ()
        try:
            made = self._make(repairs, due)
        finally:
            # Of what was refused, others may have been done.
            if any(_lowers(repair) for repair in repairs):
                raised = _started_lowered(self._client.queue().jobs)
                raised = self._make(raised, _started_lowered)
        self.refused = False
        self._waited_with, self._started = limits_waited_with(jobs), started(jobs)
        return changes_of([*made, *raised])

    def _due(
        self,
        jobs: Sequence[QueuedJob],
        exclusions: Exclusions | None,
        mode: Mode,
        soft_limit: bool,
        now: int,
        pause_s: int,
        refined: Refined,
    ) -> list[Repair]:
        repairs = lowered_limits(jobs, soft_limit, self._waited_with, self._started, refined)
        native = self._mechanism == "slurm-soft-limit"
        planning = mode is Mode.ENFORCE and exclusions is not None
        why = "planned by the other mechanism" if planning else "as no job is planned short now"
        if planning and exclusions is not None:
            # Two pauses: one for a job that starts just before the next look, one to spare.
            if native:
                repairs += time_min_changes(jobs, exclusions, now, 2 * pause_s, refined)
            else:
                repairs += limit_changes(jobs, exclusions, now, 2 * pause_s)
        repairs += undone(
            jobs, why, time_min=not (planning and native), limits=not planning or native
        )
        return repairs

    def _make(
        self, repairs: Sequence[Repair], due: Callable[[Sequence[QueuedJob]], list[Repair]]
    ) -> Sequence[Repair]:
        """Make repairs; raise an error only if some of what was refused still is due."""
        if not repairs:
            return ()
        log_repairs(repairs)
        try:
            self._client.update(changes_of(repairs))
        except SchedulerError as error:
            return self._judge(error, repairs, due(self._client.queue().jobs))
        return repairs

    def _judge(
        self, error: SchedulerError, asked: Sequence[Repair], still_due: Sequence[Repair]
    ) -> Sequence[Repair]:
        """Raise an error again unless it was of jobs that have started or ended meanwhile.

        Gives what was made.
        """
        left = [repair for repair in asked if repair in still_due]
        refused = any(repair.why not in PLANS for repair in left)
        self.refused = self.refused or refused
        if refused or len(left) == len(asked):
            raise error
        logger.info("%d of %d changes were refused: %s", len(left), len(asked), error)
        return [repair for repair in asked if repair not in left]


def _started_lowered(jobs: Sequence[QueuedJob]) -> list[Repair]:
    """Give the repairs of jobs that started between the look and the change that lowered them.

    Their prolog found nothing to raise, so they would be killed at t_sched.
    """
    return lowered_limits(jobs, True, {})


def _lowers(repair: Repair) -> bool:
    return repair.change.time_limit is not None and repair.why in PLANS


def log_repairs(repairs: Sequence[Repair]) -> None:
    """Write one line for each reason, naming some of its jobs."""
    by_reason: dict[tuple[int, str, str], list[str]] = {}
    for repair in repairs:
        if _lowers(repair):
            done, level = "lowered the limit of", logging.INFO
        elif repair.change.time_limit is not None:
            done, level = "given its own limit back to", logging.WARNING
        elif repair.change.time_min:
            done, level = "set time_min of", logging.INFO
        else:
            done, level = "took time_min from", logging.WARNING
        by_reason.setdefault((level, done, repair.why), []).append(repair.change.job_id)
    for (level, done, why), names in by_reason.items():
        named = ", ".join(names[:_MOST_NAMED]) + (" and more" if names[_MOST_NAMED:] else "")
        logger.log(level, "%s %d jobs %s: %s", done, len(names), why, named)
