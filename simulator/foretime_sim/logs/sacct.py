"""Output of Slurm's ``sacct --parsable2``, with or without its header line."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.durations import parse_duration
from foretime_sim.logs.accounting import Clock, parse_number
from foretime_sim.logs.accounting_log import (
    ExportColumn,
    ExportRows,
    job_log_of_rows,
    parse_name,
    parse_processors,
    refuse_or_note,
)
from foretime_sim.logs.accounting_resources import (
    parse_count,
    parse_requested_memory,
    tres_count,
    tres_memory,
)
from foretime_sim.workloads.job_log import JobLog

COMMAND = (
    "sacct --allusers --duplicates --parsable2 --starttime=... --format=JobID,JobIDRaw,User,"
    "Account,Partition,QOS,Submit,Eligible,Start,End,ElapsedRaw,Suspended,State,ReqCPUS,NCPUS,"
    "TimelimitRaw,ReqNodes,NNodes,ReqMem,ReqTRES,AllocTRES,Constraints"
)
"""What a site runs to get a log with everything that Foretime can use."""

FIELD_PRESETS = {
    "xdmod": "JobID,JobIDRaw,Cluster,Partition,QOS,Account,Group,GID,User,UID,Submit,Eligible,"
    "Start,End,Elapsed,ExitCode,State,NNodes,NCPUS,ReqCPUS,ReqMem,ReqTRES,AllocTRES,Timelimit,NodeList,"
    "JobName",
}
"""Fields of well-known exports without header line."""

_FIELD_NAMES = """
    Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID Cluster Comment Constraints
    Container CPUTime CPUTimeRAW DBIndex DerivedExitCode Elapsed ElapsedRaw Eligible End
    ExitCode Extra FailedNode Flags GID Group JobID JobIDRaw JobName Licenses MCSLabel NCPUS
    NNodes NodeList NTasks Partition Planned PlannedCPU PlannedCPURAW Priority QOS QOSRAW
    QOSREQ Reason ReqCPUFreq ReqCPUS ReqMem ReqNodes ReqTRES Reservation ReservationId
    Restarts Reserved ResvCPU Start State StdErr StdIn StdOut Submit SubmitLine Suspended
    SystemComment SystemCPU Timelimit TimelimitRaw TotalCPU TRESUsageInTot UID User UserCPU
    WCKey WCKeyID WorkDir
