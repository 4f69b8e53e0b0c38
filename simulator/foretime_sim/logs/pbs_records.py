"""Lines of PBS's accounting logs, of OpenPBS, PBS Professional and TORQUE: the one parser.

A line is ``MM/DD/YYYY HH:MM:SS;KIND;ID;key=value key=value ...``. The stamp is local time; times
among the values are epoch seconds, durations ``HH:MM:SS`` or seconds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from foretime_estimators.jobs.jobs import Ending

from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.files.pbs_durations import parse_pbs_duration
from foretime_sim.machines.largest_machine import MAX_PROCESSORS

STAMP = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d:\d\d:\d\d)", re.ASCII)
JOB_ID = re.compile(r"\d+(?:\[\d*\]|-\d+)?(?:\.\S+)?", re.ASCII)
_SUBJOB = re.compile(r"(\d+)(?:\[\d+\]|-\d+)(\..*)?", re.ASCII)
_QUOTED = re.compile(r'([A-Za-z][\w.\-]*)=("(?:[^"]|"(?! [A-Za-z][\w.\-]*=|$))*"|\S*)', re.ASCII)
_RESERVATION_QUEUE = re.compile(r"[RSM]\d+", re.ASCII)
_MOST_DIGITS = 12
"""Of a number in a record; more are no number of seconds or processors."""
NO_PROJECT = "_pbs_project_default"
"""The project of jobs whose user gave none."""

# PBS writes a user's own words (account, project, job name) without escaping quotes in them, so
# they can look like more fields. These come before any such words in a line; all others after.
_FIRST_COUNTS = frozenset({"user", "group", "account"})


class NotAJobError(ValueError):
    """The line is about no job: a reservation, the server's start, licences."""


@dataclass(frozen=True, slots=True)
class Record:
    """One line of an accounting log that is about a job.

    Attributes
    ----------
    stamp
        Local time as it stands, ``MM/DD/YYYY HH:MM:SS``.
    kind
        The record's letter: Q, S, E, D, A, R, ...
    job_id
        As PBS names the job: ``123.server``, ``123[4].server``.
    message
        What follows: ``key=value`` words, as a rule.
    """

    stamp: str
    kind: str
    job_id: str
    message: str

    @property
    def array_parent(self) -> bool:
        """Whether it is about a job array as a whole, whose sub-jobs have records of their own."""
        return "[]" in self.job_id


def parse_line(line: str) -> Record:
    """Read one line.

    Raises
    ------
    NotAJobError
        If it is about something other than a job.
    ValueError
        If it has not the form of a record; the message says what is wrong.
    """
    parts = line.rstrip("\r\n").split(";", 3)
    if len(parts) != 4:
        raise ValueError(f"{len(parts)} parts where a record has 4, parted by ';'")
    stamp, kind, job_id, message = parts
    if len(stamp) != 19 or STAMP.fullmatch(stamp) is None:
        raise ValueError(f"{stamp[:40]!r} is no date like 01/31/2024 12:30:00")
    if len(kind) != 1 or not kind.isalpha():
        raise ValueError(f"{kind[:20]!r} is no kind of record, which is one letter")
    if not job_id[:1].isdigit():
        raise NotAJobError(job_id)
    if JOB_ID.fullmatch(job_id) is None:
        raise ValueError(f"{job_id[:60]!r} is no job identifier like 123.server")
    return Record(stamp, kind, job_id, message)


def fields_of(message: str) -> dict[str, str]:
    """Give the ``key=value`` words of a record; a value with blanks stands in double quotes."""
    if '"' not in message:
        return dict([word.split("=", 1) for word in message.split(" ") if "=" in word])
    fields: dict[str, str] = {}
    for match in _QUOTED.finditer(message):
        name, value = match[1], match[2]
        if len(value) > 1 and value[0] == value[-1] == '"':
            value = value[1:-1]
        if name not in _FIRST_COUNTS or name not in fields:
            fields[name] = value
    return fields


