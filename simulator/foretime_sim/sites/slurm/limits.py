"""Limits of QOS and associations, as ``sacctmgr`` names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Tres: TypeAlias = Mapping[str, int]
"""Counts by kind: ``cpu``, ``mem`` (MiB), ``node``, ``billing``, ``gres/gpu``, ``license/NAME``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a QOS or an association allows; ``None``, or a kind that is missing: no limit.

    The limits of a group count all jobs of the QOS, or of the association and those below it.

    Attributes
    ----------
    grp_jobs, grp_submit_jobs
        Running jobs, and jobs in all, of the group (GrpJobs, GrpSubmitJobs).
    grp_tres, grp_tres_mins, grp_tres_run_mins
        Of the group: in use, used in all (decayed), and left to use by what runs (GrpTRES,
        GrpTRESMins, GrpTRESRunMins); minutes.
    grp_wall_s
        Wall time used by the group (GrpWall), seconds.
    max_jobs, max_submit_jobs
        Of each user: of an association its own (MaxJobs, MaxSubmitJobs), of a QOS those of a user
        (MaxJobsPerUser, MaxSubmitJobsPerUser).
    max_jobs_per_account, max_submit_jobs_per_account
        Of a QOS (MaxJobsPerAccount, MaxSubmitJobsPerAccount).
    max_tres_per_job, max_tres_per_node, max_tres_mins_per_job
        Of one job (MaxTRESPerJob, MaxTRESPerNode, MaxTRESMinsPerJob); minutes.
    max_tres_per_user, max_tres_per_account
        Of a QOS: in use (MaxTRESPerUser, MaxTRESPerAccount).
    max_tres_run_mins_per_user, max_tres_run_mins_per_account
        Of a QOS (MaxTRESRunMinsPerUser, MaxTRESRunMinsPerAccount); minutes.
    max_wall_s
        Longest time limit of a job (MaxWall), seconds.
    min_tres_per_job
        Of a QOS: least of one job (MinTRESPerJob).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.limits import Limits
    >>> Limits(max_jobs=4, max_tres_per_user={"cpu": 512}).max_tres_per_user["cpu"]
    512
    """

    grp_jobs: int | None = None
    grp_submit_jobs: int | None = None
    grp_tres: Tres = field(default_factory=dict)
    grp_tres_mins: Tres = field(default_factory=dict)
    grp_tres_run_mins: Tres = field(default_factory=dict)
    grp_wall_s: int | None = None
    max_jobs: int | None = None
    max_submit_jobs: int | None = None
    max_jobs_per_account: int | None = None
    max_submit_jobs_per_account: int | None = None
    max_tres_per_job: Tres = field(default_factory=dict)
    max_tres_per_node: Tres = field(default_factory=dict)
    max_tres_mins_per_job: Tres = field(default_factory=dict)
    max_tres_per_user: Tres = field(default_factory=dict)
    max_tres_per_account: Tres = field(default_factory=dict)
    max_tres_run_mins_per_user: Tres = field(default_factory=dict)
    max_tres_run_mins_per_account: Tres = field(default_factory=dict)
    max_wall_s: int | None = None
    min_tres_per_job: Tres = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Qos:
    """A QOS.

    Attributes
    ----------
    name
        As jobs call it (``--qos``).
    priority
        Weighed against that of the others (Priority).
    limits
        See `Limits`.
    flags
        As ``sacctmgr`` has them: ``DenyOnLimit``, ``NoReserve``, ``OverPartQOS``, ...
    usage_factor
        What usage under it is charged with (UsageFactor).
    preempt
        Names of QOS whose jobs its jobs may preempt.
    preempt_mode
        ``None``: that of the cluster.
    grace_time_s
        GraceTime of its jobs, once they are preempted.
    limit_factor
        What its jobs' associations' GrpTRES and MaxTRES are multiplied by (LimitFactor).
    preempt_exempt_time_s
        How long its jobs run before they may be preempted (PreemptExemptTime); ``None``: that of
        the cluster.
    used_tres_s, used_wall_s
        What its jobs have used, in TRES-seconds by kind and seconds, decayed as of
        `SlurmSite.usage_at` (``scontrol show assoc_mgr`` has minutes in brackets).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.limits import Limits, Qos
    >>> short = Qos("short", priority=100, limits=Limits(max_wall_s=14_400))
    >>> short.name, short.limits.max_wall_s
    ('short', 14400)
    """

    name: str
    priority: int = 0
    limits: Limits = field(default_factory=Limits)
    flags: frozenset[str] = frozenset()
    usage_factor: float = 1.0
    preempt: tuple[str, ...] = ()
    preempt_mode: str | None = None
    grace_time_s: int = 0
    limit_factor: float | None = None
    preempt_exempt_time_s: int | None = None
    used_tres_s: Mapping[str, float] = field(default_factory=dict)
    used_wall_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Association:
    """An account, or a user in an account (perhaps in one partition only).

    Attributes
    ----------
    account
        Name of the account; ``root`` is above all.
    user, slurm_partition
        ``None`` for the account itself, and for all partitions.
    parent
        Of an account: the account above it; ``None`` of ``root``, and of a user.
    shares
        Fairshare; ``None`` for ``parent``: its users stand in the parent's account.
    raw_usage
        What has been used, in billing seconds, decayed as of `SlurmSite.usage_at`
        (``sshare -l``'s RawUsage); of an account with all below it.
    limits
        See `Limits`.
    qos, default_qos
        Allowed to its jobs, and taken by those that name none.
    default
        Whether it is the account of those of its user's jobs that name none.
    priority
        Weighed by PriorityWeightAssoc against that of the others (Priority).
    used_tres_s, used_wall_s
        What has been used, in TRES-seconds by kind and seconds, decayed as of
        `SlurmSite.usage_at`; of an account with all below it.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.limits import Association
    >>> ann = Association("physics", user="ann", shares=10, raw_usage=3600.0)
    >>> ann.account, ann.user, ann.shares
    ('physics', 'ann', 10)
    """

    account: str
    user: str | None = None
    slurm_partition: str | None = None
    parent: str | None = None
    shares: int | None = 1
    raw_usage: float = 0.0
    limits: Limits = field(default_factory=Limits)
    qos: tuple[str, ...] = ()
    default_qos: str | None = None
    default: bool = False
    priority: int = 0
    used_tres_s: Mapping[str, float] = field(default_factory=dict)
    used_wall_s: float = 0.0
