"""The watchdog: gives jobs back what their users asked for where the daemon no longer looks after.

It shares nothing with the daemon but the settings, the scheduler's commands and a sign of life
(`foretime_sidecar.safety.heartbeat`): it opens no socket, and does without what the store tells of
refined time_min and of site factors if that can't be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.clients.client import QueuedJob, SchedulerClient
from foretime_sidecar.queue.site_factors import put_back, take_ranks
from foretime_sidecar.safety.heartbeat import heartbeat_path, promised_pause_s, silent_for_s
from foretime_sidecar.safety.limit_repairs import Repair, changes_of, lowered_limits, undone
from foretime_sidecar.safety.refinements import refined_in
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.site_factors import site_factors_in


@dataclass(frozen=True, slots=True)
class WatchdogResult:
    """What one run of the watchdog found and did.

    Attributes
    ----------
    alive
        Whether the daemon has given a sign of life in time.
    silent_s
        How long ago it was, seconds; ``None`` if there is none.
    withdrew_table
        Whether a table stood, and was taken away.
    repairs
        The changes made.
    site_factors
        Jobs whose site factor, or rank on PBS, was the daemon's, and was taken away.
    """

    alive: bool
    silent_s: float | None
    withdrew_table: bool = False
    repairs: tuple[Repair, ...] = ()
    site_factors: int = 0


def watch(settings: Settings, client: SchedulerClient, now: float) -> WatchdogResult:
    """Act if the daemon has been silent for ``table.watchdog_after_s``, and in part before.

    Once it has missed a look, running jobs with a lowered limit get theirs back, which can't wait:
    they are killed at t_sched. If the soft limit is lost, time_min of pending jobs is not left to
    the daemon either. The next look is due after the pause that the last one announced, which is
    longer than ``scheduler.poll_interval_s`` while the scheduler is busy.

    Later all is done that can be without it. The table is withdrawn first, so that the hook plans
    no more jobs; then time_min of pending jobs and lowered limits are given back as the jobs' notes
    say, and site factors that the daemon has set are taken away. The daemon writes a new table as
    soon as it lives again.

    Raises
    ------
    StateError
        If the sign of life can't be read or the table can't be removed.
    SchedulerError
        If the scheduler did not answer, or refused a change.
    """
    sign, scheduler = heartbeat_path(settings.table), settings.scheduler
    silent_s = silent_for_s(sign, now)
    pause_s = max(promised_pause_s(sign), scheduler.poll_interval_s)
    if silent_s is not None and silent_s <= min(pause_s, scheduler.longest_poll_interval_s):
        return WatchdogResult(True, silent_s)
    alive = _is_alive(silent_s, settings)
    failure = None
    withdrew = False
    if not alive:
        try:
            withdrew = _withdraw(Path(settings.table.path))
        except StateError as error:
            failure = error  # the jobs come first
    jobs = client.queue().jobs
    soft_limit = client.configuration().soft_limit
    refined = refined_in(Path(settings.store.path))
    repairs = lowered_limits(jobs, soft_limit, {}, refined=refined)
    if not alive:
        repairs += undone(jobs, "as the daemon is silent")
    elif not soft_limit:
        repairs += undone(jobs, "as the soft limit is lost", limits=False)
    raised: list[str] = []
    try:
        if repairs:
            client.update(changes_of(repairs))
    finally:
        if not alive:
            raised = _put_back(settings, client, jobs)
    if failure is not None:
        raise failure
    return WatchdogResult(alive, silent_s, withdrew, tuple(repairs), len(raised))


def watch_ranks(settings: Settings, client: SchedulerClient, now: float) -> WatchdogResult:
    """Take all ranks from a PBS's jobs if the daemon has been silent for that long.

    Raises
    ------
    StateError
        If the sign of life can't be read.
    SchedulerError
        If PBS did not answer, or refused a change of a job that still waits.
    """
    silent_s = silent_for_s(heartbeat_path(settings.table), now)
    if _is_alive(silent_s, settings):
        return WatchdogResult(True, silent_s)
    return WatchdogResult(False, silent_s, site_factors=len(take_ranks(client)))


def _is_alive(silent_s: float | None, settings: Settings) -> bool:
    return silent_s is not None and silent_s <= settings.table.watchdog_after_s


def _put_back(settings: Settings, client: SchedulerClient, jobs: Sequence[QueuedJob]) -> list[str]:
    """Put back what jobs had before the daemon's site factors, as far as its store can be read."""
    try:
        ours = site_factors_in(Path(settings.store.path))
    except StateError:
        return []
    return put_back(client, ours, jobs)


def _withdraw(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StateError(
            f"{path}: can't withdraw the table of a daemon that is silent: {error.strerror}; "
            "remove it by hand"
        ) from error
    return True
