"""From the rows of an accounting export, whichever format it had, to a `JobLog`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.files.compressed_files import name_without_endings
from foretime_sim.logs.accounting import ending_of_state, endings_and_status
from foretime_sim.logs.accounting_resources import RESOURCE_FACTS, requests_of_facts
from foretime_sim.machines.largest_machine import MAX_PROCESSORS
from foretime_sim.workloads.job_log import (
    JobLog,
    count_jobs,
    count_lines,
    labels_of,
    masked_column,
    missing_column,
    missing_cpu_times,
    missing_endings,
)

SHOWN_BAD_LINES = 3
JOB_NUMBER = re.compile(r"(\d+)(?:[_+]\[?\d.*)?", re.ASCII)
ARRAY_TASK = re.compile(r"(\d+)_.+", re.ASCII)

FACTS: Mapping[str, str] = {
    "job_id": "the job's number; any text, if it has none",
    "array_id": "the job array it is a task of",
    "user": "who submitted it",
    "project": "account or project it is charged to",
    "queue": "partition or queue",
    "executable": "application or job name",
    "submit_time": "when it was submitted",
    "eligible_time": "when it could first start (after a hold or a dependency)",
    "start_time": "when it started",
    "end_time": "when it ended",
    "runtime": "how long it ran, without suspended time",
    "suspended_time": "how long it was suspended",
    "requested_time": "walltime asked for",
    "requested_processors": "processors asked for",
    "allocated_processors": "processors it got",
    "state": "its state as Slurm names it (COMPLETED, TIMEOUT, ...)",
    "qos": "its quality of service (Slurm)",
    **RESOURCE_FACTS,
}
"""What can be known of a job, by the name used in mappings."""


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """Where in a row a fact stands, and how it is read.

    ``parse`` gives ``None`` for a missing value and raises ValueError with a reason.
    """

    fact: str
    name: str
    index: int
    parse: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class ExportRows:
    """The jobs' rows of an export with the lines they stand in.

    Attributes
    ----------
    source
        The file's path, for messages.
    rows
        What stands in each row, as ``parse`` of its column takes it.
    line_numbers
        The line of each row, from 1.
    columns
        The facts that are read, one column each.
    bad_lines
        Malformed rows already left out (with ``lenient``), a description each.
    """

    source: str
    rows: Sequence[Sequence[Any]]
    line_numbers: Sequence[int]
    columns: Sequence[ExportColumn]
    bad_lines: Sequence[str] = ()


def refuse_or_note(
    source: str, line_number: int, what: str, bad: list[str], *, lenient: bool
) -> None:
    """Refuse a malformed line, or add it to what was left out.

    Raises
    ------
    InputError
        Unless lenient.
    """
    if not lenient:
        raise InputError(
            f"{source}:{line_number}: {what}; mend the line, or leave malformed lines out with "
            "--lenient"
        )
    bad.append(f"line {line_number}: {what}")


def parse_name(word: str) -> str | None:
    """Give a name, ``None`` for an empty one."""
    return word.strip() or None


def parse_processors(word: str) -> int | None:
    """Give a number of processors; ``None`` for 0 and missing values; ValueError if it is none."""
    word = word.strip()
    if word.lower() in ("", "unknown", "none", "nan"):
        return None
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        raise ValueError("not a number of processors") from None
    if not (0 <= value <= MAX_PROCESSORS and value == int(value)):
        raise ValueError(f"not a whole number of processors from 0 to {MAX_PROCESSORS:,}")
    return int(value) or None


def job_log_of_rows(
    export: ExportRows, *, lenient: bool, time_zone: str | None, notes: Sequence[str] = ()
) -> JobLog:
    """Make a `JobLog` of an export's rows.

    Time zero is the first submission. A job that became eligible after its submission (held,
    or waiting for another job) counts as submitted then, since it could not have started before.

    Parameters
    ----------
    export
        The rows.
    lenient
        Leave malformed rows out and say so in the notes, instead of refusing the log.
    time_zone
        Kept in the log.
    notes
        What the reader has to say already.

    Raises
    ------
    InputError
        If a value can't be read, or a fact that a log needs has no column.
    """
    _check_facts(export)
    notes = list(notes)
    facts, bad = _parse_columns(export, lenient)
    jobs = len(export.rows)
    runtimes, endings, unfinished = _outcomes(export, facts, lenient, bad)
    problems = [*export.bad_lines, *(bad[row] for row in sorted(bad))]
    if problems:
        more = len(problems) - SHOWN_BAD_LINES
        notes.append(
            f"{count_lines(len(problems))} left out ({'; '.join(problems[:SHOWN_BAD_LINES])}"
            + (f"; and {more:,} more)" if more > 0 else ")")
        )
    good = [row for row in range(jobs) if row not in bad]
    if not good:
        raise InputError(f"{export.source}: the log has no jobs")
    if unfinished:
        notes.append(f"{count_jobs(unfinished)} had not ended when the log was written")

    def kept(fact: str) -> list[Any]:
        values = facts.get(fact)
        return [None] * len(good) if values is None else [values[row] for row in good]

    submits, late = _submissions(kept("submit_time"), kept("eligible_time"))
    if late:
        notes.append(f"{count_jobs(late)} counted as submitted on becoming eligible")
    known = [submit for submit in submits if submit is not None]
    if not known:
        raise InputError(f"{export.source}: no job has a submit time")
    zero = min(known)
    waits = [
        None if start is None or submit is None or start < submit else start - submit
        for start, submit in zip(kept("start_time"), submits, strict=True)
    ]
    job_ids, id_note = _job_numbers(kept("job_id"), numbered="job_id" in facts)
    notes.extend(id_note)
    array_ids = kept("array_id")
    if "array_id" not in facts:
        array_ids = [_array_of(job_id) for job_id in kept("job_id")]
    requested_processors = masked_column(kept("requested_processors"))
    processors = [
        requested or allocated
        for requested, allocated in zip(
            kept("requested_processors"), kept("allocated_processors"), strict=True
        )
    ]
    if "state" in facts:
        ending_codes, status = endings_and_status([endings[row] for row in good])
    else:
        ending_codes, status = missing_endings(len(good)), missing_column(len(good))
    return JobLog(
        name=name_without_endings(Path(export.source)),
        source=export.source,
        job_id=np.array(job_ids, dtype=np.int64),
        submit_time=masked_column([None if time is None else time - zero for time in submits]),
        wait=masked_column(waits),
        runtime=masked_column([runtimes[row] for row in good]),
        allocated_processors=masked_column(kept("allocated_processors")),
        average_cpu_time=missing_cpu_times(len(good)),
        used_memory=missing_column(len(good)),
        requested_processors=requested_processors,
        requested_time=masked_column(kept("requested_time")),
        requested_memory=missing_column(len(good)),
        status=status,
        endings=ending_codes,
        preceding_job=missing_column(len(good)),
        think_time=missing_column(len(good)),
        users=labels_of(kept("user")),
        projects=labels_of(kept("project")),
        executables=labels_of(kept("executable")),
        queues=labels_of(kept("queue")),
        array_ids=labels_of(array_ids),
        qos=labels_of(kept("qos")),
        requests=requests_of_facts(kept, processors),
        unix_start_time=zero,
        time_zone=time_zone,
        notes=tuple(notes),
    ).sorted_by_submission()


def _check_facts(export: ExportRows) -> None:
    """Raise unless there is a column for everything a log can't do without."""
    have = {column.fact for column in export.columns}
    missing = []
    if "submit_time" not in have:
        missing.append("submit_time")
    if "runtime" not in have and not {"start_time", "end_time"} <= have:
        missing.append("runtime (or start_time and end_time)")
    if not have & {"requested_processors", "allocated_processors"}:
        missing.append("requested_processors (or allocated_processors)")
    if missing:
        raise InputError(
            f"{export.source}: no column gives {', '.join(missing)}; a replay needs these, and "
            "requested_time, user and state to learn from"
        )


