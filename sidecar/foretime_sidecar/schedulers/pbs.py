"""PBS: it never ends a job at its soft_walltime, so nothing need be mended; it keeps its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from foretime_sim.policies.policy import Correction

from foretime_sidecar.clients.client import QueuedJob, SchedulerConfiguration
from foretime_sidecar.clients.pbs.commands import PbsCommands, PbsProcesses
from foretime_sidecar.clients.pbs.job_changes import (
    ConnectedChanges,
    JobChanger,
    QalterProcesses,
    pbs_library,
)
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.settings.settings import SchedulerSettings
from foretime_sidecar.table.table import Mode


class PbsStrategy:
    """The hook does all; see `SchedulerStrategy`."""

    correction = Correction.PBS
    users_set_time_min = False
    ordering = None

    def watch(self, look: Look) -> None:
        """Do nothing: the starvation guard is Slurm's."""

    def why_not_enforced(self) -> str:
        """Give "": nothing here speaks against it."""
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
    ) -> None:
        """Do nothing: no limit was changed."""

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        scheduled_time: Callable[[QueuedJob], int],
    ) -> None:
        """Do nothing: PBS has no site factors."""

    def give_back(self) -> None:
        """Do nothing: the queue stands in PBS's own order."""


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
    )
