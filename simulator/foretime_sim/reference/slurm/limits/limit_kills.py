"""Which running jobs a limit ends.

Source: acct_policy_job_time_out and _qos_job_time_out (src/slurmctld/acct_policy.c, 22.05.8 and
25.11.7). Without ``safe`` in AccountingStorageEnforce a group's minutes may run out under its jobs.
"""

from __future__ import annotations

from foretime_sim.reference.slurm.limits.limit_checks import Imposed, PolicyCase
from foretime_sim.reference.slurm.limits.limit_counts import Group
from foretime_sim.sites.slurm.limits import Limits, Tres


def ends_jobs(limits: Limits) -> bool:
    """Say whether a group's limits may end running jobs."""
    return bool(
        limits.grp_tres_mins or limits.max_tres_mins_per_job or limits.grp_wall_s is not None
    )


def is_killed(case: PolicyCase, tres: Tres, ran: int) -> bool:
    """Say whether a job that has run for so many whole minutes is ended.

    Parameters
    ----------
    tres
        What it has, by kind.
    """
    imposed = Imposed()
    for qos in case.qos:
        if _used_up(qos, tres, imposed, of_qos=True):
            return True
        if _job_used_up(qos, tres, ran, imposed, of_qos=True):
            return True
    for level, group in enumerate(case.line):
        if level and level == len(case.line) - 1:
            break  # root's limits end no job
        if _used_up(group, tres, imposed, of_qos=False):
            return True
        # Here Slurm leaves out what a job has had of nodes.
        without_nodes = {kind: count for kind, count in tres.items() if kind != "node"}
        if _job_used_up(group, without_nodes, ran, imposed, of_qos=False):
            return True
    return False


def _used_up(group: Group, tres: Tres, imposed: Imposed, *, of_qos: bool) -> bool:
    """Say whether a group has used up what all its jobs may use."""
    for kind, most in group.limits.grp_tres_mins.items():
        if imposed.has("grp_tres_mins", kind):
            continue
        if of_qos:
            imposed.add("grp_tres_mins", kind)
        if tres.get(kind, 0) and group.used_minutes(kind) >= most:
            return True
    wall = group.limits.grp_wall_s
    if wall is None or imposed.has("grp_wall_s"):
        return False
    if of_qos:
        imposed.add("grp_wall_s")
    return int(group.used_wall_s / 60.0) >= wall // 60


def _job_used_up(group: Group, tres: Tres, ran: int, imposed: Imposed, *, of_qos: bool) -> bool:
    """Say whether a job has used up what each may use; Slurm adds 1 and asks for more."""
    for kind, most in group.limits.max_tres_mins_per_job.items():
        if imposed.has("max_tres_mins_per_job", kind):
            continue
        if of_qos:
            imposed.add("max_tres_mins_per_job", kind)
        if tres.get(kind, 0) and ran * tres[kind] + 1 > most:
            return True
    return False
