"""Pure parsers of what Slurm's commands print.

Written for and tested on the replies of 22.05, where a number is plain, ``null`` if unset; from
23.02 on numbers are objects (``set``, ``infinite``, ``number``) and from 23.11 on states are lists:
both forms are read.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.clients.array_indices import count_indices, index_ranges
from foretime_sidecar.clients.client import (
    UNLIMITED_S,
    FinishedRecord,
    QueuedJob,
    QueueState,
)
from foretime_sidecar.clients.cluster import HeldNode
from foretime_sidecar.clients.slurm.nodes import NODE_FIELDS, asked_nodes, held_nodes
from foretime_sidecar.clients.slurm.numbers import number

logger = logging.getLogger("foretime")

Json = Mapping[str, Any]

OPT_OUT = "foretime:off"  # in a job's comment
_MOST_NAMED = 10  # jobs in one line of the log

# How a job that did start ended; one that never started is NEVER_STARTED in any state.
ENDINGS = {
    "COMPLETED": Ending.COMPLETED,
    "FAILED": Ending.FAILED,
    "OUT_OF_MEMORY": Ending.OUT_OF_MEMORY,
    "TIMEOUT": Ending.TIMED_OUT,
    "CANCELLED": Ending.CANCELLED,
    "DEADLINE": Ending.CANCELLED,  # cut by the clock, not by its limit: it would have run longer
    "NODE_FAIL": Ending.NODE_FAILED,
    "BOOT_FAIL": Ending.NODE_FAILED,
    "PREEMPTED": Ending.PREEMPTED,
    "REQUEUED": Ending.REQUEUED,
    "REVOKED": Ending.REQUEUED,  # runs on another cluster of the federation
}

QUEUE_STATES = {
    "PENDING": QueueState.PENDING,
    "RUNNING": QueueState.RUNNING,
    "CONFIGURING": QueueState.RUNNING,
    "SUSPENDED": QueueState.SUSPENDED,
    # Before 23.11 these stand alone, in the place of what the job does besides.
    "STOPPED": QueueState.RUNNING,
    "SIGNALING": QueueState.RUNNING,
    "RESIZING": QueueState.RUNNING,
    "REQUEUE_HOLD": QueueState.PENDING,
    "SPECIAL_EXIT": QueueState.PENDING,
    "RESV_DEL_HOLD": QueueState.PENDING,
}


def _whole(value: object, name: str) -> int:
    """Give a number that must be there, 0 if unset."""
    if value is not None and not isinstance(value, int | Mapping):
        raise TypeError(f"{name} is {value!r}")
    return number(value) or 0


def _text(value: object) -> str | None:
    """Give a text, ``None`` if it is empty or unset."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value or None


def _state(value: object) -> str:
    if isinstance(value, list):
        return str(value[0]) if value else ""
    return str(value)


def _end_state(value: object) -> str:
    """Give how a job ended; 26.05 says of a requeued one's earlier run PENDING, REQUEUED."""
    if isinstance(value, list):
        return next((str(state) for state in value if state in ENDINGS), _state(value))
    return _state(value)


# ESLURM_REST_EMPTY_RESULT: sacct found no job, which is an answer.
_NOTHING_FOUND = 9003


def _jobs(reply: object, command: str) -> Iterable[Json]:
    errors = reply.get("errors") if isinstance(reply, Mapping) else None
    for error in errors or ():
        if not isinstance(error, Mapping) or error.get("error_number") != _NOTHING_FOUND:
            raise SchedulerError(
                f"{command} reported an error: {error}; check slurmctld and slurmdbd"
            )
    if not isinstance(reply, Mapping) or not isinstance(reply.get("jobs"), list):
        raise SchedulerError(
            f"{command} answered without a list of jobs; Foretime needs Slurm 22.05 or "
            "newer with its JSON serializer (package slurm-wlm, or slurm built --with-json)"
        )
    jobs: list[Json] = reply["jobs"]
    return jobs


def parse_finished(reply: object, command: str = "sacct --json") -> list[FinishedRecord]:
    """Read a reply of ``sacct --json`` or slurmrestd: the finished jobs that had a limit, by end.

    Jobs still pending or running are left out, and so are those without a time limit, which have
    no accuracy. One whose names are no text that UTF-8 can write is dropped, too, and the log
    says so. Processors are those allocated, or asked for by a job that never started.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of Slurm's.
    """
    records = []
    dropped = []
    try:
        for job in _jobs(reply, command):
            record = _finished(job)
            if record is None:
                continue
            if _is_text(record):
                records.append(record)
            else:
                dropped.append(record.job.request.job_id)
    except (KeyError, TypeError, IndexError) as error:
        raise SchedulerError(
            f"{command} answered a job in an unknown shape ({type(error).__name__}: {error}); "
            "Foretime knows the JSON of Slurm 22.05 and newer"
        ) from error
    if dropped:
        logger.warning(
            "sacct: %d finished jobs dropped, as their user, account, partition or comment "
            "is no text: job %s",
            len(dropped),
            ", ".join(dropped[:_MOST_NAMED]) + (" and more" if dropped[_MOST_NAMED:] else ""),
        )
    records.sort(key=_end_time)
    return records


