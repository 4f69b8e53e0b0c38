"""The Standard Workload Format of the Parallel Workloads Archive: 18 numbers a job.

Source: S. J. Chapin et al., "Benchmarks and standards for the evaluation of parallel job
schedulers", JSSPP 1999, and the archive's definition of version 2.2.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import (
    Float64Array,
    Int64Array,
    MaskedFloat64Array,
    MaskedInt64Array,
)
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending

from foretime_sim import _core
from foretime_sim.files.compressed_files import name_without_endings, read_text, write_text
from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.machines.largest_machine import MAX_PROCESSORS
from foretime_sim.workloads.job_log import JobLog, count_lines, labels_of_numbers
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.workload import ENDINGS, MaskedEndings

MAX_NUMBER = 2**53
"""Whole numbers up to here are exact in float64."""


@dataclass(frozen=True, slots=True)
class SwfField:
    """One of the 18 fields: the name that messages use and the largest value that makes sense."""

    name: str
    largest: int


FIELDS: tuple[SwfField, ...] = (
    SwfField("job number", MAX_NUMBER),
    SwfField("submit time", MAX_SECONDS),
    SwfField("wait time", MAX_SECONDS),
    SwfField("run time", MAX_SECONDS),
    SwfField("number of allocated processors", MAX_PROCESSORS),
    SwfField("average CPU time used", MAX_SECONDS),
    SwfField("used memory", MAX_NUMBER),
    SwfField("requested number of processors", MAX_PROCESSORS),
    SwfField("requested time", MAX_SECONDS),
    SwfField("requested memory", MAX_NUMBER),
    SwfField("status", 5),
    SwfField("user ID", 2**31 - 1),
    SwfField("group ID", 2**31 - 1),
    SwfField("executable number", 2**31 - 1),
    SwfField("queue number", 2**31 - 1),
    SwfField("partition number", 2**31 - 1),
    SwfField("preceding job number", MAX_NUMBER),
    SwfField("think time", MAX_SECONDS),
)
LARGEST = [column.largest for column in FIELDS]
JOB_NUMBER, CPU_TIME = 0, 5

LABEL_FIELDS = {
    "users": (11, "User", "user"),
    "projects": (12, "Group", "group"),
    "executables": (13, "Executable", "executable"),
    "queues": (14, "Queue", "queue"),
    "slurm_partitions": (15, "Partition", "partition"),
}
"""Column of names: its SWF field (from 0), its header keyword, and what unnamed numbers are called.

