"""PBS accounting logs as job logs: ``server_priv/accounting``, its files, and writing the like."""

from __future__ import annotations

import datetime
import itertools
import re
import zoneinfo
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from foretime_estimators.errors import InputError
from foretime_estimators.jobs import Ending

from foretime_sim.accounting import Clock
from foretime_sim.accounting_log import ExportColumn, ExportRows, job_log_of_rows
from foretime_sim.compressed_files import read_text, write_text
from foretime_sim.job_log import JobLog, count_jobs
from foretime_sim.pbs_records import (
    EXIT_OF_ENDING,
    STAMP,
    EndedJob,
    JobFollower,
    NotAJobError,
    format_pbs_duration,
    parse_line,
)
from foretime_sim.workload import Int64Array, Workload

FILE_NAME = re.compile(r"(\d{8})(?:\.gz|\.xz)?", re.ASCII)
"""What PBS calls its accounting files, a day each."""
RECORD = re.compile(STAMP.pattern + r";[A-Za-z];", re.ASCII)
"""How a line of one begins."""


def read_pbs_accounting(
    path: Path | str, *, time_zone: str | None = None, lenient: bool = False
) -> JobLog:
    """Read a folder of PBS's accounting files, or one of them; plain or compressed.

    Every job that ended is there once, with its last run; see `foretime_sim.pbs_records` for how
    its records are understood. Jobs that never ran are not.

    Parameters
    ----------
    path
        ``PBS_HOME/server_priv/accounting``, whose files are called YYYYMMDD, or any file.
    time_zone
        Name of the server's time zone, for the stamps; UTC if not given. All times of jobs are
        epoch seconds, so it matters little.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.

    Raises
    ------
    InputError
        If a file can't be read or a line is malformed; names file, line and value.
    """
    path = Path(path)
    files = [path]
    if path.is_dir():
        found = [file for file in path.iterdir() if FILE_NAME.fullmatch(file.name)]
        files = sorted(found, key=lambda file: file.name[:8])
        if not files:
            raise InputError(
                f"{path}: no PBS accounting files (called YYYYMMDD) in this folder; name "
                "PBS_HOME/server_priv/accounting, or a log file"
            )
        for before, after in itertools.pairwise(files):
            if before.name[:8] == after.name[:8]:
                raise InputError(
                    f"{path}: {before.name} and {after.name} are the same day; keep one of them"
                )
        files = [file for file in files if file.stat().st_size]  # a day without a job
        if not files:
            raise InputError(f"{path}: all accounting files in this folder are empty")
    reading = _Reading(str(path), time_zone, lenient)
    for file in files:
        reading.take(read_text(file), str(file))
    return reading.log()


def parse_pbs_accounting(
    text: str, *, source: str, time_zone: str | None = None, lenient: bool = False
) -> JobLog:
    """Make a `JobLog` of the text of one accounting file; see `read_pbs_accounting`."""
    reading = _Reading(source, time_zone, lenient)
    reading.take(text, source)
    return reading.log()


_FACTS = (
    "job_id", "array_id", "user", "project", "queue", "executable", "submit_time",
    "eligible_time", "start_time", "end_time", "runtime", "requested_time",
    "requested_processors", "allocated_processors", "state",
)  # fmt: skip
# The words that accounting exports have for endings are Slurm's.
_STATE_OF_ENDING = {
    Ending.COMPLETED: "COMPLETED",
    Ending.FAILED: "FAILED",
    Ending.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    Ending.TIMED_OUT: "TIMEOUT",
    Ending.CANCELLED: "CANCELLED",
    Ending.NODE_FAILED: "NODE_FAIL",
    Ending.PREEMPTED: "PREEMPTED",
    Ending.REQUEUED: "REQUEUED",
    Ending.NEVER_STARTED: "CANCELLED",
}


def _as_it_is(value: object) -> object:
    return value


