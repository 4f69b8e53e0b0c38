"""All checks of a site: of the settings' table and daemon, and of its scheduler."""

from __future__ import annotations

import time
from pathlib import Path

from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.doctor.checkup import Check, Diagnosis, Health, examine, ok
from foretime_sidecar.install.doctor.daemon import daemon
from foretime_sidecar.install.doctor.pbs import pbs_checks
from foretime_sidecar.install.doctor.slurm import slurm_checks
from foretime_sidecar.install.doctor.table import fresh_table, table_checks
from foretime_sidecar.settings.settings import Settings

_READY_S = 90
_PAUSE_S = 0.5


def site_checks(
    settings: Settings, kind: str, commands_dir: str = "", conf: Path | None = None
) -> list[tuple[str, Check]]:
    """Give the checks, in an order in which the first that fails is the cause.

    Parameters
    ----------
    settings
        The daemon's settings.
    kind
        The scheduler: slurm or pbs.
    commands_dir
        Folder of its commands; "" for the PATH.
    conf
        slurm.conf; where slurmctld says it is if ``None``.
    """
    now = int(time.time())
    if kind == "pbs":
        own = pbs_checks(settings, PbsServer(commands_dir), now, commands_dir)
    elif settings.scheduler.client == "demo":
        said = "foretime demo's own, within its daemon: no commands and no hook to check"
        own = [("scheduler", lambda: ok(said))]
    else:
        own = slurm_checks(settings, SlurmController(commands_dir), now, commands_dir, conf)
    return [*table_checks(settings, now), ("daemon", lambda: daemon(settings)), *own]


def wait_for_daemon(settings: Settings) -> None:
    """Wait until a daemon that has just been started answers, and has written its table."""
    table = Path(settings.table.path)
    until = time.monotonic() + _READY_S
    first = [
        ("table", lambda: fresh_table(table, int(time.time()))),
        ("daemon", lambda: daemon(settings)),
    ]
    while _ill(examine(first)) and time.monotonic() < until:
        time.sleep(_PAUSE_S)


def _ill(diagnoses: list[Diagnosis]) -> bool:
    return any(diagnosis.finding.health is not Health.OK for diagnosis in diagnoses)
