"""Which of PBS's commands printed a text, or which of its files it is."""

from __future__ import annotations

import re

from foretime_sidecar.clients.pbs.sched_config import OPTIONS

_DAYS = "weekday|saturday|sunday|monday|tuesday|wednesday|thursday|friday"
_FIRST_LINES = {
    "sched": r"(?:create|set) sched ",
    "server": r"create (?:resource|queue) |set (?:queue|server) ",
    "rstat": r"Resv ID:",
    "hooks": r"Hook \S+$",
    "usage": r"Fairshare usage units",
    "holidays": rf"(?i:YEAR\s|\*|(?:{_DAYS})\s)",
    "dedicated_time": r"\d+/\d+/\d{4}\s+\d+:\d+\s",
    "resource_group": r"\S+\s+\d+\s+\S+\s+\d+\s*(?:#.*)?$",
    "sched_config": rf"(?:{'|'.join(OPTIONS)})\s*:",
}


def says_nothing(text: str) -> bool:
    """Whether a text has nothing but comments."""
    return not _lines(text)


def pbs_kind_of(text: str) -> str | None:
    """Tell which command printed a text, or which file it is; ``None`` if none that is read."""
    lines = _lines(text)
    if text.lstrip().startswith("{"):
        return "hosts" if '"nodes"' in text else None
    for kind, pattern in _FIRST_LINES.items():
        if lines and re.match(pattern, lines[0]):
            return kind
    return None


def _lines(text: str) -> list[str]:
    lines = map(str.strip, text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