def _is_text(record: FinishedRecord) -> bool:
    """Say whether UTF-8 can write its names: JSON can spell half of a surrogate pair."""
    request = record.job.request
    names = (request.user, request.project, request.queue, record.admin_comment)
    try:
        "".join(filter(None, names)).encode()
    except UnicodeEncodeError:
        return False
    return True


def _end_time(record: FinishedRecord) -> int:
    return record.job.end_time


def _finished(job: Json) -> FinishedRecord | None:
    state = _end_state(job["state"]["current"])
    ending = ENDINGS.get(state)
    if ending is None:
        return None
    time = job["time"]
    end_time = _whole(time["end"], "end")
    limit_min = number(time["limit"])
    if not end_time or not limit_min:
        return None
    start_time = _whole(time["start"], "start") or None
    runtime = 0
    if start_time is not None:
        runtime = max(end_time - start_time - _whole(time["suspended"], "suspended"), 0)
    if start_time is None or (runtime == 0 and not _allocated(job)):
        start_time, runtime, ending = None, 0, Ending.NEVER_STARTED
    association = job["association"]
    array = job["array"]
    array_job = _whole(array["job_id"], "array job_id") or None
    job_id = str(_whole(job["job_id"], "job_id"))
    if array_job is not None:
        task = number(array["task_id"])
        if task is not None:
            job_id = f"{array_job}_{task}"
    request = JobRequest(
        job_id,
        # 26.05 leaves the association's own names empty.
        _text(association["user"]) or _text(job["user"]),
        _text(association["account"]) or _text(job["account"]),
        _allocated(job) or number(job["required"]["CPUs"]) or 1,
        limit_min * MINUTE_S,
        _whole(time["submission"], "submission"),
        _text(job["partition"]),
        None if array_job is None else str(array_job),
    )
    return FinishedRecord(
        FinishedJob(request, start_time, end_time, runtime, ending),
        _whole(time["eligible"], "eligible") or None,
        state,
        _text(job["comment"]["administrator"]) or "",
    )


def _allocated(job: Json) -> int:
    """Give the processors allocated, 0 if none ever were."""
    for resource in job["tres"]["allocated"]:
        if resource["type"] == "cpu":
            return _whole(resource["count"], "count")
    return 0


def parse_queue(
    reply: object, command: str = "squeue --json", known: KnownJobs | None = None
) -> tuple[QueuedJob, ...]:
    """Read a reply of ``squeue --json`` or slurmrestd: what runs, is suspended or waits.

    They come by submission. Finished jobs that the controller still remembers are left out, and so
    are the completing ones.

    Parameters
    ----------
    reply
        As decoded.
    command
        What gave it, for errors.
    known
        The jobs of the reply before; what is told of them as then is not read again.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of Slurm's.
    """
    try:
        queued = (known or KnownJobs()).read(_jobs(reply, command))
    except (KeyError, TypeError, IndexError) as error:
        raise SchedulerError(
            f"{command} answered a job in an unknown shape ({type(error).__name__}: {error}); "
            "Foretime knows the JSON of Slurm 22.05 and newer"
        ) from error
    queued.sort(key=lambda job: job.request.submit_time)
    return tuple(queued)


_OWN_FIELDS = (
    "account", "accrue_time", "admin_comment", "array_job_id", "array_max_tasks", "array_task_id",
    "array_task_string", "comment", "cpus", "deadline", "dependency", "eligible_time", "het_job_id",
    "job_id", "job_state", "licenses", "name", "nice", "partition", "pre_sus_time", "priority",
    "qos", "resv_name", "start_time", "state_reason", "submit_time", "suspend_time", "time_limit",
    "time_minimum", "user_name",
)  # fmt: skip
"""What `_queued` reads of a job, besides `NODE_FIELDS`."""


