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
