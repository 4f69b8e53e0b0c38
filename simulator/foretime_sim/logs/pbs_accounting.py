"""PBS accounting logs as job logs: ``server_priv/accounting``, and its files."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.file_kinds import is_folder
from foretime_sim.logs.accounting import STATE_OF_ENDING, Clock
from foretime_sim.logs.accounting_log import ExportColumn, ExportRows, job_log_of_rows
from foretime_sim.logs.pbs_records import (
    STAMP,
    EndedJob,
    JobFollower,
    NotAJobError,
    parse_line,
)
from foretime_sim.workloads.job_log import JobLog, count_jobs

FILE_NAME = re.compile(r"(\d{8})(?:\.gz|\.xz)?", re.ASCII)
"""What PBS calls its accounting files, a day each."""
RECORD = re.compile(STAMP.pattern + r";[A-Za-z];", re.ASCII)
"""How a line of one begins."""


def read_pbs_accounting(
    path: Path | str, *, time_zone: str | None = None, lenient: bool = False
) -> JobLog:
    """Read a folder of PBS's accounting files, or one of them; plain or compressed.

    Every job that ended is there once, with its last run; see `foretime_sim.logs.pbs_records` for
    how its records are understood. Jobs that never ran are not.

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
    if is_folder(path):
        found = [file for file in path.iterdir() if FILE_NAME.fullmatch(file.name)]
        files = sorted(found, key=lambda file: file.name[:8])
        if not files:
            raise InputError(
                f"{path}: is a folder without PBS accounting files (called YYYYMMDD); name "
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
        STATE_OF_ENDING[job.ending],
    )
