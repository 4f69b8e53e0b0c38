"""The table file: what the sidecar has learned, in the form that the scheduler's plugin reads.

The format and the reasons for it are in ``plugin/TABLE.md``. The hooks read one bucket of it at a
time; here it is written, and read whole with every check.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import fields
from functools import lru_cache
from os.path import commonpath
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.table.contents import (
    MICRO,
    NO_ADVICE,
    Advice,
    Longest,
    Mechanism,
    Mode,
    Reservation,
    Scheme,
    Scope,
    Table,
    TableRow,
    TableSettings,
    UserTimeMin,
    validate,
)
from foretime_sidecar.table.name_kinds import ENFORCE_KINDS, KINDS, Kind, Names
from foretime_sidecar.table.row_kinds import KINDS as ROW_KINDS
from foretime_sidecar.table.row_kinds import BackOff, LearnedRow

__all__ = [
    "MICRO",
    "NO_ADVICE",
    "VERSION",
    "Advice",
    "Longest",
    "Mechanism",
    "Mode",
    "Reservation",
    "Scheme",
    "Scope",
    "Table",
    "TableRow",
    "TableSettings",
    "UserTimeMin",
    "check",
    "decode_name",
    "encode_name",
    "parse_table",
    "read_table",
    "table_bytes",
    "write_table",
]

VERSION = 1
ROWS_PER_BUCKET = 8
LARGEST_TABLE_BYTES = 64 * 1024 * 1024
_CHECK_FACTOR = 65_599
_CHECK_MODULUS = 4_294_967_291
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_HEADER = re.compile(
    r"foretime-table (?P<version>\S+) generation=(?P<generation>\d+) length=(?P<length>\d+)"
    r" head=(?P<head>\d+) written=(?P<written>\d+) valid=(?P<valid>\d+) buckets=(?P<buckets>\d+)"
)


def encode_name(name: str) -> str:
    """Write a name with only ``A-Za-z0-9._-``, every other byte of its UTF-8 as ``%XX``."""
    try:
        octets = name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InputError(f"table: name {name!r} is not text that a scheduler could have") from error
    if not octets:
        raise InputError("table: a name is empty; leave out what has no name")
    return "".join(chr(octet) if octet in _PLAIN else f"%{octet:02X}" for octet in octets)


def decode_name(encoded: str) -> str:
    """Give the name that `encode_name` wrote; ValueError if it can't have written this."""
    octets = re.sub(
        rb"%([0-9A-F]{2})", lambda match: bytes((int(match[1], 16),)), encoded.encode("ascii")
    )
    name = octets.decode("utf-8", "surrogateescape")
    if not name or encode_name(name) != encoded:
        raise ValueError(f"{encoded!r} is not an encoded name")
    return name


def check(octets: bytes, start: int = 1) -> int:
    """Sum up bytes: a polynomial modulo a prime, exact in the arithmetic of every Lua."""
    total = start
    for octet in octets:
        total = (total * _CHECK_FACTOR + octet) % _CHECK_MODULUS
    return total


# Most names and buckets are the same from one generation to the next.
_check_again = lru_cache(maxsize=1 << 16)(check)


def _decimal(micro: int) -> str:
    return f"{micro // MICRO}.{micro % MICRO:06d}"


def _listed(values: Iterable[int]) -> str:
    return ",".join(map(str, values)) or "-"


def _name_lines(setting: str, kinds: Iterable[Kind], names: Names) -> Iterable[str]:
    for kind in kinds:
        for name in sorted(name for word, name in names if word == kind.word):
            yield f"{setting} {kind.word} {encode_name(name)}\n"


def _settings_lines(table: Table) -> Iterable[str]:
    for setting in fields(table.settings):
        value = getattr(table.settings, setting.name)
        if setting.name == "minimum_adjustment":
            value = _decimal(round(value * MICRO))
        elif setting.name == "requested_time_bounds_s":
            value = _listed(value)
        yield f"{setting.name} {value}\n"
    if table.back_off is not None:
        yield f"size_bounds {_listed(table.back_off.size_bounds)}\n"
        yield f"backoff {','.join(table.back_off.kinds)}\n"
    yield from _name_lines("leave", KINDS.values(), table.left_alone)
    for longest in table.longest:
        name = "*" if longest.name is None else encode_name(longest.name)
        yield f"longest {longest.kind} {name} {longest.requested_time}\n"
    yield from _name_lines("only", ENFORCE_KINDS, table.enforced_only)
    advice = table.advice
    if advice.told_until is not None:
        yield f"told_until {advice.told_until}\n"
    for name, at in sorted(advice.told):
        yield f"told {encode_name(name)} {at}\n"
    for requested_time_class, seconds in sorted(advice.median_wait_s):
        yield f"median_wait_s {requested_time_class} {seconds}\n"
    if table.unplanned_since is not None:
        yield f"unplanned_since {table.unplanned_since}\n"
    for reservation in table.reservations:
        partitions = reservation.slurm_partitions
        where = "*" if partitions is None else ",".join(map(encode_name, partitions))
        yield f"reservation {reservation.start_time} {reservation.end_time} {where}\n"


