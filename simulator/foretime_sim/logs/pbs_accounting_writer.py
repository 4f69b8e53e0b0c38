"""Accounting logs as PBS writes them, of a workload or of the mock PBS."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.jobs.jobs import Ending

from foretime_sim.files.compressed_files import write_text
from foretime_sim.files.pbs_durations import format_pbs_duration
from foretime_sim.logs.pbs_day_log import Stamps
from foretime_sim.logs.pbs_records import EXIT_OF_ENDING
from foretime_sim.workloads.workload import Workload

SERVER = "pbs"
"""The server's name in what is written."""
_Event: TypeAlias = tuple[int, str, str]  # epoch seconds, kind, what follows


def write_pbs_accounting(
    workload: Workload,
    folder: Path | str,
    *,
    wait: Int64Array | None = None,
    time_zone: str | None = None,
) -> None:
    """Write a workload as PBS would have accounted for it: a file for each day, Q, S and E records.

    Reading them gives the same jobs: names, times, processors and endings; tasks of an array get
    the array's number.

    Parameters
    ----------
    workload
        The jobs.
    folder
        Where the files go; made if absent.
    wait
        Shape (jobs,), seconds; the logged waits if not given, 0 where there are none.
    time_zone
        Name of the time zone of stamps and days; UTC if not given.

    Raises
    ------
    InputError
        If a file can't be written, a name has a character that PBS can't have in it, or the time
        zone is unknown.
    """
    folder = Path(folder)
    clock = workload.epoch_of_zero
    if wait is None:
        logged = workload.logged_wait
        wait = np.zeros(len(workload), dtype=np.int64) if logged is None else logged.filled(0)
    stamps = Stamps(time_zone)
    events: list[_Event] = []
    for line in _job_lines(workload, clock, wait):
        events.extend(line)
    events.sort(key=lambda event: event[0])
    days: dict[str, list[str]] = defaultdict(list)
    for time, kind, rest in events:
        day, stamp = stamps.of(time)
        days[day].append(f"{stamp};{kind};{rest}\n")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: can't be made: {error.strerror}") from None
    for day, lines in days.items():
        write_text(folder / day, "".join(lines))


def _job_lines(workload: Workload, clock: int, wait: Int64Array) -> Iterator[tuple[_Event, ...]]:
    """Give each job's records."""
    names = _job_names(workload)
    columns = [
        _field_words("user", workload, "users"),
        _field_words("account", workload, "projects"),
        _field_words("jobname", workload, "executables"),
        _field_words("queue", workload, "queues"),
    ]
    submits = (workload.submit_time + clock).tolist()
    starts = (workload.submit_time + clock + wait).tolist()
    runtimes, requests = workload.actual_runtime.tolist(), workload.requested_time.tolist()
    processors = workload.processors.tolist()
    for job, name in enumerate(names):
        submit, start, runtime, count = submits[job], starts[job], runtimes[job], processors[job]
        said = "".join(column[job] for column in columns)
        queued = queued_message(said, submit, resource_words(count, requests[job]))
        started = started_message(queued, start)
        ended = ended_message(
            started, start + runtime, runtime, count, workload.ending(job) or Ending.COMPLETED
        )
        yield (
            (submit, "Q", f"{name};{queued}"),
            (start, "S", f"{name};{started}"),
            (start + runtime, "E", f"{name};{ended}"),
        )


def name_words(field: str, name: str | None) -> str:
    """Give ``field=name`` and a blank; nothing for no name.

    Raises
    ------
    InputError
        If the name can't stand in such a log.
    """
    if not name:
        return ""
    if any(sign in name for sign in '"\n\r'):
        raise InputError(f"{field} {name!r} can't stand in a PBS accounting log; rename it")
    return f'{field}="{name}" ' if " " in name else f"{field}={name} "


def resource_words(processors: int, walltime: int, soft_walltime: int | None = None) -> str:
    """Give a job's ``Resource_List`` words; durations in seconds."""
    soft = ""
    if soft_walltime is not None:
        soft = f"Resource_List.soft_walltime={format_pbs_duration(soft_walltime)} "
    return (
        f"Resource_List.ncpus={processors} Resource_List.nodect=1 Resource_List.place=free "
        f"Resource_List.select=1:ncpus={processors} {soft}"
        f"Resource_List.walltime={format_pbs_duration(walltime)}"
    )


def queued_message(names: str, submit_time: int, resources: str) -> str:
    """Give the message of a Q record of a job that is eligible at once; epoch seconds."""
    return f"{names}ctime={submit_time} qtime={submit_time} etime={submit_time} {resources}"


def started_message(queued: str, start_time: int) -> str:
    """Give the message of an S record."""
    return f"{queued} start={start_time}"


def ended_message(
    started: str, end_time: int, runtime: int, processors: int, ending: Ending
) -> str:
    """Give the message of an E record; epoch seconds, and the runtime in seconds."""
    return (
        f"{started} session=1 end={end_time} Exit_status={EXIT_OF_ENDING[ending]} "
        f"resources_used.ncpus={processors} "
        f"resources_used.walltime={format_pbs_duration(runtime)} run_count=1"
    )


def _job_names(workload: Workload) -> list[str]:
    """Give each job's identifier; tasks of an array are numbered within it."""
    ids = workload.job_id.tolist()
    if len(set(ids)) < len(ids):
        ids = list(range(1, len(ids) + 1))
    arrays = workload.array_ids
    if arrays is None:
        return [f"{job_id}.{SERVER}" for job_id in ids]
    numbers = [int(match[0]) if (match := re.match(r"\d+", name)) else None
               for name in arrays.names]  # fmt: skip
    if None in numbers or len(set(numbers)) < len(numbers):
        numbers = list(range(1, len(numbers) + 1))
    tasks: dict[int, int] = defaultdict(int)
    names = []
    for job_id, code in zip(ids, arrays.codes.tolist(), strict=True):
        if code < 0:
            names.append(f"{job_id}.{SERVER}")
        else:
            names.append(f"{numbers[code]}[{tasks[code]}].{SERVER}")
            tasks[code] += 1
    return names


def _field_words(field: str, workload: Workload, column: str) -> list[str]:
    """Give ``field=name`` and a blank for each job; nothing where it has no name."""
    labels = getattr(workload, column)
    if labels is None:
        return [""] * len(workload)
    words = [*(name_words(field, name) for name in labels.names), ""]
    return [words[code] for code in labels.codes.tolist()]
