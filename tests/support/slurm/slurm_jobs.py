"""Small workloads for Slurm, written job by job, and small sites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True)
class Asked:
    """A job; ``None`` where it says nothing. Times are seconds."""

    submit: int
    runtime: int
    limit: int
    tasks: int = 1
    nodes: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    gpus_per_node: int | None = None
    exclusive: int | None = None
    slurm_partitions: str | None = None
    constraints: str | None = None
    array_ids: str | None = None
    users: str | None = None
    nice: int | None = None
    time_min_s: int | None = None
    begin_time: int | None = None
    reservations: str | None = None
    licenses: str | None = None
    array_most_running: int | None = None
    after: int | None = None
    after_what: int | None = None


def numbers(values: Sequence[int | None]) -> np.ma.MaskedArray | None:
    """A column; ``None`` where no job says anything."""
    if all(value is None for value in values):
        return None
    return np.ma.array(
        [0 if value is None else value for value in values],
        mask=[value is None for value in values],
        dtype=np.int64,
    )


def names(values: Sequence[str | None]) -> Labels | None:
    """A column of names; ``None`` where no job has one."""
    known = [value for value in dict.fromkeys(values) if value is not None]
    codes = [-1 if value is None else known.index(value) for value in values]
    return Labels(np.array(codes, dtype=np.int32), tuple(known)) if known else None


def workload_of(jobs: Sequence[Asked]) -> tuple[Workload, SiteJobs]:
    """The same jobs as columns."""

    def column(name: str) -> list[int]:
        return [getattr(job, name) for job in jobs]

    def asked(kind: type[ResourceRequests] | type[SiteJobs]) -> dict[str, object]:
        columns: dict[str, object] = {}
        for name in {field.name for field in fields(kind)} & {f.name for f in fields(Asked)}:
            values = [getattr(job, name) for job in jobs]
            words = any(isinstance(value, str) for value in values)
            columns[name] = names(values) if words else numbers(values)
        return columns

    workload = Workload(
        name="written",
        machine_processors=1,
        unix_start_time=0,
        job_id=np.arange(1, len(jobs) + 1),
        submit_time=np.array(column("submit"), dtype=np.int64),
        processors=np.array([job.tasks * (job.cpus_per_task or 1) for job in jobs], dtype=np.int64),
        actual_runtime=np.array(column("runtime"), dtype=np.int64),
        requested_time=np.array(column("limit"), dtype=np.int64),
        users=names([job.users for job in jobs]),
        array_ids=names([job.array_ids for job in jobs]),
        requests=ResourceRequests(**asked(ResourceRequests)),  # type: ignore[arg-type]
    )
    return workload, SiteJobs(**asked(SiteJobs))  # type: ignore[arg-type]


def site_of(
    *groups: NodeGroup,
    parts: Sequence[SlurmPartition] = (),
    rules: dict[str, PartitionRules] | None = None,
    version: tuple[int, int] = (22, 5),
    reservations: Sequence[NodeReservation] = (),
    licenses: dict[str, int] | None = None,
    **parameters: int | bool,
) -> SlurmSite:
    """A site; without slurm_partitions one over all nodes.

    By default of 22.05, with priority/basic, and without batch_sched_delay: the main loop runs in
    the second in which anything happens.
    """
    everything = SlurmPartition("all", tuple(group.name for group in groups), default=True)
    return SlurmSite(
        Machine(tuple(groups), tuple(parts) or (everything,)),
        version=version,
        parameters=SlurmParameters(**{"batch_sched_delay": 0} | parameters),  # type: ignore[arg-type]
        rules=rules or {},
        reservations=tuple(reservations),
        licenses=licenses or {},
        priority=SlurmPriority(multifactor=False),
    )