class _Reading:
    """One reading of a log, file by file."""

    def __init__(self, source: str, time_zone: str | None, lenient: bool) -> None:
        self._source = source
        self._time_zone = time_zone
        self._lenient = lenient
        self._clock = Clock(time_zone)
        self._follower = JobFollower(self._moment)
        # By identifier and submission, as identifiers are used again after a while; with the line
        # number, and where among all records the job first appeared: jobs of the same second were
        # submitted in that order.
        self._ended: dict[tuple[str, int], tuple[EndedJob, int, int]] = {}
        self._bad: list[str] = []
        self._under_way: dict[str, int] = {}
        self._seen = 0
        self._notes: list[str] = []

    def _moment(self, stamp: str) -> int:
        month, day, year, time = stamp[:2], stamp[3:5], stamp[6:10], stamp[11:]
        epoch = self._clock.parse(f"{year}-{month}-{day}T{time}")
        if epoch is None:
            raise ValueError(f"{stamp!r} is no date")
        return epoch

    def take(self, text: str, source: str) -> None:
        lines = text.split("\n")
        if lines[-1].strip():
            self._notes.append(f"the last line of {Path(source).name} is cut off and left out")
        for number, line in enumerate(lines[:-1], start=1):
            if not line or line.isspace():
                continue
            try:
                self._take_line(line, number)
            except ValueError as error:
                what = f"{error}"
                if not self._lenient:
                    raise InputError(
                        f"{source}:{number}: {what}; mend the line, or leave malformed lines out "
                        "with --lenient"
                    ) from None
                self._bad.append(f"{Path(source).name}:{number}: {what}")

    def _take_line(self, line: str, number: int) -> None:
        try:
            record = parse_line(line)
        except NotAJobError:
            return
        self._seen += 1
        job = self._follower.take(record)
        if job is not None:
            first_seen = self._under_way.get(job.job_id, self._seen)
            self._ended[job.job_id, job.submit_time] = job, number, first_seen
        if record.kind in "EA":
            self._under_way.pop(record.job_id, None)
        elif record.kind in "QSR" and not record.array_parent:
            self._under_way.setdefault(record.job_id, self._seen)

    def log(self) -> JobLog:
        if not self._ended:
            raise InputError(
                f"{self._source}: no job ended in this accounting log (no E record of one that ran)"
            )
        count = len(self._under_way.keys() - self._follower.deleted)
        if count:
            self._notes.append(f"{count_jobs(count)} had not ended when the log was written")
        columns = [ExportColumn(fact, fact, index, _as_it_is) for index, fact in enumerate(_FACTS)]
        ended = sorted(self._ended.values(), key=lambda found: (found[0].submit_time, found[2]))
        rows = [_row(job) for job, _, _ in ended]
        numbers = [number for _, number, _ in ended]
        export = ExportRows(self._source, rows, numbers, columns, self._bad)
        return job_log_of_rows(
            export, lenient=self._lenient, time_zone=self._time_zone, notes=self._notes
        )


def _row(job: EndedJob) -> tuple[Any, ...]:
    number = re.match(r"\d+", job.job_id)
    return (
        number[0] if number else job.job_id,
        job.array_id,
        job.user,
        job.project,
        job.queue,
        job.job_name,
        job.submit_time,
        job.eligible_time,
        job.start_time,
        job.end_time,
        job.runtime,
        job.requested_time,
        job.processors,
        job.allocated_processors,
        _STATE_OF_ENDING[job.ending],
    )


# Writing ----------------------------------------------------------------------------------------

_Event: TypeAlias = tuple[int, str, str]  # epoch seconds, kind, what follows
_SERVER = "pbs"
_FIRST_CLOCK = 1_000_000_000  # of a workload that does not say when it began


def write_pbs_accounting(
    workload: Workload,
    folder: Path | str,
    *,
    wait: Int64Array | None = None,
    time_zone: str | None = None,
) -> None:
    """Write a workload as PBS would have accounted for it: a file for each day, Q, S and E records.

    Reading them gives the same jobs: names, times, processors and endings; tasks of an array get
    the array's number.

    Parameters
    ----------
    workload
        The jobs.
    folder
        Where the files go; made if absent.
    wait
        Shape (jobs,), seconds; the logged waits if not given, 0 where there are none.
    time_zone
        Name of the time zone of stamps and days; UTC if not given.

    Raises
    ------
    InputError
        If a file can't be written, a name has a character that PBS can't have in it, or the time
        zone is unknown.
    """
    folder = Path(folder)
    clock = workload.unix_start_time or _FIRST_CLOCK
    if wait is None:
        logged = workload.logged_wait
        wait = np.zeros(len(workload), dtype=np.int64) if logged is None else logged.filled(0)
    stamps = _Stamps(time_zone)
    events: list[_Event] = []
    for line in _job_lines(workload, clock, wait):
        events.extend(line)
    events.sort(key=lambda event: event[0])
    days: dict[str, list[str]] = defaultdict(list)
    for time, kind, rest in events:
        day, stamp = stamps.of(time)
        days[day].append(f"{stamp};{kind};{rest}\n")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None
    for day, lines in days.items():
        write_text(folder / day, "".join(lines))


