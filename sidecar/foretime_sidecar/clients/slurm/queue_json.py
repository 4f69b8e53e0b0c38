"""Pure parser of what ``squeue --json`` and slurmrestd tell of the queue.

Of some 150 fields of a job about 50 are read. So of a text these alone are decoded, and a job is
read only where they are not what they were in the reply before. 10,000 jobs are 75 MB of text, so
it is decoded as it comes (`read_in_pieces`): it is never in memory as a whole, and other threads
do not wait for all of it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from types import GenericAlias
from typing import Any, TypeAlias, TypedDict

import msgspec
from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.clients.array_indices import count_indices, index_ranges
from foretime_sidecar.clients.client import UNLIMITED_S, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import AskedNodes, HeldNode
from foretime_sidecar.clients.known_shapes import known_shape
from foretime_sidecar.clients.slurm.json import (
    KNOWN_JSON,
    Json,
    decoded,
    listed_jobs,
    state_of,
    text_of,
    whole,
)
from foretime_sidecar.clients.slurm.nodes import NODE_FIELDS, asked_nodes, held_nodes
from foretime_sidecar.clients.slurm.numbers import SlurmNumber, number

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
        As it was printed (`bytes`), as read while it was printed (`PartlyRead`), or as decoded.
    command
        What gave it, for errors.
    known
        The jobs of the reply before; what is told of them as then is not read again.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of Slurm's.
    """
    with known_shape(f"{command} answered a job", KNOWN_JSON):
        queued = (known or KnownJobs()).read(_told(reply, command), command)
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
_NUMBERS = frozenset({
    "accrue_time", "array_job_id", "array_max_tasks", "array_task_id", "cpus", "cpus_per_task",
    "deadline", "eligible_time", "het_job_id", "job_id", "max_nodes", "memory_per_cpu",
    "memory_per_node", "nice", "node_count", "pre_sus_time", "priority", "start_time",
    "submit_time", "suspend_time", "tasks", "time_limit", "time_minimum",
})  # fmt: skip
_RESOURCES = "job_resources"  # the longest by far, and of running jobs alone it is read


def _type_of(name: str) -> object:
    if name in _NUMBERS:
        # With float, or 1.0 would be taken for a whole number.
        return int | float | SlurmNumber | None
    return msgspec.Raw if name == _RESOURCES else Any


_FIELDS = ("job_id", *_OWN_FIELDS, *NODE_FIELDS)
_node_fields_of = attrgetter(*NODE_FIELDS)
_ToldJob = msgspec.defstruct(
    "_ToldJob", [(name, _type_of(name), msgspec.UNSET) for name in _FIELDS], gc=False
)
_Told: TypeAlias = Any
"""A `_ToldJob`: what is read of a job, ``UNSET`` where it is absent; `_RESOURCES` may be text."""

_TextOfReply = msgspec.defstruct(
    "_TextOfReply", [("jobs", GenericAlias(list, _ToldJob)), ("errors", object, None)], gc=False
)
_TextsOfReply = msgspec.defstruct(
    "_TextsOfReply", [("jobs", list[msgspec.Raw]), ("errors", object, None)], gc=False
)
_REPLY: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_TextOfReply)
_JOBS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_TextsOfReply)
_JOB: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_ToldJob)
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError)


class _Cpus(TypedDict):
    count: object


class _Memory(TypedDict):
    allocated: object


class _HeldNode(TypedDict):
    name: object
    cpus: _Cpus
    memory: _Memory


class _HeldNodes(TypedDict):
    allocation: list[_HeldNode]


class _Resources(TypedDict):
    """What `held_nodes` reads of `_RESOURCES`, without the state of each core."""

    nodes: _HeldNodes


_HELD: msgspec.json.Decoder[_Resources] = msgspec.json.Decoder(_Resources)


@dataclass(frozen=True, slots=True)
class PartlyRead:
    """A reply of which the first jobs are read, and what is left of its text without them."""

    jobs: list[_Told]
    rest: bytes


_DECODED_BYTES = 1 << 20
"""Decoded at once: 3 ms in which no other thread runs, and some 140 jobs."""
_FIRST_JOB = re.compile(rb'"jobs"\s*:\s*\[\s*(?=\{\s*("(?:[^"\\]|\\.)*"))')
_LIST: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(GenericAlias(list, _ToldJob))


