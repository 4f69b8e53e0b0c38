"""Limits by whom they hold for, as PBS writes them: ``[u:PBS_GENERIC=5],[o:PBS_ALL=100]``."""

from __future__ import annotations

import re

from foretime_sim.sites.pbs.amounts import format_amount, parse_amount
from foretime_sim.sites.pbs.limits import EntityLimits

_ENTRY = re.compile(
    r"\s*\[\s*([ougp]):\s*(?:\"([^\"=\]]+)\"|([^\s\"=\],]+))\s*=\s*([^\]]+?)\s*\]\s*,?"
)
_WHO = re.compile(r"([ougp]):([^\"=\]]+)", re.DOTALL)
_PLAIN = re.compile(r"[^\s\"=\],]+")


def parse_entity_limits(text: str) -> dict[str, int]:
    """Read limits.

    Raises
    ------
    ValueError
        Naming the rest that is no such limit, or who is there twice.

    Examples
    --------
    >>> from foretime_sim.sites.pbs.limit_text import parse_entity_limits
    >>> parse_entity_limits("[u:PBS_GENERIC=5],[g:physics=16gb]")
    {'u:PBS_GENERIC': 5, 'g:physics': 17179869184}
    """
    found: dict[str, int] = {}
    place = 0
    while place < len(text.rstrip(" ,")):
        match = _ENTRY.match(text, place)
        if match is None:
            raise ValueError(f"{text[place:]!r} is no limit: give such as [u:PBS_GENERIC=5]")
        who = f"{match[1]}:{match[2] or match[3]}"
        if who in found:
            raise ValueError(f"{who} is there twice: give it once")
        found[who] = parse_amount(match[4])
        place = match.end()
    return found


def format_entity_limits(limits: EntityLimits, resource: str = "") -> str:
    """Write limits of jobs, or of a resource.

    Raises
    ------
    ValueError
        If PBS has no way to name somebody.
    """
    return ",".join(
        f"[{_who(who)}={format_amount(resource, limit)}]" for who, limit in limits.items()
    )


def _who(who: str) -> str:
    match = _WHO.fullmatch(who)
    if match is None:
        raise ValueError(f"{who!r} is nobody: give u:NAME, g:NAME, p:NAME or o:PBS_ALL")
    return who if _PLAIN.fullmatch(match[2]) else f'{match[1]}:"{match[2]}"'