def _rows(table: Table) -> Iterable[tuple[str, str]]:
    """Give the name of each row as it is written, and its line."""
    rows: tuple[TableRow | LearnedRow, ...] = (*table.rows, *table.learned_rows)
    for row in rows:
        name = encode_name(row.name)
        if isinstance(row, LearnedRow):
            key = f"{row.kind} {name} {'.'.join(map(str, row.values))}"
        else:
            key = f"{row.scope} {name} {row.requested_time_class}"
        largest = "-" if row.largest_processor_seconds is None else row.largest_processor_seconds
        yield name, f"{key} {_decimal(row.adjustment_micro)} {largest}\n"


def _buckets(table: Table) -> Iterable[bytes]:
    count = max(1, -(-table.row_count // ROWS_PER_BUCKET))
    buckets: list[list[str]] = [[] for _ in range(count)]
    for name, line in _rows(table):
        buckets[_check_again(name.encode("ascii")) % count].append(line)
    generation = str(table.generation).encode("ascii")
    for number, lines in enumerate(buckets):
        text = ("\n" + "".join(sorted(lines))).encode("ascii")
        tag = f"#{number:06d} ".encode("ascii")
        total = check(tag + generation, _check_again(text))
        yield tag + f"{total:010d}".encode("ascii") + text


def table_bytes(table: Table) -> bytes:
    """Give the table file's content; InputError names what can't be written."""
    validate(table)
    settings = "".join(_settings_lines(table)).encode("ascii")
    buckets = list(_buckets(table))
    body = b"".join(buckets)

    def header(length: int, head: int) -> bytes:
        return (
            f"foretime-table {VERSION} generation={table.generation} length={length:09d}"
            f" head={head:09d} written={table.written_at} valid={table.valid_until}"
            f" buckets={len(buckets)}\n"
        ).encode("ascii")

    def trailer(length: int) -> bytes:
        return f"end generation={table.generation} length={length:09d}\n".encode("ascii")

    head = len(header(0, 0)) + len(settings)
    length = head + len(b"check 0123456789\n") + len(body) + len(trailer(0))
    if length > LARGEST_TABLE_BYTES:
        raise InputError(
            f"table: {length:,} bytes; the hook reads up to {LARGEST_TABLE_BYTES:,}:"
            " leave out users who submit no more"
        )
    top = header(length, head) + settings
    return top + f"check {check(top):010d}\n".encode("ascii") + body + trailer(length)


def write_table(path: Path, table: Table, permissions: int = 0o660) -> None:
    """Put a table in place, whole or not at all, even if the machine stops at any moment.

    There must be one writer. ``permissions`` are the file's: the scheduler's account must be able
    to read it, and able to write it for the hook's guard against a FIFO in its place (TABLE.md).

    Raises
    ------
    InputError
        If the table holds what can't be written.
    StateError
        If the file system refuses.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sidecar import write_table
    >>> from foretime_sidecar.table.contents import Table
    >>> table = Table(generation=1, written_at=1_700_000_000, valid_until=1_700_086_400)
    >>> with TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "table", table)
    ...     (Path(folder) / "table").read_text().startswith("foretime-table 1 generation=1 ")
    True
    """
    content = table_bytes(table)
    temporary = path.with_name(path.name + ".new")
    try:
        temporary.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(temporary, flags, permissions), "wb") as file:
            os.fchmod(file.fileno(), permissions)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise StateError(
            f"{path}: can't write the table: {error.strerror}; the hook goes on with the one before"
            " until that is out of date"
        ) from error


def read_table(path: Path) -> Table:
    """Read a table file and check all of it; StateError says what is wrong, and in which line.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sidecar import read_table, write_table
    >>> from foretime_sidecar.table.contents import Table
    >>> table = Table(generation=1, written_at=1_700_000_000, valid_until=1_700_086_400)
    >>> with TemporaryDirectory() as folder:
    ...     write_table(Path(folder) / "table", table)
    ...     read_table(Path(folder) / "table") == table
    True
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise StateError(f"{path}: can't read the table: {error.strerror}") from error
    return parse_table(content, str(path))


def parse_table(content: bytes, where: str = "table") -> Table:
    """Give the table in a file's content; StateError if anything at all is wrong with it.

    A content that parses is byte for byte what `table_bytes` gives for the result.
    """
    try:
        text = content.decode("ascii")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise StateError(f"{where}:{line}: damaged: a byte that is not ASCII") from error
    lines = text.split("\n")
    header = _HEADER.fullmatch(lines[0])
    version = re.match(r"foretime-table (\S+)", lines[0])
    if version is None:
        raise StateError(f"{where}:1: not a Foretime table: {lines[0][:60]!r}")
    if version[1] != str(VERSION):
        raise StateError(f"{where}:1: version {version[1]}; this Foretime reads {VERSION}")
    if header is None:
        raise StateError(f"{where}:1: damaged: {lines[0][:200]!r}")
    if int(header["length"]) != len(content):
        raise StateError(
            f"{where}: damaged: {len(content):,} bytes, but its first line says"
            f" {int(header['length']):,}"
        )
    table = _table_from(lines, header, where)
    try:
        expected = table_bytes(table)
    except InputError as error:
        raise StateError(f"{where}: damaged: {error}") from error
    if expected != content:
        same = commonpath([expected.decode("ascii"), text])
        line = same.count("\n") + 1
        raise StateError(f"{where}:{line}: damaged: {lines[line - 1][:200]!r}")
    return table


def _table_from(lines: list[str], header: re.Match[str], where: str) -> Table:
    settings: dict[str, str] = {}
    left: set[tuple[str, str]] = set()
    longest: list[Longest] = []
    only: set[tuple[str, str]] = set()
    told: list[tuple[str, int]] = []
    median_wait_s: list[tuple[int, int]] = []
    reservations: list[Reservation] = []
    rows: list[TableRow] = []
    learned: list[LearnedRow] = []
    for number, line in enumerate(lines[1:], start=2):
        words = line.split(" ")
        try:
            match words:
                case [("user" | "project") as scope, name, time_class, adjustment, largest]:
                    rows.append(
                        TableRow(
                            scope,
                            decode_name(name),
                            int(time_class),
                            round(float(adjustment) * MICRO),
                            None if largest == "-" else int(largest),
                        )
                    )
                case [kind, name, values, adjustment, largest] if kind in ROW_KINDS:
                    learned.append(
                        LearnedRow(
                            kind,
                            decode_name(name),
                            tuple(map(int, values.split("."))),
                            round(float(adjustment) * MICRO),
                            None if largest == "-" else int(largest),
                        )
                    )
                case ["leave", kind, name]:
                    left.add((kind, decode_name(name)))
                case ["longest", "any", "*", seconds]:
                    longest.append(Longest("any", None, int(seconds)))
                case ["longest", kind, name, seconds]:
                    longest.append(Longest(kind, decode_name(name), int(seconds)))
                case ["only", kind, name]:
                    only.add((kind, decode_name(name)))
                case ["told", name, at]:
                    told.append((decode_name(name), int(at)))
                case ["median_wait_s", time_class, seconds]:
                    median_wait_s.append((int(time_class), int(seconds)))
                case ["reservation", start, end, partitions]:
                    names = None
                    if partitions != "*":
                        names = tuple(map(decode_name, partitions.split(",")))
                    reservations.append(Reservation(int(start), int(end), names))
                case ["end", _, _] | [""] | ["check", _]:
                    pass
                case [tag, _] if tag.startswith("#"):
                    pass
                case [key, value]:
                    settings[key] = value
                case _:
                    settings[line] = ""  # not as written: found out when compared
        except ValueError as error:
            raise StateError(f"{where}:{number}: damaged: {line[:200]!r}") from error
    return Table(
        generation=int(header["generation"]),
        written_at=int(header["written"]),
        valid_until=int(header["valid"]),
        settings=_settings_from(settings, where),
        left_alone=frozenset(left),
        longest=tuple(longest),
        enforced_only=frozenset(only),
        advice=Advice(
            told_until=int(settings["told_until"]) if "told_until" in settings else None,
            told=tuple(told),
            median_wait_s=tuple(median_wait_s),
        ),
        unplanned_since=int(settings["unplanned_since"]) if "unplanned_since" in settings else None,
        reservations=tuple(reservations),
        rows=tuple(sorted(rows, key=lambda row: (row.scope, row.name, row.requested_time_class))),
        back_off=_back_off_from(settings, where),
        learned_rows=tuple(sorted(learned, key=lambda row: row.key)),
    )


def _numbers(text: str) -> tuple[int, ...]:
    return () if text == "-" else tuple(map(int, text.split(",")))


def _back_off_from(settings: dict[str, str], where: str) -> BackOff | None:
    if "backoff" not in settings:
        return None
    try:
        kinds = tuple(settings["backoff"].split(","))
        return BackOff(_numbers(settings["size_bounds"]), kinds)
    except (InputError, KeyError, ValueError) as error:
        raise StateError(f"{where}: damaged: a setting can't be read: {error}") from error


def _settings_from(settings: dict[str, str], where: str) -> TableSettings:
    bounds = settings.get("requested_time_bounds_s", "-")
    try:
        return TableSettings(
            mode=Mode(settings["mode"]),
            enforce_share_percent=int(settings["enforce_share_percent"]),
            scheme=Scheme(settings["scheme"]),
            mechanism=Mechanism(settings["mechanism"]),
            user_time_min=UserTimeMin(settings["user_time_min"]),
            minimum_adjustment=float(settings["minimum_adjustment"]),
            minimum_scheduled_time_s=int(settings["minimum_scheduled_time_s"]),
            rounding_s=int(settings["rounding_s"]),
            requested_time_bounds_s=_numbers(bounds),
        )
    except KeyError as error:
        raise StateError(f"{where}: damaged: no setting {error.args[0]}") from error
    except ValueError as error:
        raise StateError(f"{where}: damaged: a setting can't be read: {error}") from error
