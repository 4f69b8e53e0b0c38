"""The jobs of a live run as data, what sbatch is told of them, and the model's columns of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from foretime_estimators.arrays import Int64Array, MaskedInt64Array
from foretime_sim.machines.machine import Machine
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload


@dataclass(frozen=True, slots=True)
class RunJob:
    """One submission; what is ``None`` is not said to sbatch.

    Attributes
    ----------
    submit_s
        Seconds after the run's beginning.
    user, account, qos, slurm_partitions
        Names; of partitions several separated by commas.
    time_limit_min, time_min_min
        ``--time`` and ``--time-min``, minutes.
    runtime_s
        How long its script sleeps; may be longer than its time limit.
    tasks, nodes, cpus_per_task, memory_mib, gpus_per_node, constraint, exclusive
        ``--ntasks``, ``--nodes``, ``--cpus-per-task``, ``--mem``, ``--gres=gpu:N``,
        ``--constraint``, ``--exclusive``.
    tasks_per_node
        ``--ntasks-per-node``.
    nice
        ``--nice``.
    array_tasks, array_most_running
        ``--array=1-TASKS%MOST``; every task is a job of the outcome.
    """

    submit_s: int
    user: str
    time_limit_min: int
    runtime_s: int
    tasks: int = 1
    nodes: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    memory_mib: int | None = None
    gpus_per_node: int | None = None
    constraint: str | None = None
    exclusive: bool = False
    account: str | None = None
    qos: str | None = None
    slurm_partitions: str | None = None
    time_min_min: int | None = None
    nice: int | None = None
    array_tasks: int | None = None
    array_most_running: int | None = None

    def sbatch_options(self) -> list[str]:
        """Give the options that submit it; its script sleeps ``runtime_s``."""
        options = [f"--ntasks={self.tasks}", f"--time={self.time_limit_min}"]
        for option, value in (
            ("nodes", self.nodes),
            ("ntasks-per-node", self.tasks_per_node),
            ("cpus-per-task", self.cpus_per_task),
            ("mem", self.memory_mib),
            ("constraint", self.constraint),
            ("account", self.account),
            ("qos", self.qos),
            ("partition", self.slurm_partitions),
            ("time-min", self.time_min_min),
            ("nice", self.nice),
        ):
            if value is not None:
                options.append(f"--{option}={value}")
        if self.gpus_per_node is not None:
            options.append(f"--gres=gpu:{self.gpus_per_node}")
        if self.exclusive:
            options.append("--exclusive")
        if self.array_tasks is not None:
            most = "" if self.array_most_running is None else f"%{self.array_most_running}"
            options.append(f"--array=1-{self.array_tasks}{most}")
        return options

    def as_json(self) -> dict[str, Any]:
        """Give what differs from the defaults."""
        default = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != default[name]}


def parts_of(jobs: Sequence[RunJob]) -> list[tuple[int, int | None]]:
    """Give the jobs of an outcome in order: position of the submission, and task of an array."""
    return [
        (number, task)
        for number, job in enumerate(jobs)
        for task in (range(1, job.array_tasks + 1) if job.array_tasks else (None,))
    ]


def workload_of(
    name: str,
    machine: Machine,
    jobs: Sequence[RunJob],
    *,
    submit_times: Sequence[int] | None = None,
    runtimes: Sequence[int] | None = None,
    unix_start_time: int | None = None,
) -> tuple[Workload, SiteJobs]:
    """Give jobs as a simulation takes them, those of an array one by one (`parts_of`).

    Parameters
    ----------
    name
        Of the workload.
    machine
        What they run on.
    jobs
        In the order of their submission.
    submit_times, runtimes
        As they came out in a run, of each part, seconds; otherwise as `jobs` has them.
    unix_start_time
        Epoch seconds of the run's beginning.
    """
    parts = parts_of(jobs)
    each = [jobs[number] for number, _ in parts]
    tasks = [job.tasks for job in each]
    asked = ResourceRequests(
        slurm_partitions=_labels([job.slurm_partitions for job in each]),
        nodes=_masked([nodes_of_job(job) for job in each]),
        tasks=_masked(tasks),
        cpus_per_task=_masked([job.cpus_per_task for job in each]),
        memory_per_node_mib=_masked([job.memory_mib for job in each]),
        gpus_per_node=_masked([job.gpus_per_node for job in each]),
        constraints=_labels([job.constraint for job in each]),
        exclusive=_masked([int(job.exclusive) or None for job in each]),
    )
    workload = Workload(
        name=name,
        machine_processors=machine.cpus,
        unix_start_time=unix_start_time,
        job_id=_column(range(1, len(parts) + 1)),
        submit_time=_column(submit_times or [job.submit_s for job in each]),
        processors=_column([job.tasks * (job.cpus_per_task or 1) for job in each]),
        actual_runtime=_column(runtimes or [job.runtime_s for job in each]),
        requested_time=_column([60 * job.time_limit_min for job in each]),
        users=_labels([job.user for job in each]),
        projects=_labels([job.account for job in each]),
        array_ids=_labels([None if task is None else f"array {number}" for number, task in parts]),
        requests=asked,
        machine=machine,
    )
    minutes = [job.time_min_min for job in each]
    return workload, SiteJobs(
        qos=_labels([job.qos for job in each]),
        nice=_masked([job.nice for job in each]),
        time_min_s=_masked([None if least is None else 60 * least for least in minutes]),
        array_most_running=_masked([job.array_most_running for job in each]),
    )


def nodes_of_job(job: RunJob) -> int | None:
    """Give the nodes that a job asks for; ``None``: any number."""
    if job.nodes is None and job.tasks_per_node is not None:
        return -(-job.tasks // job.tasks_per_node)
    return job.nodes


def _column(values: Any) -> Int64Array:
    return np.array(list(values), dtype=np.int64)


def _masked(values: Sequence[int | None]) -> MaskedInt64Array | None:
    missing = [value is None for value in values]
    if all(missing):
        return None
    return np.ma.array([value or 0 for value in values], mask=missing, dtype=np.int64)


def _labels(values: Sequence[str | None]) -> Labels | None:
    names = tuple(dict.fromkeys(value for value in values if value is not None))
    if not names:
        return None
    codes = [-1 if value is None else names.index(value) for value in values]
    return Labels(np.array(codes, dtype=np.int32), names)