The archive's headers name queues and partitions; the other three keywords are ours.
"""

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", re.ASCII)
HEADER_FIELD = re.compile(r";\s*([A-Za-z]+)\s*:\s*(.*?)\s*")
SHOWN_BAD_LINES = 3


def read_swf(path: Path | str, *, lenient: bool = False) -> JobLog:
    """Read a log in the Standard Workload Format, plain or compressed.

    Parameters
    ----------
    path
        The file.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.

    Raises
    ------
    InputError
        If the file can't be read, or a line is malformed; names file, line, field and value.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim import generate, write_swf
    >>> from foretime_sim.logs.swf import read_swf
    >>> from foretime_sim.workloads.job_log import log_of_workload
    >>> log = log_of_workload(generate("lublin2003", jobs=100, seed=1))
    >>> with TemporaryDirectory() as folder:
    ...     write_swf(log, f"{folder}/made.swf")
    ...     len(read_swf(f"{folder}/made.swf"))
    100
    """
    path = Path(path)
    return parse_swf(read_text(path), source=str(path), lenient=lenient)


def parse_swf(text: str, *, source: str, lenient: bool = False) -> JobLog:
    """Make a `JobLog` of the text of an SWF file; see `read_swf`."""
    comments, body = _split_comments(text)
    table = _read_fast(body)
    notes: list[str] = []
    if table is None:
        table, notes = _read_line_by_line(text, source, lenient)
    if not len(table.cpu_time):
        raise InputError(
            f"{source}: the log has no jobs, only comments; name another log, or one that is whole"
        )
    fractional = [
        column.name
        for index, column in enumerate(FIELDS)
        if index != CPU_TIME and table.fractional[index]
    ]
    if fractional:
        notes.append(f"fractions in {', '.join(fractional)} were rounded to whole numbers")

    header = _header_fields(comments)
    header_numbers = {}
    for keyword, least in _HEADER_NUMBERS.items():
        header_numbers[keyword] = _leading_number(header, keyword, source, at_least=least)
        given = header.get(keyword, [])
        if given and header_numbers[keyword] is None and not set(given) & _UNKNOWN:
            notes.append(
                f"the header's {keyword} is {_shown(given[0])}, no number of at least {least}:"
                " taken as not known"
            )

    def number(index: int) -> MaskedInt64Array:
        values = table.numbers[index]
        return np.ma.MaskedArray(values, mask=values < 0)

    def labels(column: str) -> Labels | None:
        index, keyword, prefix = LABEL_FIELDS[column]
        return labels_of_numbers(number(index), prefix, _names_in_header(header.get(keyword, [])))

    cpu_time: MaskedFloat64Array = np.ma.MaskedArray(table.cpu_time, mask=table.cpu_time < 0)
    status, runtime, requested_time = number(10), number(3), number(8)
    return JobLog(
        name=name_without_endings(Path(source)),
        source=source,
        job_id=table.numbers[JOB_NUMBER],
        submit_time=number(1),
        wait=number(2),
        runtime=runtime,
        allocated_processors=number(4),
        average_cpu_time=cpu_time,
        used_memory=number(6),
        requested_processors=number(7),
        requested_time=requested_time,
        requested_memory=number(9),
        status=status,
        endings=endings_of_status(status, runtime, requested_time),
        users=labels("users"),
        projects=labels("projects"),
        executables=labels("executables"),
        queues=labels("queues"),
        slurm_partitions=labels("slurm_partitions"),
        preceding_job=number(16),
        think_time=number(17),
        comments=tuple(comments),
        machine_processors=header_numbers["MaxProcs"],
        machine_nodes=header_numbers["MaxNodes"],
        unix_start_time=header_numbers["UnixStartTime"],
        time_zone=next(iter(header.get("TimeZoneString", [])), None),
        notes=tuple(notes),
    ).sorted_by_submission()


_HEADER_NUMBERS = {"MaxProcs": 1, "MaxNodes": 1, "UnixStartTime": 0}
"""Header fields that are numbers, and the least that each can be."""
_UNKNOWN = frozenset({"", "-1", "unknown", "Unknown", "UNKNOWN", "none", "N/A", "?"})
"""How headers say that a value is not known."""


def endings_of_status(
    status: MaskedInt64Array, runtime: MaskedInt64Array, requested_time: MaskedInt64Array
) -> MaskedEndings:
    """Give how jobs ended, from their SWF status; masked where the status is.

    1 and 3 (the last part of a job, which completed) are completed, 0 and 4 failed, 5 cancelled,
    2 (a part, to be continued) preempted. SWF has no word for a job killed at its limit: a failed
    one that ran for its requested time or longer timed out. A cancelled one without runtime never
    started.
    """
    code = {ending: index for index, ending in enumerate(ENDINGS)}
    ran = runtime.filled(0)
    at_limit = (requested_time.filled(0) > 0) & (ran >= requested_time.filled(0))
    known = status.filled(1)
    endings = np.full(len(status), code[Ending.COMPLETED], dtype=np.int8)
    failed = (known == 0) | (known == 4)
    endings[failed] = code[Ending.FAILED]
    endings[failed & at_limit] = code[Ending.TIMED_OUT]
    endings[known == 2] = code[Ending.PREEMPTED]
    endings[known == 5] = code[Ending.CANCELLED]
    endings[(known == 5) & (ran <= 0)] = code[Ending.NEVER_STARTED]
    return np.ma.MaskedArray(endings, mask=np.ma.getmaskarray(status).copy())


def _split_comments(text: str) -> tuple[list[str], str]:
    """Give the comment lines, and the rest."""
    start = 0
    while text.startswith((";", "\n"), start):
        newline = text.find("\n", start)
        if newline < 0:
            start = len(text)
            break
        start = newline + 1
    comments = [line for line in text[:start].split("\n") if line]
    body = text[start:]
    if ";" in body:
        kept = []
        for line in body.split("\n"):
            if line.lstrip().startswith(";"):
                comments.append(line.lstrip())
            else:
                kept.append(line)
        body = "\n".join(kept)
    return comments, body


@dataclass(frozen=True, slots=True)
class _Table:
    """The jobs' fields.

    Attributes
    ----------
    numbers
        Shape (18, jobs): rounded to whole numbers, -1 where unknown.
    cpu_time
        Shape (jobs,): as written.
    fractional
        Shape (18,): whether a number of that field was rounded.
    """

    numbers: Int64Array
    cpu_time: Float64Array
    fractional: Sequence[bool]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> _Table:
        values = np.array(rows, dtype=np.float64).reshape(-1, len(FIELDS)).T
        numbers = np.rint(values)
        return cls(
            numbers.astype(np.int64), values[CPU_TIME], (numbers != values).any(axis=1).tolist()
        )


def _read_fast(body: str) -> _Table | None:
    """Read all lines at once, or ``None`` if any line is not as it should be."""
    if not body.isascii():
        return None
    columns = _core.read_swf(body, LARGEST)
    return None if columns is None else _Table(*columns)


def _read_line_by_line(text: str, source: str, lenient: bool) -> tuple[_Table, list[str]]:
    """Read with care: raises at the first malformed line, or leaves such lines out and counts."""
    rows: list[list[float]] = []
    bad: list[str] = []
    for line_number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith(";"):
            continue
        try:
            rows.append(_parse_line(stripped))
        except ValueError as error:
            if not lenient:
                raise InputError(
                    f"{source}:{line_number}: {error}; mend the line, or leave malformed lines out "
                    "with --lenient"
                ) from None
            bad.append(f"line {line_number}: {error}")
    notes = []
    if bad:
        shown = "; ".join(bad[:SHOWN_BAD_LINES])
        more = f"; and {len(bad) - SHOWN_BAD_LINES:,} more" if len(bad) > SHOWN_BAD_LINES else ""
        notes.append(f"{count_lines(len(bad))} left out ({shown}{more})")
        if not rows:
            raise InputError(f"{source}: no line is a job in SWF: {shown}{more}")
    return _Table.of(rows), notes


def _parse_line(line: str) -> list[float]:
    """Parse one job's line; a ValueError says which field is wrong and why."""
    words = line.split()
    values = []
    for index, (word, column) in enumerate(zip(words, FIELDS, strict=False)):
        what = f"field {index + 1} ({column.name})"
        if not NUMBER.fullmatch(word):
            raise ValueError(f"{what} is not a number: {_shown(word)}")
        value = float(word)
        if not math.isfinite(value) or value > column.largest:
            raise ValueError(f"{what} is too large: {_shown(word)} (at most {column.largest:,})")
        if value < 0 and (value != -1 or index == JOB_NUMBER):
            allowed = "" if index == JOB_NUMBER else " (only -1, for unknown, is allowed)"
            raise ValueError(f"{what} is negative: {_shown(word)}{allowed}")
        values.append(value)
    if len(words) != len(FIELDS):
        raise ValueError(f"{len(words)} fields where SWF has {len(FIELDS)}: {_shown(line)}")
    return values


