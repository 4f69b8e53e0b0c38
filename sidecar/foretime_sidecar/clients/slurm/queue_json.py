"""Pure parser of what ``squeue --json`` and slurmrestd tell of the queue.

Of some 150 fields of a job about 50 are read. So of a text these alone are decoded, and only where
they are not what they were in the reply before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import islice
from types import GenericAlias
from typing import Any, TypeAlias

import msgspec
import pydantic_core
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.clients.array_indices import count_indices, index_ranges
from foretime_sidecar.clients.client import UNLIMITED_S, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import AskedNodes, HeldNode
from foretime_sidecar.clients.slurm.json import (
    Json,
    decoded,
    listed_jobs,
    state_of,
    text_of,
    whole,
)
from foretime_sidecar.clients.slurm.nodes import NODE_FIELDS, asked_nodes, held_nodes
from foretime_sidecar.clients.slurm.numbers import number

OPT_OUT = "foretime:off"  # in a job's comment

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


def parse_queue(
    reply: object, command: str = "squeue --json", known: KnownJobs | None = None
) -> tuple[QueuedJob, ...]:
    """Read a reply of ``squeue --json`` or slurmrestd: what runs, is suspended or waits.

    They come by submission. Finished jobs that the controller still remembers are left out, and so
    are the completing ones.

    Parameters
    ----------
    reply
        As it was printed (`bytes`), or as decoded.
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
        queued = (known or KnownJobs()).read(_told(reply, command), command)
    except (KeyError, TypeError, IndexError) as error:
        raise SchedulerError(
            f"{command} answered a job in an unknown shape ({type(error).__name__}: {error}); "
            "Foretime knows the JSON of Slurm 22.05 and newer"
        ) from error
    queued.sort(key=lambda job: job.request.submit_time)
    return tuple(queued)


_OWN_FIELDS = (
    "account", "accrue_time", "admin_comment", "array_job_id", "array_max_tasks", "array_task_id",
    "array_task_string", "comment", "deadline", "dependency", "eligible_time", "het_job_id",
    "job_state", "name", "nice", "partition", "pre_sus_time", "priority", "qos", "resv_name",
    "start_time", "state_reason", "submit_time", "suspend_time", "time_limit", "time_minimum",
    "user_name",
)  # fmt: skip
"""What `_queued` reads of a job, besides its number and `NODE_FIELDS`."""
_GROUPS = (("job_id",), _OWN_FIELDS, NODE_FIELDS)
_NAMES = tuple(tuple(name.encode() for name in group) for group in _GROUPS)

_Part: TypeAlias = bytes | Json
_Told: TypeAlias = tuple[_Part, ...]
"""Of a job, what `_GROUPS` name: as it was printed, or as decoded."""


_ABSENT = msgspec.Raw()
_TextOfJob = msgspec.defstruct(
    "_TextOfJob",
    [(name, msgspec.Raw, _ABSENT) for group in _GROUPS for name in group],
    gc=False,
)

_TextOfReply = msgspec.defstruct(
    "_TextOfReply", [("jobs", GenericAlias(list, _TextOfJob)), ("errors", object, None)], gc=False
)
_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_TextOfReply)


def _told(reply: object, command: str) -> Iterable[_Told]:
    if isinstance(reply, bytes):
        with suppress(msgspec.MsgspecError):  # then its error is told as that of any other reply
            texts = _DECODER.decode(reply)
            listed_jobs({"jobs": [], "errors": texts.errors}, command)
            return map(_texts_of, texts.jobs)
    return map(_parts_of, listed_jobs(reply, command))


def _texts_of(job: msgspec.Struct) -> _Told:
    """Give the fields that are read as the text has them, a copy: a reply is not kept for them."""
    values = iter(msgspec.structs.astuple(job))
    return tuple(
        b"{%b}"
        % b",".join(
            b'"%b":%b' % (name, value)
            for name, value in zip(names, islice(values, len(names)), strict=True)
            if value != _ABSENT
        )
        for names in _NAMES
    )


