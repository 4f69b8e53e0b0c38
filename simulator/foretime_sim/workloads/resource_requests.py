"""What jobs ask of a machine: nodes, tasks, CPUs, memory, GPUs, features, slurm_partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int32Array, Int64Array, MaskedInt64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources, NeverRunsError, Request, fit_request
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import Workload

NUMBERS = {
    "nodes": 1,
    "tasks": 1,
    "cpus_per_task": 1,
    "memory_per_node_mib": 0,
    "memory_per_cpu_mib": 0,
    "gpus_per_node": 0,
    "exclusive": 0,
}
"""The least value of each column of numbers."""

SHOWN_LIMITS = 6
"""How many limits are named when jobs over them are left out."""

_MOST_CODES = 2**62


@dataclass(frozen=True, slots=True)
class FittedRequests:
    """The requests of a workload on its machine: the distinct ones, and which one each job has.

    Attributes
    ----------
    requests
        Distinct requests.
    request_of
        Shape (jobs,): an index into ``requests``, or -1 for a job that can never run.
    reasons
        Why a job can never run, by job.
    limits
        Which limit each of these is over: the reason without the job's own figures.
    """

    requests: tuple[Request, ...]
    request_of: Int32Array
    reasons: dict[int, str]
    limits: dict[int, str]


def with_machine(workload: Workload, machine: Machine, *, leave_out: bool = False) -> Workload:
    """Put a workload on a machine.

    Parameters
    ----------
    workload
        Jobs with or without `ResourceRequests`. A job that names no slurm_partition runs in the
        machine's default; one that names another than the machine has can never run.
    machine
        Takes the place of the flat pool.
    leave_out
        Leave jobs out that could never run on it, and say so in the notes. Slurm holds them for
        ever (EnforcePartLimits=NO), where they are in nobody's way. Otherwise they are refused.

    Raises
    ------
    InputError
        For the first job that could never run (wider than its slurm_partition, over a limit),
        naming job and limit; or if none is left.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
    >>> from foretime_sim.workloads.resource_requests import with_machine
    >>> nodes = (NodeGroup("cpu", nodes=16, cpus=16),)
    >>> machine = Machine(nodes, (SlurmPartition("all", ("cpu",), default=True),))
    >>> placed = with_machine(generate("lublin2003", jobs=100, seed=1), machine)
    >>> placed.machine_processors
    256
    """
    placed = replace(workload, machine=machine, machine_processors=machine.cpus)
    fitted = fit_requests(placed)
    if fitted.reasons:
        job, reason = next(iter(fitted.reasons.items()))
        if not leave_out:
            raise InputError(_refusal(workload, job, reason, len(fitted.reasons)))
        kept = fitted.request_of >= 0
        if not kept.any():
            raise InputError(f"{workload.name}: no job can run on this machine: {reason}")
        placed = replace(placed.take(kept), notes=(*workload.notes, left_out_note(fitted.limits)))
        fitted = fit_requests(placed)
    cpus = np.array([request.cpus for request in fitted.requests], dtype=np.int64)
    return replace(placed, processors=cpus[fitted.request_of])


def left_out_note(limits: Mapping[int, str]) -> str:
    """Say how many jobs were left out by each limit; the counts add up."""
    listed = Counter(limits.values()).most_common()
    told = [f"{jobs:,} {limit}" for limit, jobs in listed[:SHOWN_LIMITS]]
    others = sum(jobs for _, jobs in listed[SHOWN_LIMITS:])
    if others:
        told.append(f"{others:,} for {len(listed) - SHOWN_LIMITS:,} other reasons")
    jobs_left_out = "1 job" if len(limits) == 1 else f"{len(limits):,} jobs"
    return f"{jobs_left_out} left out that could never run on the machine: {'; '.join(told)}."


def fit_requests(
    workload: Workload, reservations: Sequence[NodeReservation] | None = None
) -> FittedRequests:
    """Work out what each job asks for; InputError if the workload has no machine, or a bad value.

    Jobs that ask for the same share one `Request`. With ``reservations`` (those of a site) a job
    that names one is to run in it.
    """
    machine = workload.machine
    if not isinstance(machine, Machine):
        raise InputError(f"{workload.name}: the workload has no machine of nodes")
    asked = workload.requests or ResourceRequests()
    said = workload.site_jobs
    reserved = None if said is None or reservations is None else said.reservations
    columns = [
        workload.processors,
        *(_filled(workload, name, getattr(asked, name), least) for name, least in NUMBERS.items()),
        _codes(workload, asked.slurm_partitions),
        _codes(workload, asked.constraints),
        _codes(workload, reserved),
        _time_classes(workload, machine),
    ]
    first, rows = distinct_rows([np.asarray(column, dtype=np.int64) for column in columns])
    requests: list[Request] = []
    reason_of: dict[int, str] = {}
    limit_of: dict[int, str] = {}
    number_of = np.full(len(first), -1, dtype=np.int32)
    for row in range(len(first)):
        job = int(first[row])
        resources = replace(
            job_resources(workload, job),
            reservation=None if reserved is None else reserved.get(job),
        )
        try:
            request = fit_request(
                machine,
                resources,
                int(workload.processors[job]),
                int(workload.requested_time[job]),
                reservations or (),
            )
        except InputError as error:
            reason_of[row] = str(error)
            limit_of[row] = error.limit if isinstance(error, NeverRunsError) else str(error)
        else:
            number_of[row] = len(requests)
            requests.append(request)
    impossible = np.flatnonzero(number_of[rows] < 0)
    return FittedRequests(
        tuple(requests),
        np.asarray(number_of[rows], dtype=np.int32),
        {int(job): reason_of[int(rows[job])] for job in impossible},
        {int(job): limit_of[int(rows[job])] for job in impossible},
    )


def distinct_rows(columns: Sequence[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """Give the first position of each distinct row, in their order, and of each row which it is.

    A row is one number, as rows are slow to compare: each column's values above its least are a
    digit. Where the digits would not fit, those so far are numbered anew.
    """
    code = np.zeros(len(columns[0]), dtype=np.int64)
    codes = 1
    for column in columns if len(code) else ():
        least = int(column.min())
        span = int(column.max()) - least + 1
        if codes * span > _MOST_CODES:
            values, code = np.unique(code, return_inverse=True)
            codes = len(values)
        if codes * span > _MOST_CODES:
            values, column = np.unique(column, return_inverse=True)
            least, span = 0, len(values)
        code = code * span + (column - least)
        codes *= span
    _, first, rows = np.unique(code, return_index=True, return_inverse=True)
    return first, rows


def job_resources(workload: Workload, job: int) -> JobResources:
    """Give what the job at one position asks for."""
    asked = workload.requests or ResourceRequests()
    given: dict[str, int] = {}
    for name in NUMBERS:
        column: MaskedInt64Array | None = getattr(asked, name)
        if column is not None and not bool(np.ma.getmaskarray(column)[job]):
            given[name] = int(column.data[job])
    names = None if asked.slurm_partitions is None else asked.slurm_partitions.get(job)
    constraint = None if asked.constraints is None else asked.constraints.get(job)
    return JobResources(
        slurm_partitions=None if names is None else tuple(names.split(",")),
        constraint=constraint or "",
        reservation=None,
        node_groups=None,
        exclusive=given.pop("exclusive", 0) > 0,
        **given,
    )


def check_all_fit(workload: Workload, fitted: FittedRequests) -> None:
    """Raise InputError for the first job that can never run."""
    for job, reason in fitted.reasons.items():
        raise InputError(_refusal(workload, job, reason, len(fitted.reasons)))


def _refusal(workload: Workload, job: int, reason: str, count: int) -> str:
    more = f" ({count - 1:,} more could not)" if count > 1 else ""
    return (
        f"{workload.name}: job {workload.job_id[job]} could never run on this machine: {reason}"
        f"{more}; mend the machine's description, or leave such jobs out"
    )


def _filled(
    workload: Workload, name: str, column: MaskedInt64Array | None, least: int
) -> Int64Array:
    """Give a column with -1 for what is missing."""
    if column is None:
        return np.full(len(workload), -1, dtype=np.int64)
    if column.shape != (len(workload),):
        raise InputError(
            f"{workload.name}: {name} has shape {column.shape}: give one for each of the"
            f" {len(workload)} jobs"
        )
    wrong = np.asarray(column.filled(least) < least)
    if wrong.any():
        job = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"{workload.name}: job {workload.job_id[job]}: {name} is {column[job]},"
            f" it must be {least} or more"
        )
    return column.filled(-1)


def _codes(workload: Workload, labels: Labels | None) -> Int32Array:
    return np.full(len(workload), -1, dtype=np.int32) if labels is None else labels.codes


def _time_classes(workload: Workload, machine: Machine) -> Int64Array:
    """Count the time limits that the requested time is above: all that matters of it here."""
    limits = sorted({p.max_time_s for p in machine.slurm_partitions if p.max_time_s is not None})
    return np.searchsorted(np.array(limits, dtype=np.int64), workload.requested_time, side="left")
