"""Pure parsers of what Slurm's commands print.

Written for and tested on the replies of 22.05, where a number is plain, ``null`` if unset; from
23.02 on numbers are objects (``set``, ``infinite``, ``number``) and from 23.11 on states are lists:
both forms are read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

import pydantic_core
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_estimators.time_units import MINUTE_S

from foretime_sidecar.clients.client import FinishedRecord
from foretime_sidecar.clients.garbage import uncollected
from foretime_sidecar.clients.known_shapes import known_shape
from foretime_sidecar.clients.slurm.numbers import SlurmNumber, number

logger = logging.getLogger("foretime")

Json = Mapping[str, Any]

KNOWN_JSON = "the JSON of Slurm 22.05 and newer"
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


def decoded(text: bytes, command: str) -> object:
    """Decode the JSON that a command printed; bytes that are no UTF-8 are replaced.

    A deep queue is a hundred megabytes of it. What takes longest then is the search for garbage,
    which decoding does not make, and then the decoder of the standard library. Halves of surrogate
    pairs it reads alone.

    Raises
    ------
    SchedulerError
        If it is no JSON.
    """
    with uncollected():
        try:
            return pydantic_core.from_json(text)
        except ValueError:
            pass
        try:
            return json.loads(text.decode(errors="replace"))
        except json.JSONDecodeError as error:
            raise SchedulerError(
                f"{command} did not print JSON ({error}); is Slurm built with its JSON serializer?"
            ) from error


def whole(value: object, name: str) -> int:
    """Give a number that must be there, 0 if unset."""
    if value is not None and not isinstance(value, int | Mapping | SlurmNumber):
        raise TypeError(f"{name} is {value!r}")
    return number(value) or 0


def text_of(value: object) -> str | None:
    """Give a text, ``None`` if it is empty or unset."""
    if value is not None and not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value or None


def state_of(value: object) -> str:
    """Give a state's word, the first of several."""
    if isinstance(value, list):
        return str(value[0]) if value else ""
    return str(value)


def _end_state(value: object) -> str:
    """Give how a job ended; 26.05 says of a requeued one's earlier run PENDING, REQUEUED."""
    if isinstance(value, list):
        return next((str(state) for state in value if state in ENDINGS), state_of(value))
    return state_of(value)


# ESLURM_REST_EMPTY_RESULT: sacct found no job, which is an answer.
_NOTHING_FOUND = 9003


def listed_jobs(reply: object, command: str) -> Iterable[Json]:
    """Give the jobs of a reply, as printed or decoded; SchedulerError if it tells of an error."""
    if isinstance(reply, bytes):
        reply = decoded(reply, command)
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
    with known_shape(f"{command} answered a job", KNOWN_JSON):
        for job in listed_jobs(reply, command):
            record = _finished(job)
            if record is None:
                continue
            if _is_text(record):
                records.append(record)
            else:
                dropped.append(record.job.request.job_id)
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
    end_time = whole(time["end"], "end")
    limit_min = number(time["limit"])
    if not end_time or not limit_min:
        return None
    start_time = whole(time["start"], "start") or None
    runtime = 0
    if start_time is not None:
        runtime = max(end_time - start_time - whole(time["suspended"], "suspended"), 0)
    if start_time is None or (runtime == 0 and not _allocated(job)):
        start_time, runtime, ending = None, 0, Ending.NEVER_STARTED
    association = job["association"]
    array = job["array"]
    array_job = whole(array["job_id"], "array job_id") or None
    job_id = str(whole(job["job_id"], "job_id"))
    if array_job is not None:
        task = number(array["task_id"])
        if task is not None:
            job_id = f"{array_job}_{task}"
    request = JobRequest(
        job_id,
        # 26.05 leaves the association's own names empty.
        text_of(association["user"]) or text_of(job["user"]),
        text_of(association["account"]) or text_of(job["account"]),
        _allocated(job) or number(job["required"]["CPUs"]) or 1,
        limit_min * MINUTE_S,
        whole(time["submission"], "submission"),
        text_of(job["partition"]),
        None if array_job is None else str(array_job),
    )
    return FinishedRecord(
        FinishedJob(request, start_time, end_time, runtime, ending),
        whole(time["eligible"], "eligible") or None,
        state,
        text_of(job["comment"]["administrator"]) or "",
    )


def _allocated(job: Json) -> int:
    """Give the processors allocated, 0 if none ever were."""
    for resource in job["tres"]["allocated"]:
        if resource["type"] == "cpu":
            return whole(resource["count"], "count")
    return 0
