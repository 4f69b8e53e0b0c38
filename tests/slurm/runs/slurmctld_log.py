"""What slurmctld's log says of its two loops (SlurmctldDebug=debug, DebugFlags=Backfill)."""

from __future__ import annotations

import datetime
import re
from typing import Any

_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)\] (.*)")
_MAIN = re.compile(r"sched: Running job scheduler (?:for )?(\w+)")
_BEGINNING = re.compile(r"backfill: .*\bbeginning")
_COMPLETED = re.compile(r"completed testing (\d+)\((\d+)\) jobs, usec=(\d+)")


def loops_of(log: str, zero: int) -> dict[str, Any]:
    """Give when the loops ran, seconds after the run's beginning.

    Returns
    -------
    dict
        ``main_loops``: of each run the time and ``f`` for the full queue, ``d`` for the default
        depth; ``backfill_cycles``: beginning, end, and how many jobs were tested, of those that
        tested any.
    """
    main: list[list[Any]] = []
    cycles: list[list[Any]] = []
    begun: float | None = None
    for line in log.splitlines():
        parts = _LINE.match(line)
        if not parts:
            continue
        said = parts[2]
        moment = datetime.datetime.fromisoformat(parts[1]).astimezone().timestamp()
        at = round(moment - zero, 3)
        if found := _MAIN.search(said):
            main.append([at, found[1][0]])
        elif _BEGINNING.search(said):
            begun = at
        elif (found := _COMPLETED.search(said)) and begun is not None:
            cycles.append([begun, at, int(found[2])])
            begun = None
    return {"main_loops": main, "backfill_cycles": cycles}


_TOLD = re.compile(
    r"JobId=.*(?:to start at|InitPrio|Allocate|done$)|Started JobId|Allocate JobId|Try later"
    r"|overlaps with|test for JobId|beginning|completed testing|Running job scheduler"
    r"|Jobs backfilled|reached end|is not|skip|unable|non-runnable|delayed"
)
_DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
_EPOCH = re.compile(r"\b\d{10}\b")


def decisions_of(log: str, zero: int, begin: float, end: float) -> list[str]:
    """Give what the loops said between two seconds of a run, with its seconds for all times."""

    def of_date(found: re.Match[str]) -> str:
        moment = datetime.datetime.fromisoformat(found[0]).astimezone().timestamp()
        return f"{moment - zero:.0f} s"

    def of_epoch(found: re.Match[str]) -> str:
        return f"{int(found[0]) - zero} s" if abs(int(found[0]) - zero) < 10**7 else found[0]

    lines = []
    for line in log.splitlines():
        parts = _LINE.match(line)
        if not parts or not _TOLD.search(parts[2]):
            continue
        at = datetime.datetime.fromisoformat(parts[1]).astimezone().timestamp() - zero
        if begin <= at <= end:
            said = _EPOCH.sub(of_epoch, _DATE.sub(of_date, parts[2]))
            lines.append(f"{at:9.3f} {said}")
    return lines
