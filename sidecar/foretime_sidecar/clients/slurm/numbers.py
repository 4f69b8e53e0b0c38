"""Numbers as Slurm's JSON writes them."""

from __future__ import annotations

import msgspec

_NO_VALUE = 4294967294  # NO_VAL; one more is INFINITE


class SlurmNumber(msgspec.Struct, frozen=True, gc=False):
    """A number as Slurm writes it from 23.02 on, decoded: the same as a dict of these takes longer.

    Attributes
    ----------
    set, infinite, number
        As they were told; ``None`` where one is not.
    """

    set: object = None
    infinite: object = None
    number: object = None


def number(value: object) -> int | None:
    """Give a number in either of Slurm's forms; ``None`` if unset or infinite."""
    if isinstance(value, SlurmNumber):
        value = value.number if value.set and not value.infinite else None
    if isinstance(value, int):
        return value if 0 <= value < _NO_VALUE else None
    if isinstance(value, dict):
        if not value.get("set") or value.get("infinite"):
            return None
        return number(value.get("number"))
    return None
