"""Cobalt's event logs: jobs of a Blue Gene, with the bgp_partition that each really had.

A line has the form of PBS's accounting: ``MM/DD/YYYY HH:MM:SS;KIND;JOB;key=value key=value ...``.
``S`` is written when a job starts and ``E`` when it has ended; the latter repeats all that the
former says, so a job is read from its ``E``. Times are epoch seconds with a fraction. What
PBS calls processors are nodes here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.durations import parse_duration
from foretime_sim.logs.accounting import parse_number
from foretime_sim.logs.accounting_log import (
    ExportColumn,
    ExportRows,
    job_log_of_rows,
    parse_name,
    parse_processors,
    refuse_or_note,
)
from foretime_sim.logs.pbs_records import STAMP, fields_of, parse_line
from foretime_sim.workloads.job_log import JobLog, count_jobs

COBALT_RECORD = re.compile(
    STAMP.pattern + r";[SE];\d+;(?!.*\bctime=).*\bqtime=.*\bexec_host=[^/\s]+(?:\s|$)", re.ASCII
)
"""How a start or end of Cobalt's is told from PBS's: no ``ctime``, and a bgp_partition as host."""
_NEEDED = {
    "qtime": ("submit_time", parse_number),
    "start": ("start_time", parse_number),
    "end": ("end_time", parse_number),
    "Resource_List.walltime": ("requested_time", parse_duration),
    "Resource_List.nodect": ("requested_processors", parse_processors),
}
"""What every ended job's record has, which fact it is, and how it is read."""
_JOB_NUMBER = re.compile(r"0|[1-9]\d{0,14}", re.ASCII)
_BGP_PARTITION = "exec_host"
"""It has this, too: the bgp_partition's name."""


@dataclass(frozen=True, slots=True)
class CobaltLog:
    """A log's jobs, and where they ran.

    Attributes
    ----------
    job_log
        The jobs; processors are nodes, queues those that jobs were in at their end.
    bgp_partition_of
        Name of the bgp_partition that each job had, by job number.
    """

    job_log: JobLog
    bgp_partition_of: Mapping[int, str]


def read_cobalt_log(path: Path | str, *, lenient: bool = False) -> CobaltLog:
    """Read an event log, plain or compressed with gzip or xz.

    Parameters
    ----------
    path
        The file.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.

    Raises
    ------
    InputError
        If the file can't be read or a line is malformed; names file, line, field and value.
    """
    return parse_cobalt_log(read_text(Path(path)), source=str(path), lenient=lenient)


def parse_cobalt_log(text: str, *, source: str, lenient: bool = False) -> CobaltLog:
    """Make a `CobaltLog` of the text of an event log; see `read_cobalt_log`."""
    bad: list[str] = []
    ended: dict[str, tuple[int, dict[str, str]]] = {}
    under_way: set[str] = set()
    again = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            record = parse_line(line)
            fields = fields_of(record.message)
            _check_number(record.job_id)
            if record.kind == "E":
                _check_fields(fields)
        except ValueError as error:
            refuse_or_note(source, number, str(error), bad, lenient=lenient)
            continue
        if record.kind == "S":
            under_way.add(record.job_id)
        elif record.kind == "E":
            again += record.job_id in ended
            under_way.discard(record.job_id)
            ended[record.job_id] = number, fields
    if not ended:
        raise InputError(f"{source}: no job ended in this log (no E record)")
    notes = []
    if under_way:
        notes.append(f"{count_jobs(len(under_way))} had not ended when the log was written")
    if again:
        notes.append(f"{count_jobs(again)} run again; the last run counts")
    read = [
        *((fact, key, parse) for key, (fact, parse) in _NEEDED.items()),
        ("job_id", "job", parse_name),
        ("queue", "queue", parse_name),
        ("user", "user", parse_name),
        ("project", "account", parse_name),
    ]
    columns = [
        ExportColumn(fact, key, index, parse) for index, (fact, key, parse) in enumerate(read)
    ]
    rows = [
        (
            *(fields[key] for key in _NEEDED),
            job_id,
            fields.get("queue_name", fields.get("queue", "")),
            fields.get("user", ""),
            fields.get("account", fields.get("project", "")),
        )
        for job_id, (_, fields) in ended.items()
    ]
    export = ExportRows(source, rows, [number for number, _ in ended.values()], columns, bad)
    job_log = job_log_of_rows(export, lenient=lenient, time_zone=None, notes=notes)
    had = {int(job_id): fields[_BGP_PARTITION] for job_id, (_, fields) in ended.items()}
    return CobaltLog(job_log, {number: had[number] for number in job_log.job_id.tolist()})


def _check_number(job_id: str) -> None:
    if _JOB_NUMBER.fullmatch(job_id) is None:
        raise ValueError(f"{job_id[:60]!r} is no number of a job of Cobalt's")


def _check_fields(fields: Mapping[str, str]) -> None:
    for name in (*_NEEDED, _BGP_PARTITION):
        if not fields.get(name):
            raise ValueError(f"the E record has no {name}")
