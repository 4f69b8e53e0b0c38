"""PBS: it never ends a job at its soft_walltime, and raises a job by a resource."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from foretime_sim.policies.policy import Correction

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.pbs.commands import PbsCommands, PbsProcesses
from foretime_sidecar.clients.pbs.job_changes import (
    ConnectedChanges,
    JobChanger,
    QalterProcesses,
    pbs_library,
)
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.own_site_factors import OwnSiteFactors
from foretime_sidecar.ordering.pbs_starts import PbsStarts
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.safety.soft_walltimes import SoftWalltimes
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import LiveSite, live_pbs
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode

# Nobody waits for the site: what takes longer is asked again later.
_SITE_TIMEOUT_S = 30


class PbsStrategy:
    """Takes back what the hook could not know of; see `SchedulerStrategy`.

    Parameters
    ----------
    settings, client, store, lock
        The sidecar's.
    site
        How this PBS schedules, as it is read; ``None`` if nothing reads it.

    Attributes
    ----------
    starts
        What starts jobs now; ``None`` if the settings do not say so.
    """

    correction = Correction.PBS
    users_set_time_min = False
    ordering = None

    def __init__(
        self,
        settings: Settings,
        client: SchedulerClient,
        store: Store,
        lock: threading.RLock,
        site: KeptSite | None,
    ) -> None:
        self.starts: StartNow | None = None
        if settings.starts_jobs:
            order, way = settings.queue_order, PbsStarts(site)
            self.starts = StartNow(settings.hook, order, client, store, lock, way)
        self._ranks = OwnSiteFactors(client, store, lock, owns_all=True)
        self._store = store
        self._lock = lock
        self._soft_walltimes = SoftWalltimes(client)

    def watch(self, look: Look) -> None:
        """Do nothing: the starvation guard is Slurm's."""

    def why_not_enforced(self) -> str:
        """Say so while PBS refuses to take plans back."""
        if self._soft_walltimes.refused:
            return (
                "PBS refused to plan jobs with all of their walltime again; see the log, and make "
                "the daemon's user a manager of PBS"
            )
        return ""

    def refined(
        self,
        jobs: Sequence[QueuedJob],
        estimated: Callable[[QueuedJob], int | None] | None,
        now: int,
    ) -> Refined:
        """Refine nothing: jobs keep the soft_walltime that the hook gave them."""
        return NOTHING_REFINED

    def mend(
        self, look: Look, exclusions: Exclusions | None, mode: Mode, pause_s: int, refined: Refined
    ) -> list[JobChange]:
        """Take soft_walltime from jobs that could reach a reservation or dedicated time."""
        planned_until = None
        if mode is not Mode.ENFORCE:
            with self._lock:
                planned_until = self._store.planned_until()
        return self._soft_walltimes.mend(
            look.queue.jobs,
            exclusions or Exclusions(scheduler="pbs"),
            look.taken_at,
            2 * pause_s,
            planned_until,
        )

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        scheduled_time: Callable[[QueuedJob], int],
        why_not: str,
    ) -> None:
        """Take away ranks of a daemon that raised jobs, and died, where the settings raise none."""
        if self.starts is None:
            self._ranks.give_back(look.queue.jobs)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> None:
        """Take away every rank of ours."""
        if self.starts is not None:
            self.starts.give_back(jobs)


def pbs_client(scheduler: SchedulerSettings, request_time: RequestTime) -> PbsCommands:
    """Give the client of the settings, which counts how long its requests wait."""
    run = PbsProcesses(
        scheduler.commands_dir, scheduler.command_timeout_s, scheduler.attempts, request_time
    )
    change: JobChanger = QalterProcesses(run)
    if (library := pbs_library(scheduler.commands_dir)) is not None:
        change = ConnectedChanges(library, change, scheduler.command_timeout_s, request_time)
    return PbsCommands(
        run,
        Path(scheduler.pbs_accounting_dir) if scheduler.pbs_accounting_dir else None,
        Path(scheduler.pbs_server_logs_dir) if scheduler.pbs_server_logs_dir else None,
        scheduler.overlap_s,
        change=change,
        dedicated_time=scheduler.pbs_dedicated_time_file,
    )


def pbs_site(scheduler: SchedulerSettings) -> LiveSite:
    """Give the site of the settings' PBS, of its commands and the files of its scheduler."""
    timeout_s = min(scheduler.command_timeout_s, _SITE_TIMEOUT_S)
    return live_pbs(PbsProcesses(scheduler.commands_dir, timeout_s, attempts=1))
