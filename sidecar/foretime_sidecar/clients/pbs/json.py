"""Pure parsers of what PBS's commands print, written from its documentation.

Times are epoch seconds, or the form of ctime(3) in UTC (the commands run with ``TZ=UTC0``).
"""

from __future__ import annotations

import calendar
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from foretime_estimators.jobs.errors import InputError, SchedulerError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.files.pbs_durations import parse_pbs_duration
from foretime_sim.logs.pbs_records import (
    EndedJob,
    array_of,
    ending_of_exit,
    is_reservation_queue,
    project_of,
    requested_processors,
)
from foretime_sim.sites.pbs.formula import RANK

from foretime_sidecar.clients.array_indices import count_indices
from foretime_sidecar.clients.client import (
    UNLIMITED_S,
    FinishedRecord,
    PbsConfiguration,
    QueuedJob,
    QueueState,
    Reservation,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.cluster import AskedChunks
from foretime_sidecar.clients.known_shapes import WRONG_SHAPE
from foretime_sidecar.clients.pbs.finished_record import finished_record
from foretime_sidecar.clients.pbs.json_text import read_json
from foretime_sidecar.clients.pbs.select import held_vnodes, parse_select
from foretime_sidecar.clients.pbs.start_rank import rank_of

logger = logging.getLogger("foretime")

Json = Mapping[str, Any]
_Parsed = TypeVar("_Parsed")
_MOST_NAMED = 10  # jobs in one line of the log

_QUEUE_STATES = {
    "Q": QueueState.PENDING,
    "H": QueueState.PENDING,
    "W": QueueState.PENDING,
    "T": QueueState.PENDING,
    "R": QueueState.RUNNING,
    "S": QueueState.SUSPENDED,
    "U": QueueState.SUSPENDED,
}
_FINISHED_STATES = frozenset({"F", "X"})
_DELETED_SUBSTATE = 91
# MoM tells the server how long a job has run every few minutes; a larger gap is a suspension.
_TELLING_LAG_S = 600
_UNUSABLE = frozenset(
    {"down", "offline", "stale", "unknown", "state-unknown", "unresolvable", "maintenance",
     "wait-provisioning", "provisioning"}
)  # fmt: skip
_MONTHS = {name: number for number, name in enumerate(calendar.month_abbr) if name}
_WAITS_FOR = re.compile(r"(?:^|,)(?:after|on:|syncwith)", re.ASCII)
_CTIME = re.compile(r"\w{3} (\w{3}) +(\d+) (\d\d):(\d\d):(\d\d) (\d{4})", re.ASCII)


# What single values say --------------------------------------------------------------------------


def _text(job: Json, name: str) -> str | None:
    """Give a text; ``None`` if it is empty or not there. A name of digits comes as a number."""
    value = job.get(name)
    if value is None or isinstance(value, Mapping | list):
        return None
    text = str(value)
    text.encode()  # JSON can spell half of a surrogate pair, which no file or database takes
    return text or None


def _resource(job: Json, name: str, of: str = "Resource_List") -> object:
    resources = job.get(of)
    return resources.get(name) if isinstance(resources, Mapping) else None


def _duration(value: object) -> int | None:
    """Give seconds; ``None`` if there is no value."""
    return None if value is None or value == "" else parse_pbs_duration(str(value))


def _moment(value: object) -> int | None:
    """Give epoch seconds of a time in either form; ``None`` if there is none."""
    if value is None or value == "":
        return None
    word = str(value)
    if word.isascii() and word.isdigit():
        if int(word) > MAX_SECONDS:
            raise ValueError(f"{word} is no time in epoch seconds")
        return int(word) or None
    match = _CTIME.fullmatch(word)
    if match is None or match[1] not in _MONTHS:
        raise ValueError(f"{word!r} is no time")
    day, hour, minute, second, year = (int(match[group]) for group in (2, 3, 4, 5, 6))
    return calendar.timegm((year, _MONTHS[match[1]], day, hour, minute, second))


def _number(value: object) -> int | None:
    return None if value is None or value == "" else int(str(value))


def _user(job: Json) -> str | None:
    return _text(job, "euser") or (_text(job, "Job_Owner") or "").partition("@")[0] or None


# Jobs --------------------------------------------------------------------------------------------


def _each(
    jobs: Json, parse: Callable[[str, Json], _Parsed | None], command: str
) -> Iterable[_Parsed]:
    """Parse every job; one that can't be read hides no other, and the log names it."""
    unread = []
    for job_id, job in jobs.items():
        if not isinstance(job, Mapping):
            unread.append(f"{job_id} ({type(job).__name__})")
            continue
        try:
            parsed = parse(job_id, job)
        except WRONG_SHAPE as error:
            unread.append(f"{job_id} ({error})")
            continue
        if parsed is not None:
            yield parsed
    if unread:
        logger.warning(
            "%s: %d jobs passed over, as they can't be read: %s",
            command,
            len(unread),
            "; ".join(unread[:_MOST_NAMED]) + ("; and more" if len(unread) > _MOST_NAMED else ""),
        )


def parse_queue(text: str) -> tuple[QueuedJob, ...]:
    """Read ``qstat -t -f -F json``: what runs, is suspended or waits, by submission.

    The waiting sub-jobs of an array are one record with their number; those that run have their
    own. Jobs that exit or have finished are left out.

    Raises
    ------
    SchedulerError
        If it is no reply of qstat.
    """
    reply = read_json(text, "qstat", "Jobs")
    try:
        now = _moment(reply["timestamp"])
    except ValueError as error:
        raise SchedulerError(f"qstat: the timestamp of its reply: {error}") from None

    def parse(job_id: str, job: Json) -> QueuedJob | None:
        return _queued(job_id, job, now)

    queued = list(_each(reply["Jobs"], parse, "qstat"))
    queued.sort(key=lambda job: job.request.submit_time)
    return tuple(queued)


def _request(job_id: str, job: Json, requested_time: int | None) -> JobRequest:
    return JobRequest(
        job_id,
        _user(job),
        project_of(_text(job, "Account_Name"), _text(job, "project")),
        requested_processors(lambda name: _resource(job, name)) or 1,
        max(UNLIMITED_S if requested_time is None else requested_time, 1),
        _moment(job.get("ctime")) or _moment(job.get("qtime")) or 0,
        _text(job, "queue"),
        job_id if "[]" in job_id else array_of(job_id),
    )


def _queued(job_id: str, job: Json, now: int | None) -> QueuedJob | None:
    letter = _text(job, "job_state") or ""
    parent = "[]" in job_id
    state = QueueState.PENDING if parent and letter == "B" else _QUEUE_STATES.get(letter)
    if state is None:
        return None
    pending = state is QueueState.PENDING
    tasks, remaining = 1, None
    if parent:
        remaining = _text(job, "array_indices_remaining")
        if remaining is None:
            remaining = _text(job, "array_indices_submitted") or ""
        tasks = count_indices(remaining)
        if tasks == 0:
            return None
    elif pending and array_of(job_id) is not None:
        return None  # its array stands for it
    # A shrink-to-fit job has no walltime before it starts.
    walltime = None
    for name in ("walltime", "max_walltime", "min_walltime"):
        if walltime is None:
            walltime = _duration(_resource(job, name))
    soft = _duration(_resource(job, "soft_walltime"))
    request = _request(job_id, job, walltime)
    holds = (_text(job, "Hold_Types") or "n").replace("n", "")
    depends = _WAITS_FOR.search(_text(job, "depend") or "") is not None
    dependent = pending and depends and letter == "H"
    started = _moment(job.get("stime"))
    return QueuedJob(
        request,
        state,
        tasks,
        remaining or "",
        start_time=_planned_start(job) if pending else started,
        eligible_time=_eligible(job, letter, now) if pending else _moment(job.get("etime")),
        # Of a job without a walltime, too: pbs_sched plans with it.
        time_min=soft if soft and soft < request.requested_time else None,
        suspended_time=0 if pending else _suspended(job, started, state, now),
        held=pending and bool(holds) and not (dependent and holds == "s"),
        dependent=dependent,
        shrinks_to_fit=any(_resource(job, f"{end}_walltime") is not None for end in ("min", "max")),
        opted_out=str(_resource(job, "FORETIME", "Variable_List")).lower() == "off",
        reason=_text(job, "comment") or "" if pending else "",
        reservation=_text(job, "queue") if is_reservation_queue(_text(job, "queue")) else None,
        priority=rank_of(_resource(job, RANK)),
        chunks=_chunks(job),
        has_nodes=() if pending else held_vnodes(_text(job, "exec_vnode") or "", job_id),
    )


def _chunks(job: Json) -> AskedChunks | None:
    """Say what a job asks of hosts; ``None`` if it can't be read: it is in the queue all the same.

    Only managers are told ``schedselect``, which has defaults; a select of others may lack some.
    """
    select = _text(job, "schedselect") or _resource(job, "select")
    if select is None:
        return None
    place, project = _resource(job, "place"), _text(job, "project")
    try:
        return parse_select(
            str(select), str(place or ""), _number(job.get("Priority")) or 0, project or ""
        )
    except (InputError, ValueError):
        return None


def _planned_start(job: Json) -> int | None:
    return _moment(_resource(job, "start_time", "estimated"))


def _eligible(job: Json, letter: str, now: int | None) -> int | None:
    """Since when, or from when on, a waiting job is eligible; ``None`` if it is not known."""
    if letter == "W":
        return _moment(job.get("Execution_Time")) or _moment(job.get("etime"))
    eligible = _moment(job.get("etime"))
    accrued = _duration(job.get("eligible_time"))
    if accrued is not None and now is not None and eligible is not None:
        eligible = max(eligible, now - accrued)
    return eligible


def _suspended(job: Json, started: int | None, state: QueueState, now: int | None) -> int:
    used = _duration(_resource(job, "walltime", "resources_used"))
    if started is None or now is None or used is None:
        return 0
    gap = max(now - started - used, 0)
    return gap if state is QueueState.SUSPENDED or gap > _TELLING_LAG_S else 0


def parse_history(text: str) -> list[FinishedRecord]:
    """Read ``qstat -x -t -f -F json``: the finished jobs that the server still remembers, by end.

    Raises
    ------
    SchedulerError
        If it is no reply of qstat.
    """
    jobs = read_json(text, "qstat -x", "Jobs")["Jobs"]
    records = list(_each(jobs, _history_record, "qstat -x"))
    records.sort(key=lambda record: record.job.end_time)
    return records


def _history_record(job_id: str, job: Json) -> FinishedRecord | None:
    if _text(job, "job_state") not in _FINISHED_STATES or "[]" in job_id:
        return None
    start_time = _moment(job.get("stime"))
    walltime = _duration(_resource(job, "walltime"))
    if start_time is None or not walltime:
        return None
    end_time = None
    for name in ("obittime", "history_timestamp", "mtime"):
        if end_time is None:
            end_time = _moment(job.get(name))
    if end_time is None:
        raise ValueError("no time of its end")
    end_time = max(end_time, start_time)
    used = _duration(_resource(job, "walltime", "resources_used"))
    runtime = min(used, end_time - start_time) if used else end_time - start_time
    exit_status = _number(job.get("Exit_status"))
    request = _request(job_id, job, walltime)
    return finished_record(
        EndedJob(
            job_id=job_id,
            array_id=request.array_id,
            user=request.user,
            project=request.project,
            queue=request.queue,
            job_name=None,
            submit_time=min(request.submit_time, start_time),
            eligible_time=min(_moment(job.get("etime")) or request.submit_time, start_time),
            start_time=start_time,
            end_time=end_time,
            runtime=runtime,
            requested_time=walltime,
            processors=request.processors,
            allocated_processors=None,
            ending=ending_of_exit(
                exit_status,
                ran_s=runtime,
                requested_s=walltime,
                deleted=_number(job.get("substate")) == _DELETED_SUBSTATE,
            ),
            exit_status=exit_status,
        )
    )


# The server, its nodes and reservations ----------------------------------------------------------


def parse_configuration(text: str) -> SchedulerConfiguration:
    """Read ``qstat -B -f -F json``: the server's attributes, objects in them as ``name.key``.

    Raises
    ------
    SchedulerError
        If it is no reply of qstat, or names no server.
    """
    reply = read_json(text, "qstat -B", "Server")
    for name, server in reply["Server"].items():
        if not isinstance(server, Mapping):
            continue
        parameters: dict[str, str] = {}
        for key, value in server.items():
            if isinstance(value, Mapping):
                parameters.update({f"{key}.{inner}": str(of) for inner, of in value.items()})
            else:
                parameters[key] = str(value)
        # They say how busy the server is, not how it is set up.
        for busy in ("state_count", "total_jobs", "license_count"):
            parameters.pop(busy, None)
        for key in [key for key in parameters if key.startswith("resources_assigned.")]:
            del parameters[key]
        version = _text(server, "pbs_version") or str(reply["pbs_version"] or "")
        return PbsConfiguration(
            scheduler="pbs",
            cluster=name,
            version=version,
            scheduler_type="pbs_sched",
            parameters=parameters,
            # Unset it means no.
            private_data=frozenset()
            if parameters.get("query_other_jobs", "").lower() == "true"
            else frozenset({"jobs"}),
        )
    raise SchedulerError("qstat -B named no server; check that pbs_server answers")


def parse_vnodes(text: str) -> tuple[int, frozenset[str]]:
    """Read ``pbsnodes -a -F json``: processors that are up or in use, and vnodes that are away.

    These take no jobs now; they may still run some.

    Raises
    ------
    SchedulerError
        If it is no reply of pbsnodes.
    """
    total, away = 0, set()
    for name, node in read_json(text, "pbsnodes", "nodes")["nodes"].items():
        if not isinstance(node, Mapping):
            continue
        states = {word.strip() for word in str(node.get("state", "")).split(",")}
        of = "resources_available"
        if states & _UNUSABLE:
            of = "resources_assigned"
            away.add(name)
        try:
            total += _number(_resource(node, "ncpus", of)) or 0
        except ValueError as error:
            logger.warning("pbsnodes: %s passed over: %s", name, error)
    return total, frozenset(away)


_ASSIGNMENT = re.compile(r"\s*([\w.]+)\s*=\s*(.*)", re.ASCII)
RESERVATIONS_OVER = ("RESV_UNCONFIRMED", "RESV_FINISHED", "RESV_DELETED", "RESV_BEING_DELETED")
"""States of reservations that are over, or that nobody has agreed to."""


def reservation_values(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Give names and attributes of reservations, as ``pbs_rstat -f`` prints them."""
    for block in re.split(r"(?m)^(?=Resv ID:)", text):
        if block.startswith("Resv ID:"):
            name = block.splitlines()[0].partition(":")[2].strip()
            lines = map(_ASSIGNMENT.fullmatch, block.splitlines())
            yield name, {m[1]: m[2].strip() for m in lines if m}


def parse_reservations(text: str) -> list[Reservation]:
    """Read ``pbs_rstat -f`` (it has no JSON): reservations that are confirmed or under way.

    Raises
    ------
    SchedulerError
        If a reservation lacks its times.
    """
    reservations = []
    for name, values in reservation_values(text):
        if values.get("reserve_state") in RESERVATIONS_OVER:
            continue
        try:
            start_time, end_time = _moment(values["reserve_start"]), _moment(values["reserve_end"])
            processors = _number(values.get("Resource_List.ncpus"))
        except (KeyError, ValueError) as error:
            raise SchedulerError(f"pbs_rstat: can't read the times of {name}: {error}") from error
        if start_time is None or end_time is None or end_time <= start_time:
            continue
        reservations.append(
            Reservation(name, start_time, end_time, processors, values.get("queue") or None)
        )
    return reservations
