"""Numbers as Slurm's JSON writes them."""

from __future__ import annotations

_NO_VALUE = 4294967294  # NO_VAL; one more is INFINITE


def number(value: object) -> int | None:
    """Give a number in either of Slurm's forms; ``None`` if unset or infinite."""
    if isinstance(value, int):
        return value if 0 <= value < _NO_VALUE else None
    if isinstance(value, dict):
        if not value.get("set") or value.get("infinite"):
            return None
        return number(value.get("number"))
    return None
