"""What jobs ask of a machine of nodes, as a log has it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from foretime_estimators.arrays import MaskedInt64Array
from foretime_estimators.arrays import Selection as Jobs

from foretime_sim.workloads.labels import Labels


@dataclass(frozen=True, slots=True)
class ResourceRequests:
    """What each job of a log or workload asks for, one column each; ``None`` where none says.

    Every column has shape (jobs,), masked where the job says nothing. Names are those of sbatch.

    Attributes
    ----------
    slurm_partitions
        Names, several separated by commas (``--partition a,b``). A job that names none goes to
        the machine's default.
    nodes
        Exact number of nodes (``--nodes``), tasks spread evenly. If missing, as few nodes as the
        tasks need.
    tasks
        Number of tasks (``--ntasks``). If missing, as many as the job's processors make.
    cpus_per_task
        If missing, 1.
    memory_per_node_mib, memory_per_cpu_mib
        ``--mem`` and ``--mem-per-cpu``; where a job has both, the first. If both are missing, the
        slurm_partition's default.
    gpus_per_node
        ``--gpus-per-node`` or ``--gres=gpu:n``. If missing, none.
    constraints
        Features that a node must have, joined by ``&`` (``--constraint``).
    exclusive
        1 for whole nodes (``--exclusive``).

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim.workloads.resource_columns import ResourceRequests
    >>> asked = ResourceRequests(gpus_per_node=np.ma.array([2, 0], mask=[False, True]))
    >>> asked.gpus_per_node.tolist()
    [2, None]
    """

    slurm_partitions: Labels | None = None
    nodes: MaskedInt64Array | None = None
    tasks: MaskedInt64Array | None = None
    cpus_per_task: MaskedInt64Array | None = None
    memory_per_node_mib: MaskedInt64Array | None = None
    memory_per_cpu_mib: MaskedInt64Array | None = None
    gpus_per_node: MaskedInt64Array | None = None
    constraints: Labels | None = None
    exclusive: MaskedInt64Array | None = None

    def take(self, jobs: Jobs) -> ResourceRequests:
        """Give the requests of a selection of jobs (indices or a boolean mask)."""
        columns: dict[str, Any] = {}
        for name in (column.name for column in fields(self)):
            column = getattr(self, name)
            if isinstance(column, Labels):
                columns[name] = column.take(jobs)
            elif column is not None:
                columns[name] = column[jobs]
        return replace(self, **columns)
