"""Checks that every scheduler client passes; they raise AssertionError with the reason.

`READING` only asks and may be run on a live scheduler. `CHANGING` changes jobs: it needs at least
two pending jobs of more than two minutes, and is for schedulers made for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    JobChange,
    QueuedJob,
    QueueState,
    SchedulerClient,
)

Check: TypeAlias = Callable[[SchedulerClient], None]

UNKNOWN_JOB = "67000000"
_SLICES = 7
_LOOKS = 20


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def _key(record: FinishedRecord) -> tuple[str, int]:
    return record.job.request.job_id, record.job.request.submit_time


def check_configuration(client: SchedulerClient) -> None:
    """Check that the scheduler says what it is, and says the same again."""
    configuration = client.configuration()
    _require(configuration.scheduler in ("slurm", "pbs"), f"scheduler {configuration.scheduler!r}")
    _require(configuration.version[:1].isdigit(), f"version {configuration.version!r}")
    _require(client.configuration() == configuration, "asked again it says otherwise")


def check_finished_jobs(client: SchedulerClient) -> None:
    """Check each finished job by itself, that they come by end, and each once."""
    records, cursor = client.finished_since(Cursor())
    ends = [record.job.end_time for record in records]
    _require(ends == sorted(ends), "finished jobs do not come by end")
    _require(len({_key(record) for record in records}) == len(records), "a finished job came twice")
    _require(cursor.end_time >= (ends[-1] if ends else 0), "the cursor lies before the last job")
    for record in records:
        job, where = record.job, f"job {record.job.request.job_id} ({record.state})"
        request = job.request
        _require(request.processors >= 1, f"{where}: {request.processors} processors")
        _require(request.requested_time >= 1, f"{where}: requested {request.requested_time} s")
        _require(request.submit_time > 0, f"{where}: no submission")
        _require(record.state != "", f"{where}: no state")
        never = job.ending is Ending.NEVER_STARTED
        _require(never == (job.start_time is None), f"{where}: {job.ending} with {job.start_time}")
        if job.start_time is None:
            _require(job.actual_runtime == 0, f"{where}: ran {job.actual_runtime} s, never started")
        else:
            _require(job.start_time >= request.submit_time, f"{where}: began before submission")
            _require(
                0 <= job.actual_runtime <= job.end_time - job.start_time,
                f"{where}: ran {job.actual_runtime} s between {job.start_time} and {job.end_time}",
            )


def check_reading_again(client: SchedulerClient) -> None:
    """Check that a reading can be repeated, and that a cursor only moves on."""
    first, cursor = client.finished_since(Cursor())
    again, same = client.finished_since(Cursor())
    _require((again, same) == (first, cursor), "the same reading gave something else")
    late, later = client.finished_since(cursor)
    _require(later.end_time >= cursor.end_time, "the cursor went back")
    at_cursor = {_key(r) for r in first if r.job.end_time >= cursor.end_time}
    _require(at_cursor <= {_key(r) for r in late}, "what ended at the cursor did not come again")
    ahead = Cursor(cursor.end_time + 10_000_000)
    _require(client.finished_since(ahead)[1] == ahead, "a cursor ahead of everything went back")


def check_nothing_is_lost_between_cursors(client: SchedulerClient) -> None:
    """Check that slices, each begun where the last one ended, give all that one reading gives.

    Jobs may end meanwhile, of which slices may tell as one reading after them does.
    """
    everything, last = client.finished_since(Cursor())
    if not everything:
        return
    first_end = everything[0].job.end_time
    step = max((last.end_time - first_end) // _SLICES, 1)
    cursor, found = Cursor(first_end), {}
    while True:
        until = cursor.end_time + step
        records, after = client.finished_since(cursor, until)
        _require(after.end_time >= cursor.end_time, "the cursor went back")
        _require(after.end_time == until, f"read until {until}, but the cursor is {after}")
        beyond = [r for r in records if r.job.end_time > until]
        _require(not beyond, f"read until {until}, but {len(beyond)} jobs ended later")
        found.update({_key(record): record for record in records})
        cursor = after
        if cursor.end_time >= last.end_time:
            break
    before = {_key(r): r for r in everything}
    afterwards = {_key(r): r for r in client.finished_since(Cursor())[0]}
    lost = [(record, found.get(key)) for key, record in before.items() if found.get(key) != record]
    _require(not lost, f"slices lost jobs that one reading gave, or gave others: {lost[:3]}")
    _require(found.items() <= afterwards.items(), "slices gave other jobs than one reading")


def check_queue(client: SchedulerClient) -> None:
    """Check what runs and what waits: states, times, arrays, and that it fits the machine."""
    queue = client.queue()
    submitted = [job.request.submit_time for job in queue.jobs]
    _require(submitted == sorted(submitted), "the queue is not in order of submission")
    ids = [job.request.job_id for job in queue.jobs]
    _require(len(set(ids)) == len(ids), "a queued job came twice")
    used = 0
    for job in queue.jobs:
        request, where = job.request, f"job {job.request.job_id} ({job.state.value})"
        _require(request.processors >= 1, f"{where}: {request.processors} processors")
        _require(request.requested_time >= 1, f"{where}: requested {request.requested_time} s")
        _require(job.tasks >= 1, f"{where}: {job.tasks} tasks")
        _require(
            job.time_min is None or 0 < job.time_min <= request.requested_time,
            f"{where}: time_min {job.time_min} of {request.requested_time} s",
        )
        if job.state is QueueState.PENDING:
            _require(job.tasks == 1 or request.array_id is not None, f"{where}: tasks of no array")
            _require(job.suspended_time == 0, f"{where}: suspended before it ran")
        else:
            _require(job.tasks == 1, f"{where}: {job.tasks} tasks run as one")
            _require(job.start_time is not None, f"{where}: no start")
            _require(not job.held and not job.dependent, f"{where}: held or dependent")
        if job.state is QueueState.RUNNING:
            used += request.processors
    _require(used <= queue.processors, f"{used} processors run of {queue.processors}")


def _array_in(job_id: str) -> str:
    """Give the array that a job's name says it belongs to, "" if none."""
    if pbs := re.fullmatch(r"(\d+)\[\d*\](.*)", job_id):
        return f"{pbs[1]}[]{pbs[2]}"
    return job_id.rpartition("_")[0]