@functools.lru_cache(maxsize=65_536)
def processors_of_chunks(chunks: str, key: str) -> int:
    """Count the processors of a ``select`` (key "ncpus") or of TORQUE's ``nodes`` (key "ppn").

    ``2:ncpus=8:mem=4gb+1`` are 17; ``node01:ppn=4+2:ppn=8`` are 20. A chunk that says nothing has
    one.

    Raises
    ------
    ValueError
        If a count is no number.
    """
    total = 0
    for chunk in chunks.split("+"):
        words = chunk.split(":")
        copies = _count(words[0]) if words[0].isdecimal() else 1
        each = 1
        for word in words:
            name, _, value = word.partition("=")
            if name == key or (name == "ncpus" and key == "ppn"):
                each = _count(value)
        total += copies * each
    return total


def _count(word: str) -> int:
    if not (word.isascii() and word.isdecimal() and len(word) <= _MOST_DIGITS):
        raise ValueError(f"{word!r} is no number of processors")
    return int(word)


def requested_processors(resources: Callable[[str], object]) -> int | None:
    """Give the processors that a job's ``Resource_List`` asks for; ``None`` if it does not say.

    ``ncpus`` is the total where there is a ``select``, or nothing else; beside TORQUE's ``nodes``
    it is a default of no meaning. ``procs`` are processors anywhere.

    Parameters
    ----------
    resources
        Gives a resource by name, ``None`` if the job has none of it.

    Raises
    ------
    ValueError
        If a value can't be read.
    """
    select, nodes, ncpus = resources("select"), resources("nodes"), resources("ncpus")
    procs = resources("procs")
    if select is not None:
        count = (
            _count(str(ncpus)) if ncpus is not None else processors_of_chunks(str(select), "ncpus")
        )
    elif nodes is not None:
        count = processors_of_chunks(str(nodes), "ppn")
    elif procs is not None:
        count = _count(str(procs))
    elif ncpus is not None:
        count = _count(str(ncpus))
    elif (nodect := resources("nodect")) is not None:
        count = _count(str(nodect))
    else:
        return None
    if not 0 <= count <= MAX_PROCESSORS:
        raise ValueError(f"{count} processors; not from 0 to {MAX_PROCESSORS:,}")
    return count or None


def project_of(account: str | None, project: str | None) -> str | None:
    """Give whom a job is charged to, as the hook takes it: its account, else its project."""
    return account or (project if project and project != NO_PROJECT else None)


def array_of(job_id: str) -> str | None:
    """Give the job array that a sub-job belongs to: ``123[].server`` of ``123[4].server``."""
    match = _SUBJOB.fullmatch(job_id)
    return None if match is None else f"{match[1]}[]{match[2] or ''}"


def is_reservation_queue(queue: str | None) -> bool:
    """Whether a queue is a reservation's own (``R12``, ``S12``, ``M12``)."""
    return queue is not None and _RESERVATION_QUEUE.fullmatch(queue.partition("@")[0]) is not None


# PBS's own exit codes (job.h of OpenPBS, resmon of TORQUE); others are the job's own, or 256 (128
# in older releases) and a signal. TORQUE gives some numbers another meaning.
_ENDING_OF_EXIT = {
    -3: Ending.REQUEUED,
    -4: Ending.NODE_FAILED,
    -5: Ending.NODE_FAILED,
    -6: Ending.NODE_FAILED,
    -11: Ending.REQUEUED,
    -12: Ending.PREEMPTED,  # checkpointed and killed
    -14: Ending.NODE_FAILED,
    -26: Ending.OUT_OF_MEMORY,
    -27: Ending.OUT_OF_MEMORY,
    -29: Ending.TIMED_OUT,
}
_TORQUE_ENDING_OF_EXIT = {
    -3: Ending.REQUEUED,
    -4: Ending.NODE_FAILED,
    -5: Ending.NODE_FAILED,
    -6: Ending.NODE_FAILED,
    -10: Ending.OUT_OF_MEMORY,
    -11: Ending.TIMED_OUT,
}
_SIGTERM, _SIGKILL = 15, 9
EXIT_OF_ENDING = {
    Ending.COMPLETED: 0,
    Ending.FAILED: 1,
    Ending.OUT_OF_MEMORY: -27,
    Ending.TIMED_OUT: -29,
    Ending.CANCELLED: 256 + _SIGTERM,
    Ending.NODE_FAILED: -14,
    Ending.PREEMPTED: -12,
    Ending.REQUEUED: -11,
    Ending.NEVER_STARTED: 256 + _SIGTERM,
}
"""``Exit_status`` that PBS records for an ending."""