def _job_lines(workload: Workload, clock: int, wait: Int64Array) -> Iterator[tuple[_Event, ...]]:
    """Give each job's records."""
    names = _job_names(workload)
    columns = [
        _field_words("user", workload, "users"),
        _field_words("account", workload, "projects"),
        _field_words("jobname", workload, "executables"),
        _field_words("queue", workload, "queues"),
    ]
    submits = (workload.submit_time + clock).tolist()
    starts = (workload.submit_time + clock + wait).tolist()
    runtimes, requests = workload.actual_runtime.tolist(), workload.requested_time.tolist()
    processors = workload.processors.tolist()
    for job, name in enumerate(names):
        submit, start, runtime, count = submits[job], starts[job], runtimes[job], processors[job]
        said = "".join(column[job] for column in columns)
        resources = (
            f"Resource_List.ncpus={count} Resource_List.nodect=1 Resource_List.place=free "
            f"Resource_List.select=1:ncpus={count} "
            f"Resource_List.walltime={format_pbs_duration(requests[job])}"
        )
        times = f"{said}ctime={submit} qtime={submit} etime={submit}"
        ending = workload.ending(job) or Ending.COMPLETED
        began = f"{name};{times} start={start} {resources}"
        ended = (
            f"{began} session=1 end={start + runtime} Exit_status={EXIT_OF_ENDING[ending]} "
            f"resources_used.ncpus={count} "
            f"resources_used.walltime={format_pbs_duration(runtime)} run_count=1"
        )
        submitted = f"{name};{times} {resources}"
        yield (submit, "Q", submitted), (start, "S", began), (start + runtime, "E", ended)


def _job_names(workload: Workload) -> list[str]:
    """Give each job's identifier; tasks of an array are numbered within it."""
    ids = workload.job_id.tolist()
    if len(set(ids)) < len(ids):
        ids = list(range(1, len(ids) + 1))
    arrays = workload.array_ids
    if arrays is None:
        return [f"{job_id}.{_SERVER}" for job_id in ids]
    numbers = [int(match[0]) if (match := re.match(r"\d+", name)) else None
               for name in arrays.names]  # fmt: skip
    if None in numbers or len(set(numbers)) < len(numbers):
        numbers = list(range(1, len(numbers) + 1))
    tasks: dict[int, int] = defaultdict(int)
    names = []
    for job_id, code in zip(ids, arrays.codes.tolist(), strict=True):
        if code < 0:
            names.append(f"{job_id}.{_SERVER}")
        else:
            names.append(f"{numbers[code]}[{tasks[code]}].{_SERVER}")
            tasks[code] += 1
    return names


def _field_words(field: str, workload: Workload, column: str) -> list[str]:
    """Give ``field=name`` and a blank for each job; nothing where it has no name."""
    labels = getattr(workload, column)
    if labels is None:
        return [""] * len(workload)
    words = []
    for name in labels.names:
        if any(sign in name for sign in '"\n\r') or not name:
            raise InputError(
                f"{workload.name}: {field} {name!r} can't stand in a PBS accounting log; rename it"
            )
        words.append(f'{field}="{name}" ' if " " in name else f"{field}={name} ")
    words.append("")
    return [words[code] for code in labels.codes.tolist()]


class _Stamps:
    """Days and stamps of epoch seconds; each minute's is worked out once."""

    def __init__(self, time_zone: str | None) -> None:
        self._zone: datetime.tzinfo = datetime.UTC
        if time_zone is not None:
            Clock(time_zone)  # a clear error for an unknown one
            self._zone = zoneinfo.ZoneInfo(time_zone)
        self._minutes: dict[int, tuple[str, str]] = {}

    def of(self, time: int) -> tuple[str, str]:
        minute, second = divmod(time, 60)
        known = self._minutes.get(minute)
        if known is None:
            moment = datetime.datetime.fromtimestamp(minute * 60, self._zone)
            known = moment.strftime("%Y%m%d"), moment.strftime("%m/%d/%Y %H:%M:")
            self._minutes[minute] = known
        day, stamp = known
        return day, f"{stamp}{second:02d}"
