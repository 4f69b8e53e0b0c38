"""CSV exports: a mapping says which column holds what, and in which unit."""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.durations import parse_duration
from foretime_sim.logs.accounting import Clock, parse_number
from foretime_sim.logs.accounting_log import (
    FACTS,
    ExportColumn,
    ExportRows,
    job_log_of_rows,
    parse_name,
    parse_processors,
    refuse_or_note,
)
from foretime_sim.logs.accounting_resources import (
    COUNT_FACTS,
    MEMORY_FACTS,
    parse_count,
    parse_memory,
)
from foretime_sim.workloads.job_log import JobLog

CSV_PRESETS = {
    "nrel-eagle": "job_id=job_id,user=user,project=account,queue=partition,executable=name,"
    "submit_time=submit_time,start_time=start_time,end_time=end_time,runtime=run_time:s,"
    "requested_time=wallclock_req:s,requested_processors=processors_req,"
    "requested_nodes=nodes_req,requested_gpus=gpus_req,state=state",
}
"""Mappings of well-known exports, by name."""

TIMESTAMPS = ("submit_time", "eligible_time", "start_time", "end_time")
DURATIONS = ("runtime", "suspended_time", "requested_time")
PROCESSORS = ("requested_processors", "allocated_processors")
MIB_PER_UNIT = {"kib": 1 / 1024, "mib": 1.0, "gib": 1024.0}
SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0}


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """One part of a mapping: ``fact=column:unit``."""

    fact: str
    column: str
    unit: str | None


def parse_csv_log(
    text: str,
    *,
    source: str,
    columns: str | None = None,
    time_zone: str | None = None,
    lenient: bool = False,
) -> JobLog:
    """Make a `JobLog` of a CSV export (comma, semicolon or tab) with a header line.

    Parameters
    ----------
    text
        What the file says.
    source
        Its name, for messages.
    columns
        The mapping, ``fact=column:unit`` separated by commas, as in
        ``user=owner,requested_time=limit:min``; or the name of a preset ("nrel-eagle"). The facts
        are those of `foretime_sim.logs.accounting_log.FACTS`. Units of durations: ``ms``, ``s``,
        ``min``, ``h``, ``d``, or ``hms`` (1-12:30:00), which is taken if none is given.
        Units of memory: ``kib``, ``mib`` (taken if none is given) or ``gib``.
        Units of timestamps: none (ISO 8601 or epoch seconds) or ``ms`` since the epoch. If not
        given, the preset that fits the file's header is taken.
    time_zone
        Name of the site's time zone, for timestamps without offset; UTC if not given.
    lenient
        Leave malformed lines out and say so in the notes, instead of refusing the log.

    Raises
    ------
    InputError
        If the text or the mapping can't be used; names file, line, column and value.
    """
    first_line = text.lstrip("\n").partition("\n")[0]
    delimiter = max(",;\t", key=first_line.count)
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    line_numbers: list[int] = []
    bad: list[str] = []
    header: list[str] = []
    try:
        for words in reader:
            if not any(words):
                continue
            if not header:
                header = [word.strip() for word in words]
                continue
            if len(words) != len(header):
                what = f"{len(words)} fields where the header has {len(header)}"
                refuse_or_note(source, reader.line_num, what, bad, lenient=lenient)
                continue
            rows.append(words)
            line_numbers.append(reader.line_num)
    except csv.Error as error:
        raise InputError(f"{source}:{reader.line_num}: not CSV: {error}") from None

    notes: list[str] = []
    if columns is None:
        columns = _fitting_preset(header, source)
        notes.append(f"columns taken as those of {columns}")
    mapping = parse_mapping(CSV_PRESETS.get(columns, columns))
    clock = Clock(time_zone)
    exported = [_export_column(mapped, header, clock, source) for mapped in mapping]
    export = ExportRows(source, rows, line_numbers, exported, bad)
    return job_log_of_rows(export, lenient=lenient, time_zone=time_zone, notes=notes)