def ending_of_exit(
    exit_status: int | None,
    *,
    ran_s: int,
    requested_s: int | None,
    deleted: bool = False,
    torque: bool = False,
) -> Ending:
    """Give how a job that ran came to its end.

    Parameters
    ----------
    exit_status
        ``Exit_status``; ``None`` if there is none, which is taken for 0.
    ran_s, requested_s
        How long it ran, and what it asked for, seconds.
    deleted
        Whether somebody had it deleted while it ran.
    torque
        Whether TORQUE's numbers count.
    """
    codes = _TORQUE_ENDING_OF_EXIT if torque else _ENDING_OF_EXIT
    ending = codes.get(exit_status or 0)
    if ending is not None:
        return ending
    if not exit_status and not deleted:
        return Ending.COMPLETED
    if requested_s is not None and ran_s >= requested_s:
        return Ending.TIMED_OUT
    if deleted or exit_status in (256 + _SIGTERM, 256 + _SIGKILL):
        return Ending.CANCELLED
    return Ending.FAILED


@dataclass(frozen=True, slots=True)
class EndedJob:
    """What a job's E record says.

    Times are epoch seconds, durations seconds; ``None`` where the record does not say.

    Attributes
    ----------
    job_id, array_id
        As PBS names the job, and the array that it is a sub-job of.
    user, project, queue, job_name
        Names; the project as `project_of` takes it.
    submit_time
        ``ctime``: when the job was made.
    eligible_time
        Since when it was eligible to run: from ``eligible_time`` where the server accrues it,
        else ``etime``.
    start_time, end_time
        When it started and ended, for the last time.
    runtime
        Without suspended time: ``resources_used.walltime``, at most from start to end.
    requested_time, processors
        ``Resource_List.walltime``, and processors asked for.
    allocated_processors
        Processors that it got.
    ending
        How it ended.
    exit_status
        ``Exit_status``.
    """

    job_id: str
    array_id: str | None
    user: str | None
    project: str | None
    queue: str | None
    job_name: str | None
    submit_time: int
    eligible_time: int
    start_time: int
    end_time: int
    runtime: int
    requested_time: int | None
    processors: int | None
    allocated_processors: int | None
    ending: Ending
    exit_status: int | None


def ended_job(
    record: Record, *, deleted: bool = False, requeued_at: int | None = None
) -> EndedJob | None:
    """Read an E record; ``None`` for a job that never ran.

    Parameters
    ----------
    record
        Of kind E, and not of an array as a whole.
    deleted
        Whether a D record came before it.
    requeued_at
        When an earlier run of it ended, epoch seconds: it waited from then. ``None`` if there was
        none.

    Raises
    ------
    ValueError
        Naming the field and its value, if one is missing or can't be read.
    """
    fields = fields_of(record.message)
    end_time = _epoch(fields, "end")
    start_time = _epoch(fields, "start", 0)
    if not start_time:
        return None
    if end_time < start_time:
        raise ValueError(f"end={end_time} lies before start={start_time}")
    # Another server's clock, where the job was moved here, may be ahead of ours.
    submit_time = min(_epoch(fields, "ctime", 0) or _epoch(fields, "qtime"), start_time)
    occupied = end_time - start_time
    used = _optional(fields, "resources_used.walltime", parse_pbs_duration)
    # A walltime of 0 is one that the execution host never told.
    runtime = min(used, occupied) if used else occupied
    requested_time = _optional(fields, "Resource_List.walltime", parse_pbs_duration) or None
    exit_status = _optional(fields, "Exit_status", int)
    try:
        processors = requested_processors(lambda name: fields.get(f"Resource_List.{name}"))
    except ValueError as error:
        raise ValueError(f"Resource_List: {error}") from None
    queue = fields.get("queue")
    return EndedJob(
        job_id=record.job_id,
        array_id=array_of(record.job_id),
        user=fields.get("user") or None,
        project=project_of(fields.get("account"), fields.get("project")),
        queue=queue or None,
        job_name=fields.get("jobname") or None,
        submit_time=submit_time,
        eligible_time=_eligible(fields, submit_time, start_time, requeued_at),
        start_time=start_time,
        end_time=end_time,
        runtime=runtime,
        requested_time=requested_time,
        processors=processors,
        allocated_processors=_allocated(fields),
        ending=ending_of_exit(
            exit_status,
            ran_s=runtime,
            requested_s=requested_time,
            deleted=deleted,
            torque=is_torque(fields),
        ),
        exit_status=exit_status,
    )


