"""Tables of TOML whose keys are known: read with every mistake named, and written again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.durations import parse_duration
from foretime_sim.files.near_names import nearest

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of values.

    Attributes
    ----------
    read
        Gives what a value of TOML stands for; TypeError or ValueError says what to give instead.
    write
        Gives the text of TOML that `read` makes the same of.
    """

    read: Callable[[object], Any]
    write: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table: which attribute it gives, and of what kind its value is.

    Attributes
    ----------
    attribute
        Name of the attribute.
    kind
        How its value is read and written.
    meaning
        What it says, for people.
    """

    attribute: str
    kind: Kind
    meaning: str


def quoted(text: str) -> str:
    """Write a text as TOML's strings are written."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def table_name(*names: str) -> str:
    """Write the name of a table, quoted where TOML asks for it.

    Examples
    --------
    >>> from foretime_sim.files.toml_keys import table_name
    >>> table_name("node_groups", "big mem")
    'node_groups."big mem"'
    """
    return ".".join(name if _BARE.fullmatch(name) else quoted(name) for name in names)


def _whole_number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("give a whole number")
    return value


def whole_number(least: int, most: int = 2**62) -> Kind:
    """Give the kind of whole numbers within bounds."""

    def read(value: object) -> int:
        number = _whole_number(value)
        if not least <= number <= most:
            bounds = f"{least} or more" if most == 2**62 else f"{least} to {most:,}"
            raise ValueError(f"give {bounds}")
        return number

    return Kind(read, str)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("give a number")
    number = float(value)
    if not 0 <= number < float("inf"):
        raise ValueError("give a number of 0 or more")
    return number


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("give true or false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("give a text")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError('give a list of names, like ["a", "b"]')
    return tuple(value)


def _seconds(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError('give a time as text, like "1-12:00:00"')
    return seconds


def _clock(value: object) -> int:
    if not isinstance(value, str) or ":" not in value:
        raise ValueError('give a time as text, [D-]HH:MM:SS, like "1-12:00:00"')
    return _seconds(value)


def format_time(seconds: int) -> str:
    """Write a time as ``D-HH:MM:SS``.

    Examples
    --------
    >>> from foretime_sim.files.toml_keys import format_time
    >>> format_time(93_600)
    '1-02:00:00'
    """
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 1_440}-{minutes // 60 % 24:02}:{minutes % 60:02}:{rest:02}"


def _written_names(names: Iterable[str]) -> str:
    return "[" + ", ".join(map(quoted, names)) + "]"


_FIRST_MOMENT = 1_000_000_000  # 2001-09-09: what is earlier is no time of a real clock
_LAST_MOMENT = 253_402_300_799  # the last of the year 9999


def _moment(value: object) -> int:
    if isinstance(value, datetime):
        if value.tzinfo is None or value.microsecond:
            raise ValueError("give whole seconds and the zone, like 2026-11-22T22:06:00Z")
        return round(value.timestamp())
    try:
        return _whole_number(value)
    except TypeError:
        raise TypeError("give a time like 2026-11-22T22:06:00Z, or seconds") from None


def _written_moment(seconds: int) -> str:
    if _FIRST_MOMENT <= seconds <= _LAST_MOMENT:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    return str(seconds)


def one_of(*choices: str) -> Kind:
    """Give the kind of one of several words."""

    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"give one of {', '.join(choices)}")
        return str(value)

    return Kind(read, quoted)


WHOLE_NUMBER = Kind(_whole_number, str)
NUMBER = Kind(_number, repr)
"""0 or more."""
YES_OR_NO = Kind(_yes_or_no, lambda value: str(value).lower())
TEXT = Kind(_text, quoted)
NAMES = Kind(_names, _written_names)
SET_OF_NAMES = Kind(
    lambda value: frozenset(_names(value)), lambda names: _written_names(sorted(names))
)
SECONDS = Kind(_seconds, lambda seconds: quoted(format_time(seconds)))
"""A time as text; a bare number counts seconds."""
MOMENT = Kind(_moment, _written_moment)
"""A moment, epoch seconds, written as date and time; early ones as seconds."""
CLOCK = Kind(_clock, SECONDS.write)
"""A time as text with a colon, as Slurm reads a bare number as minutes."""


def values_of(
    table: object, keys: Mapping[str, Key], where: str, needed: Iterable[str] = ()
) -> dict[str, Any]:
    """Read a table: values by attribute.

    Parameters
    ----------
    table
        As TOML gave it.
    keys
        Those it may have.
    where
        What the errors call it, such as ``[node_groups.gpu]``.
    needed
        Keys that it must have.

    Raises
    ------
    InputError
        Naming the table, the key and the value.
    """
    if not isinstance(table, dict):
        raise InputError(f"{where.strip('[]')} is {table!r}: make it a table {where}")
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name, value in table.items():
        key = keys.get(name)
        if key is None:
            raise InputError(f"{where}: {name!r} is unknown{nearest(name, keys)}")
        if key.attribute in given:
            raise InputError(f"{where}: {given[key.attribute]} and {name} say the same: give one")
        given[key.attribute] = name
        try:
            values[key.attribute] = key.kind.read(value)
        except (TypeError, ValueError) as error:
            raise InputError(f"{where}: {name} is {value!r}: {error}") from None
    for name in needed:
        if keys[name].attribute not in values:
            raise InputError(f"{where}: {name} is missing ({keys[name].meaning})")
    return values


def lines_of(described: object, keys: Mapping[str, Key], unsaid: object = None) -> list[str]:
    """Write the keys of a table, a line each.

    Parameters
    ----------
    described
        Has the attributes.
    keys
        Those to write, in their order.
    unsaid
        Has the values that are left out; ``None``: those that are ``None``, false or empty.
    """
    lines = []
    for name, key in keys.items():
        value = getattr(described, key.attribute)
        if unsaid is None:
            if value is None or value is False or value == ():
                continue
        elif value is None or value == getattr(unsaid, key.attribute):
            continue
        lines.append(f"{name} = {key.kind.write(value)}")
    return lines