def _shown(text: str) -> str:
    """Quote a piece of the file for a message, short and printable."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _header_fields(comments: Sequence[str]) -> dict[str, list[str]]:
    """Give the values of ``; Keyword: value`` lines by keyword, in the file's order."""
    fields: dict[str, list[str]] = {}
    for line in comments:
        if match := HEADER_FIELD.fullmatch(line):
            fields.setdefault(match[1], []).append(match[2])
    return fields


def _leading_number(
    header: dict[str, list[str]], keyword: str, source: str, *, at_least: int
) -> int | None:
    """Give the whole number that a header value begins with ("338 (batch partition)" gives 338).

    ``None`` without such a line, and for "-1", "unknown" and the like.
    """
    largest = MAX_SECONDS if keyword == "UnixStartTime" else MAX_PROCESSORS
    for value in header.get(keyword, []):
        if match := re.match(r"\d+(?:,\d{3})*", value, re.ASCII):
            number = int(match[0].replace(",", ""))
            if number > largest:
                raise InputError(
                    f"{source}: header field {keyword} is too large: {_shown(value)} "
                    f"(at most {largest:,})"
                )
            return number if number >= at_least else None
    return None


def _names_in_header(values: Sequence[str]) -> dict[int, str]:
    """Give names by number from the values of lines like ``; Queue: 3 normal``.

    A name that several numbers have ("UNKNOWN") names none of them.
    """
    names = {}
    for value in values:
        words = value.split()
        if len(words) >= 2 and words[0].isascii() and words[0].isdigit():
            names[int(words[0])] = words[1]
    given = Counter(names.values())
    return {number: name for number, name in names.items() if given[name] == 1}


