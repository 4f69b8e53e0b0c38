"""What slurmctld's two loops did in a run, event by event, as its log has it."""

from __future__ import annotations

import datetime
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path

_LINE = re.compile(r"\[(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?)\] (.*)")
_JOB = r"JobId=(?:\d+_\S+?\()?(\d+)"
_SUBMITTED = re.compile(rf"_slurm_rpc_submit_batch_job: {_JOB}.*InitPrio=(\d+)")
_ENDED = re.compile(rf"_job_complete: {_JOB}\)? done")
_KILLED = re.compile(rf"Time limit exhausted for {_JOB}")
_MAIN = re.compile(r"Running job scheduler (?:for )?(\w+)")
_ALLOCATED = re.compile(rf"sched: Allocate {_JOB}")
_BACKFILL = re.compile(r"_attempt_backfill: beginning")
_TESTED = re.compile(rf"test for {_JOB}\S* Prio=(\d+) Partition=(\S+)")
_STARTING = re.compile(rf"(?:creating credential for|Started) {_JOB}")
_BACKFILLED = re.compile(r"Jobs backfilled since boot")
_PLANNED = re.compile(
    rf"_dump_job_sched: .*?{_JOB}\)? to start at (\S+), end at (\S+) on nodes (\S+)"
)


@dataclass
class LoopEvent:
    """Something in slurmctld's log.

    Attributes
    ----------
    at
        Seconds after the run's beginning.
    kind
        ``submit``, ``end``, ``main``, ``backfill``.
    job
        Slurm's id, of a submission or an end.
    full
        Whether the main loop looked at the whole queue.
    started
        Ids of the jobs that the loop started.
    plans
        By id what backfill planned: start, end, nodes; the earliest of several partitions, not
        of job arrays.
    tested
        What backfill looked at, in its order: id, priority, partition; of an array, the array's id.
        Of a submission its first priority.
    """

    at: float
    kind: str
    job: int = 0
    full: bool = False
    started: list[int] = field(default_factory=list)
    plans: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    tested: list[tuple[int, int, str]] = field(default_factory=list)


def events_of(log: str, zero: int) -> list[LoopEvent]:
    """Read slurmctld's log; times after the run's beginning."""
    events: list[LoopEvent] = []
    loop: LoopEvent | None = None
    tested = 0
    for line in log.splitlines():
        parts = _LINE.match(line)
        if not parts:
            continue
        said, at = parts[2], round(_seconds(parts[1]) - zero, 3)
        if found := _SUBMITTED.search(said):
            job = int(found[1])
            first = (job, int(found[2]), "")
            events.append(LoopEvent(at, "submit", job, tested=[first]))
        elif found := _ENDED.search(said) or _KILLED.search(said):
            events.append(LoopEvent(at, "end", int(found[1])))
        elif found := _MAIN.search(said):
            loop = LoopEvent(at, "main", full=found[1] == "full")
            events.append(loop)
        elif _BACKFILL.search(said):
            loop = LoopEvent(at, "backfill")
            events.append(loop)
        elif loop is None:
            continue
        elif found := _ALLOCATED.search(said):
            loop.started.append(int(found[1]))
        elif found := _TESTED.search(said):
            tested = int(found[1])
            loop.tested.append((tested, int(found[2]), found[3]))
        elif found := _STARTING.search(said):
            tested = int(found[1])
        elif _BACKFILLED.search(said):
            loop.started.append(tested)
        elif (found := _PLANNED.search(said)) and "_*" not in said:
            begin, end = (round(_seconds(found[n]) - zero) for n in (2, 3))
            job = int(found[1])
            if job not in loop.plans or begin < loop.plans[job][0]:  # of its partitions
                loop.plans[job] = (begin, end, found[4])
    return events


def _seconds(date: str) -> float:
    return datetime.datetime.fromisoformat(date).astimezone().timestamp()


def write_events(path: Path, events: Sequence[LoopEvent]) -> None:
    """Keep events, packed."""
    rows = [astuple(event) for event in events]
    path.write_bytes(gzip.compress(json.dumps(rows).encode(), mtime=0))


def read_events(path: Path) -> list[LoopEvent]:
    """Give the events that `write_events` kept."""
    rows = json.loads(gzip.decompress(path.read_bytes()))
    events = [LoopEvent(*row) for row in rows]
    for event in events:
        event.plans = {
            int(number): (start, end, nodes) for number, (start, end, nodes) in event.plans.items()
        }
    return events
