"""Durations as exports of schedulers write them."""

from __future__ import annotations

import re

from foretime_estimators.time_units import DAY_S, HOUR_S

MAX_SECONDS = 10_000_000_000
"""No time in a log may exceed this (some 317 years): products with processors stay in int64."""


MISSING_WORDS = frozenset(
    {"", "none", "unknown", "n/a", "nan", "null", "unlimited", "partition_limit", "invalid", "-1"}
)
"""What stands for "there is none", in lower case."""


DURATION = re.compile(
    r"(?:(?P<days>\d+)-)?(?:(?:(?P<hours>\d+):)?(?P<minutes>\d+):)?(?P<seconds>\d+)(?:\.\d*)?",
    re.ASCII,
)


def is_missing(word: str) -> bool:
    """Whether a word of an export means that there is no value."""
    return word.strip().lower() in MISSING_WORDS


def parse_duration(word: str) -> int | None:
    """Give the seconds of ``[D-]HH:MM:SS``, ``MM:SS`` or ``SS``; ``None`` for a missing value.

    Raises
    ------
    ValueError
        If it is none of these.

    Examples
    --------
    >>> from foretime_sim.files.durations import parse_duration
    >>> parse_duration("1-12:00:00"), parse_duration("30:00")
    (129600, 1800)
    """
    word = word.strip()
    if is_missing(word):
        return None
    match = DURATION.fullmatch(word)
    if match is None:
        raise ValueError("not a duration like 1-12:30:00 or 12:30:00")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return checked_seconds(days * DAY_S + hours * HOUR_S + minutes * 60 + seconds)


def checked_seconds(seconds: int) -> int:
    """Give seconds that are not more than `MAX_SECONDS`; ValueError otherwise."""
    if seconds > MAX_SECONDS:
        raise ValueError(f"too large (at most {MAX_SECONDS:,} s)")
    return seconds