def is_torque(fields: Mapping[str, str]) -> bool:
    """Whether a record is TORQUE's: it names the owner, or nodes in its own words."""
    return (
        "owner" in fields
        or "total_execution_slots" in fields
        or "Resource_List.neednodes" in fields
    )


def _epoch(fields: Mapping[str, str], name: str, missing: int | None = None) -> int:
    word = fields.get(name)
    if word is None:
        if missing is None:
            raise ValueError(f"no {name}")
        return missing
    if not (word.isascii() and word.isdigit()) or int(word) > MAX_SECONDS:
        raise ValueError(f"{name}={word!r} is no time in epoch seconds")
    return int(word)


def _optional(fields: Mapping[str, str], name: str, parse: Callable[[str], int]) -> int | None:
    word = fields.get(name)
    if not word:
        return None
    try:
        return parse(word)
    except ValueError:
        raise ValueError(f"{name}={word!r} can't be read") from None


def _eligible(
    fields: Mapping[str, str], submit_time: int, start_time: int, requeued_at: int | None
) -> int:
    eligible = _epoch(fields, "etime", 0) or submit_time
    accrued = _optional(fields, "eligible_time", parse_pbs_duration)
    if accrued is not None:
        eligible = max(eligible, start_time - accrued)
    if requeued_at is not None:
        eligible = max(eligible, requeued_at)
    return min(max(eligible, submit_time), start_time)


def _allocated(fields: Mapping[str, str]) -> int | None:
    for name in ("resources_used.ncpus", "total_execution_slots"):
        word = fields.get(name, "")
        if word.isascii() and word.isdigit() and 0 < int(word) <= MAX_PROCESSORS:
            return int(word)
    return None


class JobFollower:
    """Puts together what the records of a log say of each job; feed them in their order.

    A job is what its E record says. An R record ends a run that does not count, as the job runs
    again; a D record before the E record makes it a cancelled one. Sub-jobs of an array have
    records of their own; those of the array as a whole are passed over.

    Parameters
    ----------
    moment
        Gives a record's stamp in epoch seconds.

    Attributes
    ----------
    deleted
        Jobs that somebody had deleted and that have not ended yet: they never will if they did not
        run.
    """

    def __init__(self, moment: Callable[[str], int]) -> None:
        self._moment = moment
        self.deleted: set[str] = set()
        self._requeued: dict[str, int] = {}

    def take(self, record: Record) -> EndedJob | None:
        """Take in the next record; give the job that it ends, ``None`` if it ends none.

        Raises
        ------
        ValueError
            If an E record can't be read; says what is wrong.
        """
        kind, job_id = record.kind, record.job_id
        if record.array_parent:
            if kind == "D":
                self.deleted.add(job_id)
            return None
        if kind == "E":
            deleted = job_id in self.deleted or (array_of(job_id) or job_id) in self.deleted
            job = ended_job(record, deleted=deleted, requeued_at=self._requeued.get(job_id))
            self.deleted.discard(job_id)
            self._requeued.pop(job_id, None)
            return job
        if kind == "D":
            self.deleted.add(job_id)
        elif kind == "R":
            ended = fields_of(record.message).get("end", "")
            known = ended.isascii() and ended.isdigit()
            self._requeued[job_id] = int(ended) if known else self._moment(record.stamp)
            self.deleted.discard(job_id)
        elif kind == "Q":
            # Numbers are used again after a while.
            self.deleted.discard(job_id)
            self._requeued.pop(job_id, None)
        elif kind == "A":
            self.deleted.discard(job_id)
        return None