def _parse_columns(
    export: ExportRows, lenient: bool
) -> tuple[dict[str, list[Any]], dict[int, str]]:
    """Give the values of every fact, and the rows that could not be read with the reason."""
    facts: dict[str, list[Any]] = {}
    bad: dict[int, str] = {}
    for column in export.columns:
        parse, index = column.parse, column.index
        values: list[Any] = []
        for row, words in enumerate(export.rows):
            try:
                values.append(parse(words[index]))
            except ValueError as error:
                _report(export, row, f"{column.name} is {words[index]!r}: {error}", lenient, bad)
                values.append(None)
        facts[column.fact] = values
    return facts, bad


def _report(export: ExportRows, row: int, what: str, lenient: bool, bad: dict[int, str]) -> None:
    """Refuse a row, or keep in mind that it is left out."""
    line = export.line_numbers[row]
    if not lenient:
        raise InputError(
            f"{export.source}:{line}: {what}; mend the line, or leave malformed lines out with "
            "--lenient"
        )
    bad.setdefault(row, f"line {line}: {what}")


def _outcomes(
    export: ExportRows, facts: dict[str, list[Any]], lenient: bool, bad: dict[int, str]
) -> tuple[list[int | None], list[Ending | None], int]:
    """Give runtimes and endings (``None`` if unknown) and how many jobs had not ended."""
    jobs = len(export.rows)
    nothing: list[Any] = [None] * jobs
    starts, ends = facts.get("start_time", nothing), facts.get("end_time", nothing)
    said, suspended = facts.get("runtime", nothing), facts.get("suspended_time", nothing)
    states: list[str | None] = facts.get("state", nothing)
    runtimes: list[int | None] = []
    endings: list[Ending | None] = []
    unfinished = 0
    for row in range(jobs):
        start, end, runtime = starts[row], ends[row], said[row]
        if runtime is None and start is not None and end is not None:
            runtime = end - start - (suspended[row] or 0)
            if runtime < 0 and row not in bad:
                _report(export, row, "the job ended before it started", lenient, bad)
        started = start is not None if "start_time" in facts else bool(runtime)
        ending = None
        if states[row] is not None and row not in bad:
            try:
                ending = ending_of_state(states[row] or "", started)
            except ValueError as error:
                _report(export, row, f"state is {states[row]!r}: {error}", lenient, bad)
            if ending is None:
                unfinished += row not in bad
                started = False
            elif ending is Ending.CANCELLED and not runtime:
                ending, started = Ending.NEVER_STARTED, False  # older Slurm gives it a start
        runtimes.append(runtime if started else None)
        endings.append(ending)
    return runtimes, endings, unfinished


def _submissions(
    submits: Sequence[int | None], eligibles: Sequence[int | None]
) -> tuple[list[int | None], int]:
    """Give when jobs could first start, and how many of them later than they were submitted."""
    late = 0
    times: list[int | None] = []
    for submit, eligible in zip(submits, eligibles, strict=True):
        if submit is not None and eligible is not None and eligible > submit:
            late += 1
            times.append(eligible)
        else:
            times.append(submit)
    return times, late


def _job_numbers(names: Sequence[str | None], *, numbered: bool) -> tuple[list[int], list[str]]:
    """Give job numbers: the log's, or 1, 2, 3 where it has other names for jobs."""
    numbers = []
    for name in names:
        match = JOB_NUMBER.fullmatch(name or "")
        if match is None or len(match[1]) > 15:
            note = ["job names are not numbers; jobs were numbered from 1"] if numbered else []
            return list(range(1, len(names) + 1)), note
        numbers.append(int(match[1]))
    return numbers, []


def _array_of(job_id: str | None) -> str | None:
    """Give the job array that a job identifier like 123_4 belongs to."""
    match = ARRAY_TASK.fullmatch(job_id or "")
    return match[1] if match else None
