"""Which of the known names an unknown one may stand for."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_NAMES_TOLD = 20
"""A message about an unknown name lists so many known ones."""


def nearest(name: str, names: Iterable[str]) -> str:
    """Say which name is nearest, and which there are (of many, some).

    Examples
    --------
    >>> from foretime_sim.files.near_names import nearest
    >>> nearest("shrot", ["short", "long"])
    "; did you mean 'short'? There are: short, long"
    """
    known = list(names)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    if len(known) <= _NAMES_TOLD:
        return f"{hint} There are: {', '.join(known)}"
    return f"{hint} There are {len(known):,}, such as: {', '.join(known[:_NAMES_TOLD])}"
