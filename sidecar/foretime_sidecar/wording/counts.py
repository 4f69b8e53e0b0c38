"""Counts of things, for commands that load nothing heavy."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """Write a count of things ("1 cell", "5,671 cells").

    Examples
    --------
    >>> from foretime_sidecar.wording.counts import counted
    >>> counted(1, "cell"), counted(5671, "cell")
    ('1 cell', '5,671 cells')
    """
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