def parse_mapping(text: str) -> list[MappedColumn]:
    """Parse ``fact=column:unit,...``.

    Raises
    ------
    InputError
        If a part is not of this form, or names an unknown fact or preset.
    """
    mapping: list[MappedColumn] = []
    for part in text.split(","):
        fact, equals, column = (word.strip() for word in part.partition("="))
        if not equals or not column:
            presets = ", ".join(CSV_PRESETS)
            raise InputError(
                f"--columns: {part.strip()!r} is neither fact=column nor a preset ({presets}); "
                "write for example user=owner,requested_time=limit:min"
            )
        if fact == "processors":
            fact = "requested_processors"
        if fact not in FACTS:
            near = difflib.get_close_matches(fact, FACTS, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]}?" if near else f"use one of {', '.join(FACTS)}"
            raise InputError(f"--columns: {fact!r} is nothing that Foretime reads; {hint}")
        if any(mapped.fact == fact for mapped in mapping):
            raise InputError(f"--columns: {fact} is given twice")
        name, colon, unit = column.rpartition(":")
        if colon and unit in _units(fact):
            mapping.append(MappedColumn(fact, name, unit))
        else:
            mapping.append(MappedColumn(fact, column, None))
    return mapping


def _units(fact: str) -> Sequence[str]:
    """Give the units that a fact may have."""
    if fact in DURATIONS:
        return [*SECONDS_PER_UNIT, "hms"]
    if fact in MEMORY_FACTS:
        return list(MIB_PER_UNIT)
    return ["s", "ms"] if fact in TIMESTAMPS else []


def _export_column(
    mapped: MappedColumn, header: Sequence[str], clock: Clock, source: str
) -> ExportColumn:
    """Give where a mapped column stands in the file and how it is read."""
    if mapped.column not in header:
        name, _, unit = mapped.column.rpartition(":")
        if name in header:
            units = _units(mapped.fact)
            remedy = f"use {', '.join(units)}" if units else f"it takes none: {mapped.fact}={name}"
            raise InputError(f"--columns: {mapped.fact} has no unit {unit!r}; {remedy}")
        near = difflib.get_close_matches(mapped.column, header, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(header)}"
        raise InputError(
            f"{source}: there is no column {mapped.column!r} for {mapped.fact}; {hint}"
        )
    index = header.index(mapped.column)
    return ExportColumn(mapped.fact, mapped.column, index, _parser(mapped, clock))


def _parser(mapped: MappedColumn, clock: Clock) -> Callable[[str], Any]:
    """Give how the words of a mapped column are read."""
    unit = mapped.unit
    if mapped.fact in TIMESTAMPS:
        if unit is None:
            return clock.parse
        divisor = 1_000 if unit == "ms" else 1

        def moment(word: str) -> int | None:
            digits = word.strip()
            if divisor == 1_000 and digits.isdigit():
                return clock.parse(str(int(digits) // divisor))
            return clock.parse(digits)

        return moment
    if mapped.fact in DURATIONS:
        if unit in (None, "hms"):
            return parse_duration
        seconds = SECONDS_PER_UNIT[unit or "s"]
        return lambda word: parse_number(word, seconds)
    if mapped.fact in MEMORY_FACTS:
        mib = MIB_PER_UNIT[unit or "mib"]
        return lambda word: parse_memory(word, mib)
    if mapped.fact in COUNT_FACTS:
        return parse_count
    return parse_processors if mapped.fact in PROCESSORS else parse_name


def _fitting_preset(header: Sequence[str], source: str) -> str:
    """Give the preset whose columns a file has."""
    for name, mapping in CSV_PRESETS.items():
        if all(mapped.column in header for mapped in parse_mapping(mapping)):
            return name
    raise InputError(
        f"{source}: say which column holds what with --columns, for example "
        "submit_time=...,runtime=...:s,requested_time=...:min,processors=...,user=...; "
        f"the file has {', '.join(header)}"
    )
