"""What the Slurm hook noted in a job's AdminComment (plugin/TABLE.md, "The note")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from foretime_estimators.time_units import MINUTE_S

# A word of AdminComment by itself; the first one is the hook's.
_NOTE = re.compile(
    r"(?<!\S)foretime:treq=(?P<treq>\d{1,8}),(?:tmin=(?P<tmin>\d{1,8})|tsched=(?P<tsched>\d{1,8}))"
    r"(?P<more>(?:,[a-z]+=\d{1,18})*)(?!\S)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class JobNote:
    """One job's note; times in seconds.

    Attributes
    ----------
    requested_time
        t_req: the limit that the job was submitted with.
    time_min
        t_sched under the native mechanism, ``None`` under rewrite-limit.
    lowered_limit
        t_sched under rewrite-limit, ``None`` under the native mechanism.
    own_time_min
        What the user gave as ``--time-min``, which ``time_min`` stands in for; ``None`` if nothing.
    generation
        Of the table that the hook went by; ``None`` if not noted.
    learned
        Whether ``time_min`` may be refined as more is learned.
    """

    requested_time: int
    time_min: int | None = None
    lowered_limit: int | None = None
    own_time_min: int | None = None
    generation: int | None = None
    learned: bool = False

    def is_ours(self, time_min: int | None) -> bool:
        """Say whether a job's time_min is Foretime's, as the hook does; others are the user's."""
        if self.time_min is None or time_min is None:
            return False
        return time_min == self.time_min or (self.learned and time_min != self.own_time_min)


def read_note(admin_comment: str) -> JobNote | None:
    """Read the note in an AdminComment; ``None`` if there is none.

    Examples
    --------
    >>> from foretime_sidecar.clients.slurm.job_note import read_note
    >>> read_note("no note of ours") is None
    True
    """
    found = _NOTE.search(admin_comment) if admin_comment else None
    if found is None:
        return None
    more = dict(word.split("=") for word in found["more"].split(",") if word)

    def seconds(minutes: str | None) -> int | None:
        return None if minutes is None else int(minutes) * MINUTE_S

    return JobNote(
        int(found["treq"]) * MINUTE_S,
        seconds(found["tmin"]),
        seconds(found["tsched"]),
        seconds(more.get("own")),
        int(more["generation"]) if "generation" in more else None,
        more.get("learned") == "1",
    )
