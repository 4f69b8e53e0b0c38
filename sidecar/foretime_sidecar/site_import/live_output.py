"""A live Slurm asked for all that its site's file needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from foretime_sidecar.clients.slurm.control_texts import configuration_values
from foretime_sidecar.site_import.site_output import COMMANDS, SiteOutput

_LIMITS = "GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,GrpTRESRunMins,MaxTRES,MaxTRESPerNode"
_ASSOCIATION = (
    f"Cluster,Account,User,Partition,ParentName,Share,Priority,{_LIMITS},MaxTRESMins,MaxWall,"
    "MaxJobs,MaxSubmit,QOS,DefaultQOS"
)
_QOS = (
    f"Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags,UsageThres,UsageFactor,"
    f"{_LIMITS},MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,MaxJobsPA,"
    "MaxSubmitPA,MaxTRESRunMinsPU,MaxTRESRunMinsPA,MinTRES,LimitFactor"
)
_CONTROLLER = {
    "nodes": "scontrol show node --all --future --oneliner",
    "partitions": "scontrol show partition --all --oneliner",
    "reservations": "scontrol show reservation --oneliner",
    "licenses": "scontrol show licenses",
    "sdiag": "sdiag",
}
_ACCOUNTING = {
    "assoc": f"sacctmgr --parsable2 show assoc format={_ASSOCIATION}",
    "qos": f"sacctmgr --parsable2 show qos format={_QOS}",
    "users": "sacctmgr --parsable2 show user",
    "sshare": "sshare -a -l -P -m",
}


def ask_slurm(run: Callable[[Sequence[str]], object]) -> SiteOutput:
    """Ask a live Slurm.

    Parameters
    ----------
    run
        Runs a command and gives what it prints, with ``SLURM_TIME_FORMAT=%s``.

    Raises
    ------
    SchedulerError
        If a command fails.
    """
    output = SiteOutput()

    def ask(kind: str, command: str) -> str:
        return output.add(kind, str(run(command.split())), command)

    values = configuration_values(ask("config", "scontrol show config"))
    for kind, command in _CONTROLLER.items():
        ask(kind, command)
    if values.get("TopologyPlugin", "").lower() == "topology/tree":
        ask("topology", COMMANDS["topology"])
    if "slurmdbd" in values.get("AccountingStorageType", ""):
        for kind, command in _ACCOUNTING.items():
            ask(kind, command)
    return output
