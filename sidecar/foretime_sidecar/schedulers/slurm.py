"""Slurm: it can end a job at what it was planned with, and takes an order of the queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from foretime_estimators.distributions.runtime_histories import RuntimeHistories
from foretime_estimators.jobs.errors import InputError
from foretime_sim.policies.policy import Correction

from foretime_sidecar.clients.client import (
    JobChange,
    QueuedJob,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.bounded_commands import BoundedCommands
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.pyslurm_client import PySlurm, import_pyslurm
from foretime_sidecar.clients.slurm.rest import SlurmRest
from foretime_sidecar.clients.slurm.rest_connection import RestConnection
from foretime_sidecar.forecasts.latest_starts import NotedBounds
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.ordering.ordering import QueueOrdering, ordering_of
from foretime_sidecar.ordering.protected_jobs import LateJobs
from foretime_sidecar.ordering.start_now import StartNow
from foretime_sidecar.queue.forecast_question import Look
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined, refinements_of
from foretime_sidecar.safety.slurm_limits import SlurmLimits
from foretime_sidecar.safety.starvation_guard import StarvationGuard
from foretime_sidecar.settings.settings import SchedulerSettings, Settings
from foretime_sidecar.site_import.site_sources import LiveSite, live_slurm
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode

# Nobody waits for the site: what takes longer is asked again later.
_SITE_TIMEOUT_S = 30


class SlurmStrategy:
    """Mends limits, watches head jobs, refines time_min, orders; see `SchedulerStrategy`.

    Parameters
    ----------
    settings, client, store, lock
        The sidecar's.
    runtimes
        Gives how long jobs really take, as far as that is learned.
    bounds
        When jobs start no later than, if that is noted.
    late
        Who waits too long over its start without Foretime; ``None``: nobody.
    unhurried
        Whether planning the queue may take as long as it takes, as in a replay.

    Attributes
    ----------
    guard
        The starvation guard; ``None`` if the settings want none.
    ordering
        What puts the queue in order; ``None`` if its client can't, or jobs are started now.
    starts
        What starts jobs now; ``None`` if the settings do not say so, or its client can't.
    """

    correction = Correction.SLURM
    users_set_time_min = True

    def __init__(
        self,
        settings: Settings,
        client: SchedulerClient,
        store: Store,
        lock: threading.RLock,
        runtimes: Callable[[], RuntimeHistories | None],
        bounds: NotedBounds | None,
        late: LateJobs | None = None,
        *,
        unhurried: bool,
    ) -> None:
        self._limits = SlurmLimits(settings, client)
        self._refinements = refinements_of(settings, store, lock)
        bound_s = self._guard_s = settings.hook.starvation_guard_s
        self.guard = StarvationGuard(bound_s) if bound_s else None
        self.ordering: QueueOrdering | None = None
        self.starts: StartNow | None = None
        if not settings.scheduler.sets_site_factors:
            return  # the others can't set site factors
        if settings.starts_jobs:
            order = settings.queue_order
            self.starts = StartNow(settings.hook, order, client, store, lock, late=late)
        else:
            self.ordering = ordering_of(
                settings, client, store, lock, runtimes, bounds, unhurried=unhurried
            )

    def watch(self, look: Look) -> None:
        """Watch the head jobs, if the settings say so."""
        if self.guard is not None:
            self.guard.look(look.queue, look.taken_at)

    def why_not_enforced(self) -> str:
        """Say so while a head job waits too long, or Slurm refuses to give limits back."""
        if self.guard is not None and self.guard.waiting_too_long:
            return (
                f"the starvation guard: job {self.guard.waiting_too_long} waits more than "
                f"hook.starvation_guard_s = {self._guard_s} over its plan "
                "on requested times, and all jobs are planned so until it starts"
            )
        if self._limits.refused:
            return (
                "Slurm refused to give jobs back what their users asked for; see the log, and give "
                "the daemon's account AdminLevel=Operator"
            )
        return ""

    def refined(
        self,
        jobs: Sequence[QueuedJob],
        estimated: Callable[[QueuedJob], int | None] | None,
        now: int,
    ) -> Refined:
        """Refine time_min where the hook sets that."""
        if self._refinements is None:
            return NOTHING_REFINED
        return self._refinements.now(jobs, estimated, now)

    def mend(
        self, look: Look, exclusions: Exclusions | None, mode: Mode, pause_s: int, refined: Refined
    ) -> list[JobChange]:
        """Make the changes that the queue needs, in one request, and give them."""
        return self._limits.mend(
            look.queue.jobs, exclusions, mode, look.soft_limit, look.taken_at, pause_s, refined
        )

    def arrange(
        self,
        look: Look,
        configuration: SchedulerConfiguration,
        scheduled_time: Callable[[QueuedJob], int],
        why_not: str,
    ) -> None:
        """Put the queue in order through site factors."""
        if self.ordering is not None:
            self.ordering.arrange(look, configuration, scheduled_time, why_not)

    def give_back(self, jobs: Sequence[QueuedJob] | None = None) -> None:
        """Take away every site factor of ours."""
        for factors in (self.ordering, self.starts):
            if factors is not None:
                factors.give_back(jobs)


def slurm_client(scheduler: SchedulerSettings, request_time: RequestTime) -> SchedulerClient:
    """Give the client of the settings, which counts how long its requests wait."""
    if scheduler.client == "demo":
        raise InputError(
            'scheduler.client = "demo": only foretime demo has its Slurm within; give another'
        )
    limits = scheduler.command_timeout_s, scheduler.attempts, request_time
    runner = SubprocessRunner(scheduler.commands_dir, *limits)
    commands = SlurmCommands(runner, scheduler.overlap_s, scheduler.cluster)
    if scheduler.client == "commands":
        return commands
    if scheduler.client == "slurmrestd":
        connection = RestConnection(
            scheduler.slurmrestd,
            scheduler.slurmrestd_user,
            scheduler.slurmrestd_token_file,
            *limits,
        )
        return SlurmRest(connection, commands, scheduler.overlap_s)
    return PySlurm(import_pyslurm(), commands, request_time)


def slurm_site(scheduler: SchedulerSettings) -> LiveSite:
    """Give the site of the settings' Slurm, asked by its commands whatever the client."""
    timeout_s = min(scheduler.command_timeout_s, _SITE_TIMEOUT_S)
    return live_slurm(BoundedCommands(scheduler.commands_dir, timeout_s, scheduler.cluster))
