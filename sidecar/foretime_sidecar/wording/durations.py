"""Durations as Slurm's users write and read them."""

from __future__ import annotations

import re

from foretime_estimators.jobs.errors import InputError

_N = r"(\d{1,9})"
_DAYS = re.compile(rf"{_N}-{_N}(?::{_N}(?::{_N})?)?", re.ASCII)
_CLOCK = re.compile(rf"(?:(?:{_N}:)?{_N}:)?{_N}", re.ASCII)
_FORMS = "minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS"


def parse_duration(text: str, where: str = "-t", *, zero: bool = False) -> int:
    """Read a duration in any form that ``sbatch --time`` takes; seconds.

    Parameters
    ----------
    text
        minutes, MM:SS, HH:MM:SS, D-HH, D-HH:MM or D-HH:MM:SS.
    where
        What to name in the error.
    zero
        Whether 0 is a value, too.

    Raises
    ------
    InputError
        If the text is none of these, or is no time at all.

    Examples
    --------
    >>> from foretime_sidecar.wording.durations import parse_duration
    >>> parse_duration("1-02:00:00"), parse_duration("90")
    (93600, 5400)
    """
    stripped = text.strip()
    if match := _DAYS.fullmatch(stripped):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    elif match := _CLOCK.fullmatch(stripped):
        days = 0
        first, second, third = match.groups()
        if second is None:
            hours, minutes, seconds = 0, int(third), 0
        else:
            hours, minutes, seconds = int(first or 0), int(second), int(third)
    else:
        raise InputError(f"{where}: {text!r} is not a duration; write {_FORMS}, as for sbatch")
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total == 0 and not zero:
        raise InputError(f"{where}: {text!r} is no time at all; write a duration above 0")
    return total


def format_duration(seconds: int) -> str:
    """Write seconds as D-HH:MM:SS, without the days if there are none.

    Examples
    --------
    >>> from foretime_sidecar.wording.durations import format_duration
    >>> format_duration(93_600)
    '1-02:00:00'
    """
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02d}:{minute:02d}:{second:02d}"
    return f"{days}-{clock}" if days else clock


def whole_minutes(seconds: int) -> int:
    """Minutes that hold so many seconds: Slurm's own unit, rounded up."""
    return -(-seconds // 60)