def check_arrays(client: SchedulerClient) -> None:
    """Check that the tasks of an array name it, and are named ARRAY_TASK (PBS: 123[4].server)."""
    requests = [record.job.request for record in client.finished_since(Cursor())[0]]
    requests += [job.request for job in client.queue().jobs if job.tasks == 1]
    for request in requests:
        array = _array_in(request.job_id)
        _require(
            (request.array_id or "") == array,
            f"job {request.job_id} belongs to array {request.array_id}",
        )


def check_reservations(client: SchedulerClient) -> None:
    """Check that reservations have a name and end after they start."""
    for reservation in client.reservations():
        _require(reservation.name != "", "a reservation without a name")
        _require(reservation.start_time < reservation.end_time, f"{reservation.name}: no duration")


def check_load(client: SchedulerClient) -> None:
    """Check that a scheduler that tells how busy it is tells no nonsense."""
    load = client.load()
    if load is not None:
        _require(load.server_threads >= 0, f"{load.server_threads} server threads")
        _require(min(load.agent_queue, load.accounting_queue) >= 0, "queues of less than nothing")
        _require(0 <= load.scheduling_cycle_s < 3600, f"{load.scheduling_cycle_s} s a cycle")


def check_no_changes(client: SchedulerClient) -> None:
    """Check that an empty list of changes, or a change of nothing, does nothing."""
    for _ in range(_LOOKS):
        before = client.queue()
        client.update([])
        client.update([JobChange(job.request.job_id) for job in before.jobs])
        after = client.queue()
        was = {job.request.job_id: _times(job) for job in before.jobs}
        for job in after.jobs:
            job_id, has = job.request.job_id, _times(job)
            changed = has and was.get(job_id, has) not in (has, ())
            _require(not changed, f"job {job_id} was changed to {has}")
        if after == before:
            return
    # Of itself a live queue changes now and then; in one of so many looks it does not.
    _require(False, "the queue changed")


