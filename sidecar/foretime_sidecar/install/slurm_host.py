"""What slurmctld's host needs for Foretime: a table that slurmctld can open, and an operator."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.install.host import USER, Host
from foretime_sidecar.install.host_plan import HostPlan
from foretime_sidecar.install.steps import Step

_SLURMCTLD = "slurmctld.service"
_RESTART_S = 60
_PAUSE_S = 0.2
_RIGHTS = ("Operator", "Administrator")


def running_groups(configuration: Mapping[str, str]) -> frozenset[int] | None:
    """Give the groups that slurmctld runs with; ``None`` if it does not run here.

    It learns them when it starts, and at no `scontrol reconfigure` (seen on 22.05 and 26.05).
    """
    try:
        pid = int(Path(configuration.get("SlurmctldPidFile", "")).read_text(encoding="ascii"))
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except (OSError, ValueError):
        return None
    values = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    if not values["Name"].strip().startswith("slurmctld"):  # Debian's is slurmctld-wlm
        return None
    own = values["Gid"].split()[1]
    return frozenset(map(int, (own, *values["Groups"].split())))


def plan_slurm_rights(
    plan: HostPlan, controller: SlurmController, configuration: Mapping[str, str], commands_dir: str
) -> None:
    """Plan the group of slurmctld's user, and the rights of the daemon's.

    Parameters
    ----------
    plan
        Gets the steps.
    controller, configuration
        slurmctld, and what ``scontrol show config`` says.
    commands_dir
        Folder of sacctmgr; "" for the PATH.

    Raises
    ------
    SchedulerError
        If slurmdbd does not answer.
    """
    _plan_group(plan, controller, configuration)
    if configuration.get("AccountingStorageType") == "accounting_storage/slurmdbd":
        _plan_operator(plan, controller, commands_dir)
    else:
        plan.notes.append(
            "this Slurm has no slurmdbd: of jobs that end nothing is learned, and the daemon may "
            "not change others' jobs"
        )


def _plan_group(
    plan: HostPlan, controller: SlurmController, configuration: Mapping[str, str]
) -> None:
    host = plan.host
    name = configuration.get("SlurmUser", "").partition("(")[0]
    if name in ("", "root"):
        return
    member = host.has_user(USER) and host.is_member(name, USER)
    if not member:
        plan.command(
            *("usermod", "--append", "--groups", USER, name),
            undo=("gpasswd", "--delete", name, USER),
        )
    groups = running_groups(configuration)
    if groups is None or (member and _group_id(host) in groups):
        return
    if host.runs_systemd and host.succeeds("systemctl", "is-active", "--quiet", _SLURMCTLD):
        plan.steps.append(
            Step(
                f"systemctl restart {_SLURMCTLD}  # it learns its groups only when it starts",
                lambda: _restart(host, controller),
            )
        )
    else:
        plan.notes.append(
            "restart slurmctld, which learns its groups only when it starts: until then it can't "
            "open the table, and leaves every job alone"
        )


def _group_id(host: Host) -> int:
    return int(host.run("getent", "group", USER).split(":")[2])


def _restart(host: Host, controller: SlurmController) -> None:
    host.run("systemctl", "restart", _SLURMCTLD)
    until = time.monotonic() + _RESTART_S
    while True:
        try:
            controller.configuration()
        except SchedulerError:
            if time.monotonic() > until:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _plan_operator(plan: HostPlan, controller: SlurmController, commands_dir: str) -> None:
    level = controller.admin_level(USER)
    if level in _RIGHTS:
        return
    sacctmgr = (str(Path(commands_dir) / "sacctmgr"), "--immediate")
    if level is None:
        plan.command(
            *(*sacctmgr, "add", "user", USER, "account=root", "adminlevel=Operator"),
            undo=(*sacctmgr, "delete", "user", USER),
        )
    else:
        change = (*sacctmgr, "modify", "user", USER, "set")
        plan.command(*change, "adminlevel=Operator", undo=(*change, f"adminlevel={level}"))