def read_in_pieces(pieces: Iterable[bytes], known: KnownJobs) -> PartlyRead:
    """Decode the jobs of a reply while it is printed; errors in it are left for `parse_queue`.

    What is told as in the reply before, of the jobs known, is not in memory twice.

    Each job begins with the field that the first one begins with. Where one is taken to end that
    does not, as other objects may begin with it, too, the text up to there is no list of jobs; then
    more of it is waited for, and in the end all that is left is read as a whole.
    """
    jobs: list[_Told] = []
    head, text, enough = b"", bytearray(), _DECODED_BYTES
    next_job: re.Pattern[bytes] | None = None
    for piece in pieces:
        text += piece
        if len(text) < enough:
            continue
        if next_job is None:
            first = _FIRST_JOB.search(text)
            if first is not None:
                next_job = re.compile(rb",\s*(?=\{\s*" + re.escape(first[1]) + rb")")
                head = bytes(text[: first.end()])
                del text[: first.end()]
        ends = deque(next_job.finditer(text), maxlen=1) if next_job is not None else ()
        enough = 2 * len(text)
        for end in ends:
            with suppress(*_UNREADABLE):
                told = _LIST.decode(b"[" + text[: end.start()] + b"]")
                jobs += map(known.as_before, map(_own_copy, told))
                del text[: end.end()]
                enough = _DECODED_BYTES
    return PartlyRead(jobs, head + text)


def _told(reply: object, command: str) -> Iterable[_Told]:
    if isinstance(reply, PartlyRead):
        return chain(reply.jobs, _told(reply.rest, command))
    if isinstance(reply, bytes):
        with suppress(*_UNREADABLE):
            found = _REPLY.decode(reply)
            listed_jobs({"jobs": [], "errors": found.errors}, command)
            return map(_own_copy, found.jobs)
        # One job may be told in bytes that are no text, or in an unknown shape.
        with suppress(*_UNREADABLE):  # then its error is told as that of any other reply
            texts = _JOBS.decode(reply)
            listed_jobs({"jobs": [], "errors": texts.errors}, command)
            return [_told_in(text, command) for text in texts.jobs]
    return map(_of_decoded, listed_jobs(reply, command))


def _told_in(text: msgspec.Raw, command: str) -> _Told:
    with suppress(*_UNREADABLE):
        return _own_copy(_JOB.decode(text))
    (job,) = listed_jobs({"jobs": [decoded(bytes(text), command)]}, command)
    return _of_decoded(job)


def _own_copy(job: _Told) -> _Told:
    """Copy what is still text, or the whole reply would be kept for it."""
    if isinstance(job.job_resources, msgspec.Raw):
        job.job_resources = bytes(job.job_resources)
    return job


def _of_decoded(job: Json) -> _Told:
    return _ToldJob(**{name: job[name] for name in _FIELDS if name in job})


class KnownJobs:
    """The jobs of the last reply: one of which the same is told is the same object again.

    Most jobs of a queue are told word for word from look to look, and to read one takes far longer
    than to compare it. Only the fields that are read are kept.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[_Told, QueuedJob | None]] = {}

    def as_before(self, told: _Told) -> _Told:
        """Give what was told of the job before, if that is the same."""
        known = self._jobs.get(str(told.job_id))
        return told if known is None or known[0] != told else known[0]

    def read(self, jobs: Iterable[_Told], command: str) -> list[QueuedJob]:
        """Give the jobs that run, are suspended or wait, in the order of the reply."""
        queued: list[QueuedJob] = []
        found: dict[str, tuple[_Told, QueuedJob | None]] = {}
        for told in jobs:
            name = str(told.job_id)
            known = self._jobs.get(name)
            if known is None or (known[0] is not told and known[0] != told):
                same = None
                if known is not None and _node_fields_of(known[0]) == _node_fields_of(told):
                    same = known[1]
                known = told, _queued(_fields_of(told), command, same)
            found[name] = known
            if known[1] is not None:
                queued.append(known[1])
        self._jobs = found
        return queued


def _fields_of(told: _Told) -> Json:
    values = zip(_FIELDS, msgspec.structs.astuple(told), strict=True)
    return {name: value for name, value in values if value is not msgspec.UNSET}


def _queued(job: Json, command: str, same_nodes: QueuedJob | None) -> QueuedJob | None:
    """Read one job; ``same_nodes``: as it was read before, if nothing of its nodes is new."""
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
        processors = max(number(job["cpus"]) or 1, 1)
        asked: AskedNodes | None = asked_nodes(job)
        licenses = text_of(job.get("licenses")) or ""
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
        has_nodes=_held(job, command, same_nodes) if running else (),
        nice=_nice(number(job.get("nice")) or 0),
        licenses=licenses,
        ages_since=number(job.get("accrue_time")),
    )


def _held(job: Json, command: str, same_nodes: QueuedJob | None) -> tuple[HeldNode, ...]:
    if same_nodes is not None and same_nodes.state is not QueueState.PENDING:
        return same_nodes.has_nodes
    told = job.get(_RESOURCES)
    if not isinstance(told, bytes):
        return held_nodes(job)
    try:
        resources: object = _HELD.decode(told)
    except _UNREADABLE:  # or of before 23.11
        resources = decoded(told, command)
    return held_nodes({**job, _RESOURCES: resources})


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
