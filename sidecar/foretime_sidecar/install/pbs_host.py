"""What the PBS server's host needs for Foretime: what the daemon's user may read and change."""

from __future__ import annotations

import shutil
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.clients.pbs.server import PbsServer
from foretime_sidecar.install.host import USER
from foretime_sidecar.install.host_plan import HostPlan
from foretime_sidecar.settings.settings import Settings

DROP_IN = "pbs.conf"
"""What the units need on PBS (contrib/systemd/foretime.service.d)."""


def plan_pbs_rights(
    plan: HostPlan, server: PbsServer, settings: Settings, commands_dir: str, home: Path | None
) -> None:
    """Plan that the daemon's user reads accounting and scheduler, and manages PBS.

    Raises
    ------
    InputError
        If there is no setfacl.
    SchedulerError
        If the server does not answer.
    """
    accounting = settings.scheduler.pbs_accounting_dir
    if accounting:
        _plan_entry(plan, Path(accounting).parent, "x")
        _plan_entry(plan, Path(accounting), "rX", whole=True)
    if home is not None:
        _plan_entry(plan, home / "sched_priv", "x")
    (name, attributes), *_ = server.status("-B", "-f")["Server"].items()
    host = str(attributes.get("server_host", name))
    managers = [one.strip() for one in str(attributes.get("managers", "")).split(",")]
    if f"{USER}@{host}" not in managers and f"{USER}@*" not in managers:
        qmgr = (str(Path(commands_dir) / "qmgr"), "-c")
        plan.command(
            *(*qmgr, f"set server managers += {USER}@{host}"),
            undo=(*qmgr, f"set server managers -= {USER}@{host}"),
        )


def _plan_entry(plan: HostPlan, folder: Path, rights: str, *, whole: bool = False) -> None:
    """Plan an entry of an access control list, of all in a folder and what comes if ``whole``."""
    if not plan.host.path(folder).is_dir():
        return
    if shutil.which("setfacl") is None:
        raise InputError("there is no setfacl: install the package acl")
    entry, defaults = f"user:{USER}:", f"default:user:{USER}:"
    listed = plan.host.run("getfacl", "--absolute-names", "--omit-header", str(folder))
    if any(line.startswith(entry) for line in listed.splitlines()):
        return
    whole_words = ("--recursive",) if whole else ()
    given = f"{entry}{rights}" + (f",{defaults}{rights}" if whole else "")
    taken = entry.rstrip(":") + (f",{defaults.rstrip(':')}" if whole else "")
    plan.command(
        *("setfacl", *whole_words, "--modify", given, str(folder)),
        undo=("setfacl", *whole_words, "--remove", taken, str(folder)),
    )