def write_swf(log: JobLog, path: Path | str) -> None:
    """Write a log in the Standard Workload Format, compressed if the name ends in .gz or .xz.

    The header's lines are kept; what they don't say of the machine, the start time and the names
    of users, groups, queues and partitions is added, so that reading gives the same log again.

    Raises
    ------
    InputError
        If the file can't be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim import generate, write_swf
    >>> from foretime_sim.workloads.job_log import log_of_workload
    >>> log = log_of_workload(generate("lublin2003", jobs=100, seed=1))
    >>> with TemporaryDirectory() as folder:
    ...     write_swf(log, f"{folder}/made.swf")
    ...     print(Path(f"{folder}/made.swf").read_text().splitlines()[-1])
    100 179613 -1 27 4 -1 -1 4 36000 -1 1 7 1 19 -1 -1 -1 -1
    """
    write_text(Path(path), format_swf(log))


def format_swf(log: JobLog) -> str:
    """Give the text of a log in the Standard Workload Format; see `write_swf`."""
    lines = [*log.comments, *_missing_header_lines(log)]
    columns = [
        log.job_id.tolist(),
        *(
            column.filled(-1).tolist()
            for column in (log.submit_time, log.wait, log.runtime, log.allocated_processors)
        ),
        _cpu_times(log.average_cpu_time),
        *(
            column.filled(-1).tolist()
            for column in (
                log.used_memory,
                log.requested_processors,
                log.requested_time,
                log.requested_memory,
                log.status,
            )
        ),
        *(_numbers(getattr(log, name), len(log)).tolist() for name in LABEL_FIELDS),
        log.preceding_job.filled(-1).tolist(),
        log.think_time.filled(-1).tolist(),
    ]
    row = " ".join(["%s"] * len(FIELDS))
    lines.extend(row % values for values in zip(*columns, strict=True))
    return "\n".join(lines) + "\n"


def _cpu_times(column: MaskedFloat64Array) -> list[int | float]:
    """Give CPU times as they are to be printed: without fraction where they have none."""
    return [int(value) if value % 1 == 0 else value for value in column.filled(-1.0).tolist()]


def _swf_numbers(labels: Labels) -> tuple[int, ...]:
    """Give a number for each name of a column: SWF's own, else 1, 2, 3 by first appearance."""
    return tuple(range(1, len(labels.names) + 1)) if labels.numbers is None else labels.numbers


def _numbers(labels: Labels | None, jobs: int) -> Int64Array:
    """Give a column of names as SWF's numbers, shape (jobs,), -1 where there is none."""
    if labels is None:
        return np.full(jobs, -1, dtype=np.int64)
    numbers = np.array([*_swf_numbers(labels), -1], dtype=np.int64)
    return np.asarray(numbers[labels.codes])


def _missing_header_lines(log: JobLog) -> list[str]:
    """Give the header lines for what the log's comments don't say yet."""
    header = _header_fields(log.comments)
    facts = {
        "Version": "2.2" if not log.comments else None,
        "MaxJobs": len(log) if not log.comments else None,
        "UnixStartTime": log.unix_start_time,
        "TimeZoneString": log.time_zone,
        "MaxNodes": log.machine_nodes,
        "MaxProcs": log.machine_processors,
    }
    lines = [
        f"; {keyword}: {value}"
        for keyword, value in facts.items()
        if value is not None and keyword not in header
    ]
    for column, (_, keyword, prefix) in LABEL_FIELDS.items():
        labels: Labels | None = getattr(log, column)
        if labels is None:
            continue
        said = {value.split(maxsplit=1)[0] for value in header.get(keyword, []) if value}
        lines.extend(
            f"; {keyword}: {number} {'_'.join(name.split())}"
            for number, name in sorted(zip(_swf_numbers(labels), labels.names, strict=True))
            if name != f"{prefix}{number}" and name.strip() and str(number) not in said
        )
    return lines