def _times(job: QueuedJob) -> tuple[int | None, ...]:
    """Give the times that updates may change; a start may, too."""
    if job.state is not QueueState.PENDING:
        return ()
    return job.request.requested_time, job.time_min


READING: Sequence[Check] = (
    check_configuration,
    check_finished_jobs,
    check_reading_again,
    check_nothing_is_lost_between_cursors,
    check_queue,
    check_arrays,
    check_reservations,
    check_load,
    check_no_changes,
)


def _pending(client: SchedulerClient) -> list[QueuedJob]:
    jobs = [
        job
        for job in client.queue().jobs
        if job.state is QueueState.PENDING and job.tasks == 1 and job.request.requested_time > 120
    ]
    _require(len(jobs) >= 2, "this check needs two pending jobs of more than two minutes")
    return jobs


def _seen(client: SchedulerClient, job_id: str) -> QueuedJob:
    return next(job for job in client.queue().jobs if job.request.job_id == job_id)


def check_changes_show(client: SchedulerClient) -> None:
    """Check that changed limits are what the queue shows next, rounded up to its time step."""
    step = client.configuration().time_step_s
    time_min, limit = -(-61 // step) * step, -(-179 // step) * step
    job_id = _pending(client)[0].request.job_id
    client.update([JobChange(job_id, time_min=61)])
    _require(_seen(client, job_id).time_min == time_min, f"61 s of time_min are not {time_min} s")
    client.update([JobChange(job_id, time_limit=179)])
    seen = _seen(client, job_id)
    _require(seen.request.requested_time == limit, f"179 s of limit are not {limit} s")
    _require(seen.time_min == time_min, "a changed limit changed time_min")
    client.update([JobChange(job_id, time_min=0)])
    _require(_seen(client, job_id).time_min is None, "time_min=0 did not clear it")


def check_site_factor(client: SchedulerClient) -> None:
    """Check that a site factor shows once set where it can be read, and is refused elsewhere."""
    request = _pending(client)[0].request
    job_id = request.job_id
    try:
        before = client.site_factors()
    except SchedulerError:
        before = None
    try:
        client.update([JobChange(job_id, site_factor=5)])
    except SchedulerError as error:
        _require(before is None, f"the site factor was refused: {error}")
        _require(job_id in str(error), f"the job is not named: {error}")
        return
    _require(before is not None, "a site factor was taken, but can't be read")
    named = request.array_id or job_id
    _require(client.site_factors().get(named) == 5, f"job {named} has not the site factor set")
    client.update([JobChange(job_id, site_factor=0)])
    _require(client.site_factors().get(named) == 0, "site_factor=0 did not take it away")


def check_unknown_job_is_refused(client: SchedulerClient) -> None:
    """Check that what is refused is named in one SchedulerError, and the rest is done."""
    first, second = (job.request.job_id for job in _pending(client)[:2])
    changes = [
        JobChange(first, time_min=60),
        JobChange(UNKNOWN_JOB, time_min=60),
        JobChange(second, time_min=60),
    ]
    try:
        client.update(changes)
    except SchedulerError as error:
        _require(UNKNOWN_JOB in str(error), f"the job is not named: {error}")
    else:
        raise AssertionError("a change of an unknown job was taken")
    done = [_seen(client, job_id).time_min for job_id in (first, second)]
    _require(done == [60, 60], "changes beside the refused one were not made")


CHANGING: Sequence[Check] = (
    check_changes_show,
    check_site_factor,
    check_unknown_job_is_refused,
)
