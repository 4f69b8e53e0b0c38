"""PBS's fair-share tree: the file resource_group, and usage as ``pbsfs -p`` prints it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.pbs.site import ShareGroup

TIMES = ("Charged at", "Decayed at")
"""What stands before epoch seconds where usage comes from pbs_sched's own file."""
_FIELDS = 4
_PBS_OWN = {"TREEROOT", "unknown"}
_USAGE = re.compile(
    r"(\S+)\s*:\s*Grp:\s*-?\d+\s+cgrp:\s*\d+\s+Shares:\s*-?\d+\s+Usage:\s*(\d{1,18})\s.*", re.ASCII
)


def parse_usage(text: str) -> dict[str, float]:
    """Read what ``pbsfs -p`` prints: usage by name.

    Raises
    ------
    InputError
        Naming the line that can't be read.
    """
    found: dict[str, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith(("Fairshare usage units", *TIMES)):
            continue
        match = _USAGE.fullmatch(f"{line.strip()} ")
        if match is None:
            raise InputError(f"line {number}: {line.strip()[:80]!r} tells nobody's usage")
        found[match[1]] = float(match[2])
    return found


def parse_usage_times(text: str) -> tuple[int | None, int | None]:
    """Give when usage was so and when it was last decayed; ``pbsfs`` itself tells neither."""
    found = (re.search(rf"^{words}: (\d+)$", text, re.MULTILINE) for words in TIMES)
    charged_at, decayed_at = (None if match is None else int(match[1]) for match in found)
    return charged_at, decayed_at


def parse_resource_group(
    text: str, usage: Mapping[str, float] | None = None
) -> tuple[ShareGroup, ...]:
    """Read lines of name, own id, parent and shares.

    Parameters
    ----------
    text
        The file.
    usage
        Of `parse_usage`. Who is missing has used nothing; a group, what those below it have. Who
        has no line is below ``unknown``.

    Raises
    ------
    InputError
        Naming the line that can't be read, whose parent is not above it, that is there twice, or
        that has a group of PBS's own.
    """
    found: dict[str, ShareGroup] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        where = f"line {number}"
        if len(words) < _FIELDS or not words[3].isdecimal():
            raise InputError(f"{where}: {line.strip()[:80]!r}: give name, id, parent and shares")
        name, _, parent, shares = words[:_FIELDS]
        if name in found:
            raise InputError(f"{where}: {name!r} is there twice: leave one of them")
        if name in ("root", *_PBS_OWN):
            raise InputError(f"{where}: PBS has {name!r} by itself: leave it out")
        parent = "root" if parent == "TREEROOT" else parent
        if parent != "root" and parent not in found and parent != "unknown":
            raise InputError(f"{where}: the parent {parent!r} has no line above this one")
        found[name] = ShareGroup(name, parent, int(shares))
    used = usage or {}
    for name in sorted(used.keys() - found.keys() - _PBS_OWN):
        found[name] = ShareGroup(name, "unknown", 1)
    below: dict[str, list[str]] = {}
    for group in found.values():
        below.setdefault(group.parent, []).append(group.name)

    def used_by(name: str) -> float:
        """Usage of 1 is none: PBS adds up what is more."""
        parts = (used_by(each) for each in below.get(name, ()))
        return used.get(name, 1.0 + sum(part for part in parts if part != 1.0))

    return tuple(replace(group, usage=used_by(group.name)) for group in found.values())
