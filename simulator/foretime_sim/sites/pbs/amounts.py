"""Amounts of resources as PBS writes them: counts, sizes and times."""

from __future__ import annotations

import re

from foretime_sim.files.durations import MAX_SECONDS
from foretime_sim.files.pbs_durations import format_pbs_duration, parse_pbs_duration

MOST = 2**62
"""No amount is larger."""
_SIZE = re.compile(r"(\d{1,19})([kmgtpe]?)([bw])", re.IGNORECASE | re.ASCII)
_WORD_BYTES = 8
_UNITS = ("b", "kb", "mb", "gb", "tb", "pb")
_TIMES = ("walltime", "soft_walltime", "min_walltime", "max_walltime", "cput", "pcput")
_SIZES = ("mem", "vmem", "pmem", "pvmem", "file")


def parse_amount(word: str) -> int:
    """Read ``12``, ``16gb`` (bytes) or ``01:30:00`` (seconds).

    Raises
    ------
    ValueError
        If it is none of them, or too large.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.amounts import parse_amount
    >>> parse_amount("2kb"), parse_amount("01:30:00")
    (2048, 5400)
    """
    try:
        amount = _amount(word)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{word!r} is no amount: give a number, a size such as 16gb or a time such as 01:30:00"
        ) from None
    if not 0 <= amount <= MOST:
        raise ValueError(f"{word!r}: give an amount of 0 to {MOST:,}")
    return amount


def _amount(word: str) -> int:
    if size := _SIZE.fullmatch(word):
        factor = 1024 ** ("kmgtpe".index(size[2].lower()) + 1) if size[2] else 1
        unit = _WORD_BYTES if size[3].lower() == "w" else 1
        return int(size[1]) * int(factor) * unit
    if ":" in word:
        return parse_pbs_duration(word)
    return int(word) if word.isdecimal() else int(float(word))


def format_amount(resource: str, amount: int) -> int | str:
    """Write an amount of a resource as PBS does: times and sizes as text, others as numbers.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.amounts import format_amount
    >>> format_amount("walltime", 5400), format_amount("mem", 2**31), format_amount("ncpus", 8)
    ('01:30:00', '2gb', 8)
    """
    if resource in _TIMES and amount <= MAX_SECONDS:
        return format_pbs_duration(amount)
    if resource in _SIZES:
        power = 0
        while power + 1 < len(_UNITS) and amount and amount % 1024 ** (power + 1) == 0:
            power += 1
        return f"{amount // 1024**power}{_UNITS[power]}"
    return amount
