"""Durations as PBS writes them."""

from __future__ import annotations

from foretime_sim.files.durations import MAX_SECONDS

_MOST_DIGITS = 12


def parse_pbs_duration(word: str) -> int:
    """Give the seconds of ``[[D:]HH:]MM:SS`` or ``SS``, with or without a fraction.

    Raises
    ------
    ValueError
        If it is none of these, or too long.
    """
    parts = word.partition(".")[0].split(":")
    if len(parts) > 4 or not all(
        part.isascii() and part.isdecimal() and len(part) <= _MOST_DIGITS for part in parts
    ):
        raise ValueError(f"{word!r} is no duration like 12:30:00 or 45000")
    seconds = 0
    for factor, part in zip((1, 60, 3600, 86400), reversed(parts), strict=False):
        seconds += factor * int(part)
    if seconds > MAX_SECONDS:
        raise ValueError(f"{word!r} is too long (at most {MAX_SECONDS:,} s)")
    return seconds


def format_pbs_duration(seconds: int) -> str:
    """Write a duration as PBS does, ``HH:MM:SS`` with as many hours as it takes."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
