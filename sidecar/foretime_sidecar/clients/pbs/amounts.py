"""Amounts of resources as PBS writes them: counts, sizes and times."""

from __future__ import annotations

import re

from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.pbs_records import parse_pbs_duration

_SIZE = re.compile(r"(\d+)([kmgtpe]?)([bw])", re.IGNORECASE)
_WORD_BYTES = 8


def parse_amount(word: str, where: str) -> int:
    """Read ``12``, ``16gb`` (bytes) or ``01:30:00`` (seconds).

    Raises
    ------
    InputError
        If it is none of them.
    """
    size = _SIZE.fullmatch(word)
    if size is not None:
        factor = 1024 ** ("kmgtpe".index(size[2].lower()) + 1 if size[2] else 0)
        unit = _WORD_BYTES if size[3].lower() == "w" else 1
        return int(size[1]) * int(factor) * unit
    try:
        if ":" in word:
            return parse_pbs_duration(word)
        return int(float(word))
    except (ValueError, OverflowError, InputError):
        raise InputError(
            f"{where}: {word!r} is no amount: give a number, a size such as 16gb or a time such as"
            " 01:30:00"
        ) from None


def is_amount(word: str) -> bool:
    """Whether a word is an amount, not a name or a yes or no."""
    try:
        parse_amount(word, "")
    except InputError:
        return False
    return True
