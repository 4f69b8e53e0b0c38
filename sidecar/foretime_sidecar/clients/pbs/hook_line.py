"""What the PBS hook said of a job in one line of the server's log (plugin/README.md)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HookLine:
    """One line.

    Attributes
    ----------
    event
        What the hook ran at: ``queuejob``, ``modifyjob``, ``runjob``.
    decision
        What it did, such as ``planned`` or ``left``.
    reason
        Why, "-" for none.
    scheduled_time
        t_sched, seconds; ``None`` for none.
    generation
        Of the table that it went by; ``None`` for none.
    """

    event: str
    decision: str
    reason: str
    scheduled_time: int | None
    generation: int | None


def read_hook_line(text: str) -> HookLine | None:
    """Read a line from ``event=`` on; ``None`` if it is none.

    >>> from foretime_sidecar.clients.pbs.hook_line import read_hook_line
    >>> read_hook_line("event=queuejob job=7.pbs t_sched=- decision=left reason=opt-out").reason
    'opt-out'
    """
    words = dict(word.split("=", 1) for word in text.split() if "=" in word)
    if "event" not in words or "decision" not in words:
        return None

    def number(name: str) -> int | None:
        value = words.get(name, "")
        return int(value) if value.isdecimal() else None

    return HookLine(
        words["event"],
        words["decision"],
        words.get("reason", "-"),
        number("t_sched"),
        number("generation"),
    )