def _parts_of(job: Json) -> _Told:
    return tuple({name: job[name] for name in group if name in job} for group in _GROUPS)


class KnownJobs:
    """The jobs of the last reply: one of which the same is told is the same object again.

    Most jobs of a queue are told word for word from look to look, and to read one takes far longer
    than to compare it. Only the fields that are read are kept.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[_Part, _Part, QueuedJob | None]] = {}

    def read(self, jobs: Iterable[_Told], command: str) -> list[QueuedJob]:
        """Give the jobs that run, are suspended or wait, in the order of the reply."""
        queued: list[QueuedJob] = []
        found: dict[str, tuple[_Part, _Part, QueuedJob | None]] = {}
        for number_told, own, nodes in jobs:
            name = str(number_told)
            known = self._jobs.get(name)
            if known is None or known[0] != own or known[1] != nodes:
                same = known[2] if known is not None and known[1] == nodes else None
                own_read = {**_read(own, command), **_read(number_told, command)}
                known = own, nodes, _queued(own_read, partial(_read, nodes, command), same)
            found[name] = known
            if known[2] is not None:
                queued.append(known[2])
        self._jobs = found
        return queued


def _read(part: _Part, command: str) -> Json:
    if isinstance(part, bytes):
        try:
            read = pydantic_core.from_json(part)
        except ValueError:
            read = decoded(part, command)
    else:
        read = part
    if not isinstance(read, dict):
        raise TypeError(f"{read!r} is no object")
    return read


def _queued(job: Json, nodes: Callable[[], Json], same_nodes: QueuedJob | None) -> QueuedJob | None:
    """Read one job: its own fields, those of its nodes, and who had the same nodes before."""
    state = QUEUE_STATES.get(state_of(job["job_state"]))
    if state is None:
        return None
    array_job = number(job["array_job_id"]) or None
    task = number(job["array_task_id"])
    job_id = str(whole(job["job_id"], "job_id"))
    tasks, pending = 1, ""
    if array_job is not None:
        if task is not None:
            job_id = f"{array_job}_{task}"
        else:
            expression = text_of(job["array_task_string"]) or ""
            tasks, pending = count_tasks(expression), pending_tasks(expression)
    if same_nodes is None:
        of_nodes = nodes()
        processors = max(number(of_nodes["cpus"]) or 1, 1)
        asked: AskedNodes | None = asked_nodes(of_nodes)
        licenses = text_of(of_nodes.get("licenses")) or ""
    else:
        processors = same_nodes.request.processors
        asked, licenses = same_nodes.asked, same_nodes.licenses
    limit_min = number(job["time_limit"])
    reason = text_of(job["state_reason"]) or ""
    request = JobRequest(
        job_id,
        text_of(job["user_name"]),
        text_of(job["account"]),
        processors,
        limit_min * MINUTE_S if limit_min else UNLIMITED_S,
        number(job["submit_time"]) or 0,
        text_of(job["partition"]),
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
        opted_out=OPT_OUT in (text_of(job["comment"]) or ""),
        reason="" if reason == "None" else reason,
        qos=text_of(job["qos"]),
        reservation=text_of(job["resv_name"]),
        admin_comment=text_of(job["admin_comment"]) or "",
        priority=number(job["priority"]) or 0,
        name=text_of(job.get("name")) or "",
        dependency=text_of(job["dependency"]) or "",
        array_limit=number(job.get("array_max_tasks")) or None,
        asked=asked,
        has_nodes=_held(nodes, same_nodes) if running else (),
        nice=_nice(number(job.get("nice")) or 0),
        licenses=licenses,
        ages_since=number(job.get("accrue_time")),
    )


def _held(nodes: Callable[[], Json], same_nodes: QueuedJob | None) -> tuple[HeldNode, ...]:
    if same_nodes is not None and same_nodes.state is not QueueState.PENDING:
        return same_nodes.has_nodes
    return held_nodes(nodes())


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