"""
KNOWN_FIELDS = tuple(_FIELD_NAMES.split())
"""Fields that ``sacct --format`` knows; any other name in a header is taken as it is."""


def parse_sacct(
    text: str,
    *,
    source: str,
    columns: str | None = None,
    time_zone: str | None = None,
    lenient: bool = False,
) -> JobLog:
    """Make a `JobLog` of the text that ``sacct --parsable2`` printed.

    Job steps ("123.batch") are skipped: their job's own line says it all. ``Elapsed`` is without
    suspended time already; where only ``Start`` and ``End`` are there, ``Suspended`` is taken off.

    Parameters
    ----------
    text
        What it printed.
    source
        The file's name, for messages.
    columns
        The fields, as they were given to ``sacct --format``, where there is no header line; or
        the name of a preset ("xdmod").
    time_zone
        Name of the site's time zone, in which sacct prints times; UTC if not given.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.

    Raises
    ------
    InputError
        If a line is malformed; names file, line, field and value.
    """
    numbered = [
        (number, line) for number, line in enumerate(text.split("\n"), start=1) if line.strip()
    ]
    if not numbered:
        raise InputError(f"{source}: the file is empty; run: {COMMAND}")
    fields, has_header = _fields(numbered[0][1], columns, source)
    trailing = has_header and numbered[0][1].endswith("|")  # --parsable, not --parsable2
    rows: list[list[str]] = []
    line_numbers: list[int] = []
    bad: list[str] = []
    step_column = fields.index("jobid") if "jobid" in fields else fields.index("jobidraw")
    for number, line in numbered[1:] if has_header else numbered:
        words = (line.removesuffix("|") if trailing else line).split("|")
        if len(words) > len(fields) and fields[-1] in ("jobname", "comment", "submitline"):
            words[len(fields) - 1 :] = ["|".join(words[len(fields) - 1 :])]
        if len(words) != len(fields):
            what = f"{len(words)} fields where there should be {len(fields)}: {line[:60]!r}"
            refuse_or_note(source, number, what, bad, lenient=lenient)
        elif "." not in words[step_column]:
            rows.append(words)
            line_numbers.append(number)
    export = ExportRows(source, rows, line_numbers, _columns(fields, Clock(time_zone)), bad)
    return job_log_of_rows(export, lenient=lenient, time_zone=time_zone)


def _fields(first_line: str, columns: str | None, source: str) -> tuple[list[str], bool]:
    """Give the fields in lower case, and whether the first line is a header that names them."""
    words = [word.strip().lower() for word in first_line.removesuffix("|").split("|")]
    if "jobid" in words or "jobidraw" in words:
        if columns is not None:
            raise InputError(
                f"{source}:1: --columns is for a file without a header line; leave it out"
            )
        return words, True
    if columns is None:
        raise InputError(
            f"{source}:1: {len(words)} fields without a header line; say what they are as given to "
            "sacct --format, with --columns JobID,JobIDRaw,... (or --columns "
            f"{' or '.join(FIELD_PRESETS)}), or run: {COMMAND}"
        )
    fields = [field.strip() for field in FIELD_PRESETS.get(columns, columns).split(",")]
    known = {field.lower(): field for field in KNOWN_FIELDS}
    for field in fields:
        name = field.split("%")[0].lower()
        if name not in known:
            near = difflib.get_close_matches(name, [*known, *FIELD_PRESETS], n=1, cutoff=0.5)
            hint = f"; did you mean {known.get(near[0], near[0])}?" if near else ""
            raise InputError(f"--columns: sacct has no field {field!r}{hint}")
    lowered = [field.split("%")[0].lower() for field in fields]
    if "jobid" not in lowered and "jobidraw" not in lowered:
        raise InputError("--columns: JobID or JobIDRaw must be among the fields")
    if len(lowered) != len(words):
        raise InputError(
            f"{source}:1: {len(words)} fields, but --columns names {len(lowered)}; they must agree"
        )
    return lowered, False


def _columns(fields: Sequence[str], clock: Clock) -> list[ExportColumn]:
    """Give where each fact stands; of several fields that say the same, the first in this list."""

    def minutes(word: str) -> int | None:
        return parse_number(word, 60)

    def seconds(word: str) -> int | None:
        return parse_number(word)

    wanted: list[tuple[str, str, Callable[[str], Any]]] = [
        ("job_id", "jobidraw", parse_name),
        ("job_id", "jobid", parse_name),
        ("array_id", "jobid", _array_id),
        ("user", "user", parse_name),
        ("user", "uid", parse_name),
        ("project", "account", parse_name),
        ("queue", "partition", parse_name),
        ("qos", "qos", parse_name),
        ("executable", "jobname", parse_name),
        ("submit_time", "submit", clock.parse),
        ("eligible_time", "eligible", clock.parse),
        ("start_time", "start", clock.parse),
        ("end_time", "end", clock.parse),
        ("runtime", "elapsedraw", seconds),
        ("runtime", "elapsed", parse_duration),
        ("suspended_time", "suspended", parse_duration),
        ("requested_time", "timelimitraw", minutes),
        ("requested_time", "timelimit", parse_duration),
        ("requested_processors", "reqcpus", parse_processors),
        ("allocated_processors", "alloccpus", parse_processors),
        ("allocated_processors", "ncpus", parse_processors),
        ("state", "state", parse_name),
        ("requested_nodes", "reqnodes", parse_count),
        ("requested_nodes", "reqtres", tres_count("node")),
        ("allocated_nodes", "allocnodes", parse_count),
        ("allocated_nodes", "nnodes", parse_count),
        ("requested_memory", "reqtres", tres_memory),
        ("memory_request", "reqmem", parse_requested_memory),
        ("requested_gpus", "reqtres", tres_count("gres/gpu")),
        ("allocated_gpus", "alloctres", tres_count("gres/gpu")),
        ("constraint", "constraints", parse_name),
    ]
    found: dict[str, ExportColumn] = {}
    spelling = {field.lower(): field for field in KNOWN_FIELDS}
    for fact, field, parse in wanted:
        if field in fields and fact not in found:
            found[fact] = ExportColumn(fact, spelling[field], fields.index(field), parse)
    return list(found.values())


def _array_id(word: str) -> str | None:
    """Give the array of a job identifier like 123_4, ``None`` for other jobs."""
    array, underscore, _ = word.partition("_")
    return array if underscore else None
