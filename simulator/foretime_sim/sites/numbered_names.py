"""Names that differ in one number alone: from ``n001`` to ``n240``."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NUMBER = re.compile(r"([0-9]{1,9})", re.ASCII)
_MOST = 1_000_000
_TOO_LARGE = 10**9  # for the digits above


def names_between(first: str, last: str) -> list[str]:
    """Give all names from one to another.

    Raises
    ------
    ValueError
        If they differ in more than one number, or are not in this order.

    Examples
    --------
    >>> from foretime_sim.sites.numbered_names import names_between
    >>> names_between("n09-ib", "n11-ib")
    ['n09-ib', 'n10-ib', 'n11-ib']
    """
    parts, others = _NUMBER.split(first), _NUMBER.split(last)
    differ = [at for at, pair in enumerate(zip(parts, others, strict=False)) if pair[0] != pair[1]]
    if len(parts) != len(others) or len(differ) != 1 or differ[0] % 2 == 0:
        raise ValueError(f"{first} and {last} must differ in one number alone, like n001 and n240")
    place = differ[0]
    begins, ends = int(parts[place]), int(others[place])
    if not begins < ends < begins + _MOST:
        raise ValueError(f"give a name after {first}, and at most {_MOST:,} of them")
    names = [_numbered(parts, place, number) for number in range(begins, ends + 1)]
    if names[-1] != last:
        raise ValueError(f"{last} is not numbered as {first} is: {names[-1]} would be")
    return names


def _numbered(parts: Sequence[str], place: int, number: int) -> str:
    digits = str(number).zfill(len(parts[place]))
    return "".join([*parts[:place], digits, *parts[place + 1 :]])


def runs_of(names: Sequence[str]) -> list[int]:
    """Say how many of the names, from each beginning on, `names_between` gives together.

    Examples
    --------
    >>> from foretime_sim.sites.numbered_names import runs_of
    >>> runs_of(["n1", "n2", "n3", "login", "g7", "g8"])
    [3, 1, 2]
    """
    runs: list[int] = []
    begin = 0
    while begin < len(names):
        length = 1
        following = names[begin + 1] if begin + 1 < len(names) else ""
        if (found := _place(names[begin], following)) is not None:
            parts, place = found
            number = int(parts[place])
            while (
                begin + length < len(names)
                and length < _MOST
                and number + length < _TOO_LARGE
                and names[begin + length] == _numbered(parts, place, number + length)
            ):
                length += 1
        runs.append(length)
        begin += length
    return runs


def _place(first: str, second: str) -> tuple[list[str], int] | None:
    """Say which number makes the second name the one after the first."""
    parts = _NUMBER.split(first)
    for place in range(1, len(parts), 2):
        if _numbered(parts, place, int(parts[place]) + 1) == second:
            return parts, place
    return None
