"""What the mock Slurm's commands print, in the words of Slurm 22.05."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.mock_scheduler import Phase
from foretime_sim.mocks.slurm.hook import Value
from foretime_sim.mocks.slurm.slurm_job import SlurmJob, SlurmSetup

DEFAULT_PARTITION = "main"
SITE_FACTORS = "--format=%i|%S|%Y|%A %B %F %J %N %P %Q %T"
_INFINITE = 4294967295
_BASE_PRIORITY = 1000


def listed(jobs: list[dict[str, Any]]) -> dict[str, Any]:
    """Give what ``--json`` prints around jobs."""
    return {"meta": {}, "errors": [], "jobs": jobs}


def configuration(setup: SlurmSetup) -> str:
    """Give what ``scontrol show config`` says, as far as a client looks at it."""
    parameters = ["bf_continue"]
    if setup.soft_limit_parameter:
        parameters.append("time_min_as_soft_limit")
    prolog = "(null)"
    if setup.mechanism is Mechanism.REWRITE_LIMIT:
        prolog = "/etc/slurm/prolog_slurmctld"
    return (
        "Configuration data as of the replay\n"
        "ClusterName             = replay\n"
        "EnforcePartLimits       = ALL\n"
        f"PrologSlurmctld         = {prolog}\n"
        "PrioritySiteFactorPlugin = (null)\n"
        "PriorityType            = priority/multifactor\n"
        f"PrivateData             = {setup.private_data or 'none'}\n"
        f"PriorityWeightQOS       = {setup.qos_weight}\n"
        f"SchedulerParameters     = {','.join(parameters)}\n"
        "SchedulerType           = sched/backfill\n"
        "SLURM_VERSION           = 23.11.10\n"
    )


def partitions(records: Mapping[str, Mapping[str, Value]]) -> str:
    """Give every slurm_partition as ``scontrol show partition --oneliner`` does."""
    lines = []
    for name, record in records.items():
        longest = int(record["max_time"])
        shown = "UNLIMITED" if longest >= _INFINITE else f"{longest}:00"
        lines.append(f"PartitionName={name} QoS=N/A MaxTime={shown} Nodes=n1 State=UP\n")
    return "".join(lines)


def node(processors: int, names: Iterable[str]) -> str:
    """Give the pool as ``scontrol show node --oneliner`` does: one node with all processors."""
    return (
        f"NodeName=n1 Arch=x86_64 CPUAlloc=0 CPUEfctv={processors} CPUTot={processors}"
        " AvailableFeatures=(null) ActiveFeatures=(null) Gres=(null) RealMemory=1 State=IDLE"
        f" Weight=1 Partitions={','.join(names)}\n"
    )


def reservations(claims: Sequence[AdvanceReservation], now: int) -> str:
    """Give those reservations that have not ended, as ``--oneliner`` with epoch seconds does."""
    lines = [
        f"ReservationName=reserved{number} StartTime={claim.start} EndTime={claim.end}"
        f" PartitionName=(null) Flags=MAINT TRES=cpu={claim.processors} State="
        f"{'ACTIVE' if claim.start <= now else 'INACTIVE'}\n"
        for number, claim in enumerate(claims)
        if claim.end > now
    ]
    return "".join(lines) or "No reservations in the system\n"


def queued(job_id: int, job: SlurmJob) -> dict[str, Any]:
    """Give a pending or running job as ``squeue --json`` does."""
    running = job.phase is Phase.RUNNING
    array_id = job.submission.array_id
    return {
        "account": job.submission.account or "",
        "admin_comment": job.admin_comment,
        "array_job_id": array_id or 0,
        "array_task_id": job_id if array_id else None,
        "array_task_string": "",
        "comment": job.comment,
        "cpus": job.submission.processors,
        "deadline": 0,
        "dependency": "",
        "eligible_time": job.submit_time,
        "het_job_id": 0,
        "job_id": job_id,
        "job_resources": _resources(job.submission.processors) if running else {},
        "job_state": job.state,
        "partition": job.submission.slurm_partition or DEFAULT_PARTITION,
        "pre_sus_time": 0,
        "priority": _BASE_PRIORITY + job.site_factor,
        "qos": (job.submission.said and job.submission.said.qos) or "normal",
        "resv_name": "",
        "start_time": job.start_time if running else 0,
        "state_reason": "None" if running else "Resources",
        "submit_time": job.submit_time,
        "suspend_time": 0,
        "time_limit": job.time_limit_min,
        "time_minimum": job.time_min_min,
        "user_name": job.submission.user or "",
    }


def _resources(processors: int) -> dict[str, Any]:
    """Give what a job has of the one node, as 23.11 and newer do: 22.05 tells core by core."""
    allocation = {"name": "n1", "cpus": {"count": processors}, "memory": {"allocated": 0}}
    return {"nodes": {"count": 1, "list": "n1", "allocation": [allocation]}}


# A controller that has next to nothing to do, in the words of sdiag.
STATISTICS = """\
Server thread count:  1
Agent queue size:     0
DBD Agent queue size: 0

Main schedule statistics (microseconds):
	Last cycle:   14
"""


def site_factors(jobs: Iterable[tuple[int, SlurmJob]]) -> str:
    """Give what ``sprio --noheader`` says in that form; an array has one line."""
    lines = {
        job.submission.array_id or job_id: job.site_factor
        for job_id, job in jobs
        if job.phase is Phase.WAITING
    }
    return "".join(
        f"{name}|{factor}|{_BASE_PRIORITY + factor}|0 0 0 0 0 {_BASE_PRIORITY} 0 \n"
        for name, factor in lines.items()
    )


def span(options: Sequence[str], now: int) -> tuple[int, int]:
    """Give from when until when ``sacct`` is asked, epoch seconds."""
    since, until = 0, now
    for option in options:
        if option.startswith("--starttime=uts"):
            since = int(option.removeprefix("--starttime=uts"))
        elif option.startswith("--endtime=uts"):
            until = int(option.removeprefix("--endtime=uts"))
    return since, until


def accounted(job_id: int, job: SlurmJob) -> dict[str, Any]:
    """Give a job that ended as ``sacct --json`` does."""
    submission = job.submission
    array_id = submission.array_id
    started = job.start_time > 0 or job.state != "CANCELLED"
    return {
        "account": submission.account or "",
        "array": {
            "job_id": array_id or 0,
            "task_id": job_id if array_id else None,
        },
        "association": {"account": submission.account or "", "user": submission.user or ""},
        "comment": {"administrator": job.admin_comment, "job": job.comment},
        "job_id": job_id,
        "partition": submission.slurm_partition or DEFAULT_PARTITION,
        "required": {"CPUs": submission.processors},
        "state": {"current": job.state, "reason": "None"},
        "time": {
            "elapsed": job.end_time - job.start_time if started else 0,
            "eligible": job.submit_time,
            "end": job.end_time,
            "limit": job.time_limit_min,
            "start": job.start_time if started else None,
            "submission": job.submit_time,
            "suspended": 0,
        },
        "tres": {"allocated": [{"type": "cpu", "count": submission.processors}] if started else []},
        "user": submission.user or "",
    }
