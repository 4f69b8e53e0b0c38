"""Schedulers as they are without settings: what a replay models where no site is given."""

from __future__ import annotations

from typing import Literal

from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload


def default_policy(scheduler: Literal["slurm", "pbs"], workload: Workload) -> Policy:
    """Give Slurm or PBS with its defaults, on a workload's machine.

    Parameters
    ----------
    scheduler
        Which of the two.
    workload
        Its processors are one pool under Slurm, and one host under PBS, if it is on no machine of
        nodes.

    Raises
    ------
    InputError
        If the workload is on a machine that the scheduler has no nodes of.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.policies.scheduler_defaults import default_policy
    >>> default_policy("pbs", generate("lublin2003", jobs=10, seed=1)).is_pbs
    True
    """
    machine = workload.machine
    if isinstance(machine, BgpMachine):
        raise InputError(
            f"{machine.name} is a Blue Gene, which neither Slurm nor PBS runs: use foretime"
            " simulate"
        )
    if scheduler == "slurm":
        machine = machine or Machine.flat(workload.machine_processors)
        return Policy(backfill=Slurm(SlurmSite(machine)))
    if machine is not None:
        raise InputError(
            "--machine: its nodes are no hosts of PBS: give --site, or --scheduler policy"
        )
    return Policy(backfill=Pbs(PbsSite.flat(workload.machine_processors)))