class KnownJobs:
    """The jobs of the last reply: one of which the same is told is the same object again.

    Most jobs of a queue are told word for word from look to look, and to read one takes far longer
    than to compare it. Only the fields that are read are kept.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[Json, Json, QueuedJob | None]] = {}

    def read(self, jobs: Iterable[Json]) -> list[QueuedJob]:
        """Give the jobs that run, are suspended or wait, in the order of the reply."""
        queued: list[QueuedJob] = []
        found: dict[str, tuple[Json, Json, QueuedJob | None]] = {}
        for job in jobs:
            own = {name: job[name] for name in _OWN_FIELDS if name in job}
            nodes = {name: job[name] for name in NODE_FIELDS if name in job}
            name = str(own.get("job_id"))
            known = self._jobs.get(name)
            if known is None or known[0] != own or known[1] != nodes:
                same = known[2] if known is not None and known[1] == nodes else None
                known = own, nodes, _queued(own, nodes, same)
            found[name] = known
            if known[2] is not None:
                queued.append(known[2])
        self._jobs = found
        return queued


def _queued(job: Json, nodes: Json, same_nodes: QueuedJob | None) -> QueuedJob | None:
    """Read one job: its own fields, those of its nodes, and who had the same nodes before."""
    state = QUEUE_STATES.get(_state(job["job_state"]))
    if state is None:
        return None
    array_job = number(job["array_job_id"]) or None
    task = number(job["array_task_id"])
    job_id = str(_whole(job["job_id"], "job_id"))
    tasks, pending = 1, ""
    if array_job is not None:
        if task is not None:
            job_id = f"{array_job}_{task}"
        else:
            expression = _text(job["array_task_string"]) or ""
            tasks, pending = count_tasks(expression), pending_tasks(expression)
    limit_min = number(job["time_limit"])
    reason = _text(job["state_reason"]) or ""
    request = JobRequest(
        job_id,
        _text(job["user_name"]),
        _text(job["account"]),
        max(number(job["cpus"]) or 1, 1),
        limit_min * MINUTE_S if limit_min else UNLIMITED_S,
        number(job["submit_time"]) or 0,
        _text(job["partition"]),
        None if array_job is None else str(array_job),
    )
    running = state is not QueueState.PENDING
    time_min = number(job["time_minimum"])
    return QueuedJob(
        request,
        state,
        tasks,
        pending,
        start_time=number(job["start_time"]) or None,
        eligible_time=number(job["eligible_time"]) or None,
        time_min=time_min * MINUTE_S if time_min else None,
        suspended_time=_suspended(job) if running else 0,
        held=not running and (reason.startswith("JobHeld") or number(job["priority"]) == 0),
        dependent=reason.startswith("Dependency") or bool(job["dependency"]),
        deadline=bool(number(job["deadline"])),
        heterogeneous=bool(number(job["het_job_id"])),
        opted_out=OPT_OUT in (_text(job["comment"]) or ""),
        reason="" if reason == "None" else reason,
        qos=_text(job["qos"]),
        reservation=_text(job["resv_name"]),
        admin_comment=_text(job["admin_comment"]) or "",
        priority=number(job["priority"]) or 0,
        name=_text(job.get("name")) or "",
        dependency=_text(job["dependency"]) or "",
        array_limit=number(job.get("array_max_tasks")) or None,
        asked=asked_nodes(nodes) if same_nodes is None else same_nodes.asked,
        has_nodes=_held(nodes, same_nodes) if running else (),
        nice=_nice(number(job.get("nice")) or 0),
        licenses=_text(job.get("licenses")) or "",
        ages_since=number(job.get("accrue_time")),
    )


def _held(nodes: Json, same_nodes: QueuedJob | None) -> tuple[HeldNode, ...]:
    if same_nodes is not None and same_nodes.state is not QueueState.PENDING:
        return same_nodes.has_nodes
    return held_nodes(nodes)


def _nice(value: int) -> int:
    """Give --nice; some releases print it as slurmctld keeps it (NICE_OFFSET, slurm.h)."""
    return value - 0x80000000 if value >= 0x40000000 else value


def _suspended(job: Json) -> int:
    """Seconds between start and the last suspension that the job did not run."""
    start, suspended_at = number(job["start_time"]) or 0, number(job["suspend_time"]) or 0
    if not start or suspended_at <= start:
        return 0
    return max(suspended_at - start - (number(job["pre_sus_time"]) or 0), 0)


def count_tasks(expression: str) -> int:
    """Count the tasks of an array expression such as "1-5,8,10-20:2%2"; at least 1."""
    return max(count_indices(expression.partition("%")[0]), 1)


def pending_tasks(expression: str) -> str:
    """Give an array expression without its throttle; "" if Slurm has cut it short."""
    tasks = expression.partition("%")[0]
    return "" if None in index_ranges(tasks) else tasks
