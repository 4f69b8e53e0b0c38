"""What the checks of a Slurm ask it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from foretime_estimators.jobs.errors import ForetimeError

from foretime_sidecar.clients.client import QueueState, SchedulerConfiguration
from foretime_sidecar.clients.slurm.controller import SlurmController, slurm_conf_path
from foretime_sidecar.clients.slurm.job_note import read_note
from foretime_sidecar.clients.slurm.release import slurm_release
from foretime_sidecar.settings.settings import Settings


class SlurmFacts:
    """What the checks ask Slurm, each once.

    Parameters
    ----------
    settings
        The daemon's.
    controller
        slurmctld.
    conf
        slurm.conf; where slurmctld says it is if ``None``.
    """

    def __init__(self, settings: Settings, controller: SlurmController, conf: Path | None) -> None:
        self.settings = settings
        self.controller = controller
        self._conf = conf
        self._configuration: Mapping[str, str] | None = None
        self._failed: ForetimeError | None = None

    @property
    def configuration(self) -> Mapping[str, str]:
        """What ``scontrol show config`` says."""
        if self._failed is not None:
            raise self._failed
        if self._configuration is None:
            try:
                self._configuration = self.controller.configuration()
            except ForetimeError as error:
                self._failed = error
                raise
        return self._configuration

    @property
    def conf(self) -> Path:
        """Where slurm.conf is."""
        return self._conf or slurm_conf_path(self.configuration)

    @property
    def folder(self) -> Path:
        """Where slurm.conf and the scripts are."""
        return self.conf.parent

    @property
    def release(self) -> tuple[int, ...]:
        """Slurm's release."""
        return slurm_release(self.configuration["SLURM_VERSION"])

    @property
    def sets_site_factors(self) -> bool:
        """Whether the daemon may set site factors under these settings."""
        return self.settings.starts_now or self.settings.queue_order.keeps_order

    @property
    def as_the_daemon_reads_it(self) -> SchedulerConfiguration:
        """The configuration as the daemon goes by it."""
        return self.controller.client.configuration()

    def words(self, key: str) -> list[str]:
        """Words of a value that is a list."""
        return [word.strip().lower() for word in self.configuration.get(key, "").split(",")]

    def users_time_min(self) -> list[str]:
        """Give the pending jobs that have a --time-min of their user's own."""
        found = []
        for job in self.controller.jobs():
            note = read_note(job.admin_comment)
            own = job.is_short if note is None else note.own_time_min is not None
            if own and job.state is QueueState.PENDING:
                found.append(job.request.job_id)
        return found
