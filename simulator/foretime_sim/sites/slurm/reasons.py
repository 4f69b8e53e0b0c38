"""Slurm's words for the limits that keep a job waiting, as ``squeue -o %r`` prints them.

Source: ``_get_tres_state_reason`` in src/slurmctld/acct_policy.c and src/common/job_state_reason.c
(src/common/slurm_protocol_defs.c in 22.05).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable

ARRAY_THROTTLE = "JobArrayTaskLimit"
LICENSES = "Licenses"
PARTITION_CONFIG = "PartitionConfig"
PARTITION_DOWN = "PartitionDown"
PARTITION_INACTIVE = "PartitionInactive"
PARTITION_NODES = "PartitionNodeLimit"
PARTITION_TIME = "PartitionTimeLimit"
QOS_NOT_ALLOWED = "QOSNotAllowed"
ACCOUNT_NOT_ALLOWED = "AccountNotAllowed"
ASSOC_GROUP_JOBS = "AssocGrpJobsLimit"
ASSOC_GROUP_SUBMITTED = "AssocGrpSubmitJobsLimit"
ASSOC_GROUP_WALL = "AssocGrpWallLimit"
ASSOC_JOBS = "AssocMaxJobsLimit"
ASSOC_SUBMITTED = "AssocMaxSubmitJobLimit"
ASSOC_WALL = "AssocMaxWallDurationPerJobLimit"
QOS_GROUP_JOBS = "QOSGrpJobsLimit"
QOS_GROUP_SUBMITTED = "QOSGrpSubmitJobsLimit"
QOS_GROUP_WALL = "QOSGrpWallLimit"
QOS_USER_JOBS = "QOSMaxJobsPerUserLimit"
QOS_USER_SUBMITTED = "QOSMaxSubmitJobPerUserLimit"
QOS_ACCOUNT_JOBS = "MaxJobsPerAccount"
QOS_ACCOUNT_SUBMITTED = "MaxSubmitJobsPerAccount"
QOS_WALL = "QOSMaxWallDurationPerJobLimit"

# What sbatch says where a submission is refused for no limit of accounting (slurm_strerror).
BAD_ACCOUNT = "Invalid account or account/partition combination specified"
BAD_LICENSE = "Invalid license specification"
BAD_NODE_COUNT = "Node count specification invalid"
BAD_QOS = "Invalid qos specification"
BAD_TIME_LIMIT = "Requested time limit is invalid (missing or exceeds some limit)"
PARTITION_CLOSED = "Required partition not available (inactive or drain)"
TOO_MANY_CPUS = "More processors requested than permitted"

_FIRST_KINDS = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")


class TresLimit(enum.Enum):
    """A limit by kind of resource; the value is its word for kinds without an exception below."""

    ASSOC_GROUP = "AssocGrp{}"
    ASSOC_GROUP_MINUTES = "AssocGrp{}Minutes"
    ASSOC_GROUP_RUN_MINUTES = "AssocGrp{}RunMinutes"
    ASSOC_JOB = "AssocMax{}PerJob"
    ASSOC_JOB_NODE = "AssocMax{}PerNode"
    ASSOC_JOB_MINUTES = "AssocMax{}MinutesPerJob"
    QOS_GROUP = "QOSGrp{}"
    QOS_GROUP_MINUTES = "QOSGrp{}Minutes"
    QOS_GROUP_RUN_MINUTES = "QOSGrp{}RunMinutes"
    QOS_JOB = "QOSMax{}PerJob"
    QOS_JOB_NODE = "QOSMax{}PerNode"
    QOS_JOB_MINUTES = "QOSMax{}MinutesPerJob"
    QOS_USER = "QOSMax{}PerUser"
    QOS_ACCOUNT = "Max{}PerAccount"
    QOS_USER_RUN_MINUTES = "Max{}RunMinsPerUser"
    QOS_ACCOUNT_RUN_MINUTES = "Max{}RunMinsPerAccount"
    QOS_LEAST = "QOSMin{}"


_NAMES = {"cpu": "Cpu", "node": "Node", "billing": "Billing", "energy": "Energy"}
_NAMES_BY_TYPE = {"gres": "GRES", "license": "License", "bb": "BB"}
_EXCEPTIONS = {
    (TresLimit.ASSOC_GROUP, "cpu"): "AssocGrpCpuLimit",
    (TresLimit.ASSOC_GROUP, "mem"): "AssocGrpMemLimit",
    (TresLimit.ASSOC_GROUP, "node"): "AssocGrpNodeLimit",
    (TresLimit.ASSOC_GROUP_MINUTES, "cpu"): "AssocGrpCPUMinutesLimit",
    (TresLimit.ASSOC_GROUP_RUN_MINUTES, "cpu"): "AssocGrpCPURunMinutesLimit",
    (TresLimit.ASSOC_JOB, "cpu"): "AssocMaxCpuPerJobLimit",
    (TresLimit.ASSOC_JOB, "node"): "AssocMaxNodePerJobLimit",
    (TresLimit.ASSOC_JOB_MINUTES, "cpu"): "AssocMaxCpuMinutesPerJobLimit",
    (TresLimit.QOS_GROUP, "cpu"): "QOSGrpCpuLimit",
    (TresLimit.QOS_GROUP, "mem"): "QOSGrpMemLimit",
    (TresLimit.QOS_GROUP, "node"): "QOSGrpNodeLimit",
    (TresLimit.QOS_GROUP_MINUTES, "cpu"): "QOSGrpCPUMinutesLimit",
    (TresLimit.QOS_GROUP_RUN_MINUTES, "cpu"): "QOSGrpCPURunMinutesLimit",
    (TresLimit.QOS_JOB, "cpu"): "QOSMaxCpuPerJobLimit",
    (TresLimit.QOS_JOB, "node"): "QOSMaxNodePerJobLimit",
    (TresLimit.QOS_JOB_MINUTES, "cpu"): "QOSMaxCpuMinutesPerJobLimit",
    (TresLimit.QOS_JOB_MINUTES, "bb"): "AssocMaxBBMinutesPerJob",
    (TresLimit.QOS_USER, "cpu"): "QOSMaxCpuPerUserLimit",
    (TresLimit.QOS_USER, "node"): "QOSMaxNodePerUserLimit",
    (TresLimit.QOS_LEAST, "cpu"): "QOSMinCpuNotSatisfied",
}
_NO_WORD = {
    (limit, kind)
    for limit in (TresLimit.ASSOC_JOB_NODE, TresLimit.QOS_JOB_NODE)
    for kind in ("node", "license")
}


def word(limit: TresLimit, kind: str) -> str:
    """Give the reason of a job that a limit of a kind (``cpu``, ``gres/gpu``, ...) keeps waiting.

    >>> from foretime_sim.sites.slurm.reasons import TresLimit, word
    >>> word(TresLimit.QOS_USER, "cpu"), word(TresLimit.ASSOC_GROUP, "gres/gpu")
    ('QOSMaxCpuPerUserLimit', 'AssocGrpGRES')
    """
    what = kind.split("/", 1)[0]
    if (limit, what) in _EXCEPTIONS:
        return _EXCEPTIONS[limit, what]
    if what == "mem":
        name = "Mem" if limit.name.startswith("ASSOC") else "Memory"
    elif "/" in kind:
        name = _NAMES_BY_TYPE.get(what, "Unknown")
    else:
        name = _NAMES.get(what, "Unknown")
    if (limit, what) in _NO_WORD:
        name = "Unknown"
    return limit.value.format(name)


def in_slurms_order(kinds: Iterable[str]) -> list[str]:
    """Give kinds in the order in which Slurm looks at them; the first that is exceeded is named.

    Kinds that Slurm does not have by itself come by name; in Slurm by the id that they have in its
    database.

    >>> from foretime_sim.sites.slurm.reasons import in_slurms_order
    >>> in_slurms_order({"gres/gpu", "node", "cpu"})
    ['cpu', 'node', 'gres/gpu']
    """
    places = {kind: place for place, kind in enumerate(_FIRST_KINDS)}
    return sorted(kinds, key=lambda kind: (places.get(kind, len(places)), kind))
