"""What a paper says of its results, as rules that figures keep: data in a study's claims.csv."""

from __future__ import annotations

import operator

_COMPARED = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


def keeps(value: float, rule: str) -> bool:
    """Say whether a figure keeps a rule: ``> 0``, ``<= 1.2``, ``0.1 to 0.2``, ``within 0.03``.

    Examples
    --------
    >>> from foretime_studies.frame.claims import keeps
    >>> keeps(0.15, "0.1 to 0.2"), keeps(-0.01, "> 0")
    (True, False)
    """
    if " to " in rule:
        low, high = map(float, rule.split(" to "))
        return low <= value <= high
    word, bound = rule.split()
    return abs(value) <= float(bound) if word == "within" else _COMPARED[word](value, float(bound))


def yes(held: bool) -> str:
    """Write what a table has of it; what does not hold is bold."""
    return "yes" if held else "**no**"
