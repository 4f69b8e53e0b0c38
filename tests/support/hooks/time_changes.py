"""Changes of a job's times: what plain Slurm answers, and what TimeMin must be with the hook.

Every job asks for 20 minutes. What a cell says is TimeMin afterwards, in minutes, "-" for none, or
that Slurm refuses the change. TimeMin of a running job can't be changed: Slurm takes such a request
and ignores it. `tests/slurm/test_time_changes.py` holds the tables against live clusters, and
`test_time_changes.py` the hook against the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LIMIT_MIN = 20
REFUSED = "refused"


@dataclass(frozen=True)
class Holding:
    """Whose TimeMin a job has.

    Attributes
    ----------
    time_min
        As the job has it, minutes; ``None`` for none.
    note
        AdminComment.
    plain
        What the same job has on a Slurm without Foretime: its user's own.
    """

    time_min: int | None
    note: str
    plain: int | None

    @property
    def is_ours(self) -> bool:
        """Whether Foretime has set TimeMin."""
        return self.time_min != self.plain


def _note(minutes: int, more: str = "") -> str:
    return f"foretime:treq={LIMIT_MIN},tmin={minutes},generation=1{more}"


HOLDINGS: Mapping[str, Holding] = {
    "none": Holding(None, "", None),
    "user's": Holding(10, "", 10),
    "user's, others' words": Holding(10, "x foretime: xforetime:treq=20,tmin=10", 10),
    "user's since": Holding(10, _note(8), 10),
    "user's given back": Holding(4, _note(10, ",own=4"), 4),
    "user's given back, learned": Holding(4, _note(10, ",learned=1,own=4"), 4),
    "withdrawn": Holding(None, _note(10), None),
    "beside a lowered limit": Holding(10, f"foretime:treq={LIMIT_MIN},tsched=10", 10),
    "ours": Holding(10, _note(10), None),
    "ours, others' words": Holding(10, "x " + _note(10) + " " + _note(9), None),
    "ours over 4": Holding(10, _note(10, ",own=4"), 4),
    "ours under 12": Holding(10, _note(10, ",own=12"), 12),
    "refined": Holding(10, _note(8, ",learned=1"), None),
}

# What plain Slurm makes of a pending job's TimeMin; the columns are the user's own.
_PLAIN = """
                        -        4        10       12
Comment=x               -        4        10       12
Comment=foretime:off    -        4        10       12
TimeLimit=25            -        4        10       12
TimeLimit=20            -        4        10       12
TimeLimit=15            -        4        10       12
TimeLimit=10            -        4        10       refused
TimeLimit=5             -        4        refused  refused
TimeLimit=3             -        refused  refused  refused
TimeLimit=0             -        refused  refused  refused
TimeLimit=UNLIMITED     -        4        10       12
TimeMin=0               -        -        -        -
TimeMin=6               6        6        6        6
TimeMin=20              20       20       20       20
TimeMin=25              refused  refused  refused  refused
TimeLimit=15,TimeMin=12 12       12       12       12
TimeLimit=5,TimeMin=0   -        -        -        -
TimeLimit=5,TimeMin=3   3        3        3        3
TimeLimit=5,TimeMin=7   refused  refused  refused  refused
"""
# And what the hook must make of Foretime's 10 minutes; the columns are the user's own in the note.
_OURS = """
                        -        4        12
Comment=x               10       10       10
Comment=foretime:off    -        4        12
TimeLimit=25            10       10       10
TimeLimit=20            10       10       10
TimeLimit=15            10       10       10
TimeLimit=10            10       10       refused
TimeLimit=5             -        4        refused
TimeLimit=3             -        refused  refused
TimeLimit=0             -        refused  refused
TimeLimit=UNLIMITED     -        4        12
TimeMin=0               -        -        -
TimeMin=6               6        6        6
TimeMin=20              20       20       20
TimeMin=25              refused  refused  refused
TimeLimit=15,TimeMin=12 12       12       12
TimeLimit=5,TimeMin=0   -        -        -
TimeLimit=5,TimeMin=3   3        3        3
TimeLimit=5,TimeMin=7   refused  refused  refused
"""


def _parsed(table: str) -> dict[str, dict[str, str]]:
    head, *rows = (line.split() for line in table.strip("\n").splitlines())
    return {change: dict(zip(head, cells, strict=True)) for change, *cells in rows}


_PLAIN_CELLS, _OURS_CELLS = _parsed(_PLAIN), _parsed(_OURS)
CHANGES = tuple(_PLAIN_CELLS)


def without_foretime(holding: Holding, change: str) -> str:
    """Say what a change comes to on a Slurm without Foretime."""
    return _PLAIN_CELLS[change][_cell(holding.plain)]


def with_hook(holding: Holding, change: str) -> str:
    """Say what it must come to with the hook, whatever the table: a user's own is not touched."""
    if not holding.is_ours:
        return without_foretime(holding, change)
    return _OURS_CELLS[change][_cell(holding.plain)]


def _cell(minutes: int | None) -> str:
    return "-" if minutes is None else str(minutes)


def words_of(change: str) -> dict[str, str]:
    """Give a change as scontrol's words and their values."""
    return dict(word.split("=", 1) for word in change.split(","))
