"""The finished jobs of the daemon's store as a log to simulate, read beside the daemon."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_estimators.jobs.jobs import Ending
from foretime_sim.workloads.job_log import labels_of
from foretime_sim.workloads.workload import ENDINGS, Workload

from foretime_sidecar.store.stored_jobs import StartedJob, started_jobs_in

_ENDING_CODES = {ending.value: ENDINGS.index(ending) for ending in Ending}


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """What a store holds.

    Attributes
    ----------
    history
        Jobs that had ended when ``workload`` begins, with their waits; ``None`` without any.
    workload
        The jobs that are simulated.
    """

    history: Workload | None
    workload: Workload


def stored_workload(path: Path, days: int, processors: int | None = None) -> StoredWorkload:
    """Read a store without changing it; the daemon may go on.

    A job counts from when it could start. One that ran several times counts for each.

    Parameters
    ----------
    path
        The SQLite file.
    days
        Jobs of the last days, up to the last end, are the workload, those of as many days before
        it the history.
    processors
        Of the machine; as many as ran at a time at most, if not given.

    Raises
    ------
    InputError
        If it can't be read, holds no such jobs, or one is larger than the machine.
    """
    rows = _rows(path, days)
    if not rows:
        raise InputError(f"{path}: holds no finished jobs yet; let the daemon run for some days")
    submitted, started, ended, ran, size, requested, endings, *names = zip(*rows, strict=True)
    begins, ends = np.array(started, dtype=np.int64), np.array(ended, dtype=np.int64)
    # Never before they could start, whatever clocks say.
    submit_time = np.minimum(np.array(submitted, dtype=np.int64), begins)
    order = np.argsort(submit_time, kind="stable")
    zero = int(submit_time.min())
    sizes = np.array(size, dtype=np.int64)
    machine = _busiest(begins, ends, sizes) if processors is None else processors
    if machine < sizes.max():
        raise InputError(
            f"--processors {machine}: a job of the store had {sizes.max()}; give the machine's size"
        )
    users, projects, queues, array_ids = (labels_of(column) for column in names)
    jobs = len(rows)
    whole = Workload(
        name=path.stem,
        machine_processors=machine,
        unix_start_time=zero,
        job_id=np.arange(1, jobs + 1),
        submit_time=submit_time - zero,
        processors=sizes,
        actual_runtime=np.array(ran, dtype=np.int64),
        requested_time=np.array(requested, dtype=np.int64),
        logged_wait=np.ma.MaskedArray(begins - submit_time, mask=np.zeros(jobs, dtype=np.bool_)),
        endings=np.ma.MaskedArray(
            np.array([_ENDING_CODES[ending] for ending in endings], dtype=np.int8),
            mask=np.zeros(jobs, dtype=np.bool_),
        ),
        users=users,
        projects=projects,
        queues=queues,
        array_ids=array_ids,
    ).take(order.astype(np.int64))
    first = int(ends.max()) - zero - days * 86_400
    before = int(np.searchsorted(whole.submit_time, first))
    if before == jobs:
        raise InputError(f"{path}: no job was submitted in its last {days} days; give more")
    places = np.arange(jobs)
    # Nothing is learned of a job that had not ended when the first one came.
    known = (whole.submit_time < first) & (ends[order] - zero <= whole.submit_time[before])
    history = whole.take(known) if known.any() else None
    return StoredWorkload(history, whole.take(places[before:]))


def _rows(path: Path, days: int) -> list[StartedJob]:
    try:
        return started_jobs_in(path, 2 * days * 86_400)
    except StateError as error:
        raise InputError(
            f"{error}; say where it is with --settings, and ask as root or as the daemon's user"
        ) from error


def _busiest(begins: Int64Array, ends: Int64Array, sizes: Int64Array) -> int:
    """Give how many processors ran jobs at a time at most."""
    times = np.concatenate([begins, ends])
    change = np.concatenate([sizes, -sizes])
    # What ends at a moment makes room for what begins then.
    order = np.lexsort((change, times))
    return int(np.cumsum(change[order]).max())
