"""What PBS's accounting and server logs say: jobs that ended, and what the hook decided."""

from __future__ import annotations

import logging
import re
import time
from pathlib import Path
from urllib.parse import unquote_to_bytes

from foretime_estimators.time_units import DAY_S
from foretime_sim.logs.pbs_records import EndedJob, JobFollower, NotAJobError, parse_line

from foretime_sidecar.clients.pbs.day_files import DayFiles, day_of

logger = logging.getLogger("foretime")

_MOST_NAMED = 3


def _local_moment(stamp: str) -> int:
    return int(time.mktime(time.strptime(stamp, "%m/%d/%Y %H:%M:%S")))


class AccountingTail:
    """The jobs that ended, from ``server_priv/accounting``, read once and then followed.

    It keeps in memory the jobs that ended since the time that was last asked for; asked for an
    earlier time it reads the files again. So what it gives hangs on the files alone.

    Parameters
    ----------
    folder
        The accounting files' folder.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._forget(0)

    def _forget(self, since: int) -> None:
        self._files = DayFiles(self._folder, "scheduler.pbs_accounting_dir")
        self._follower = JobFollower(_local_moment)
        self._ended: dict[tuple[str, int], EndedJob] = {}
        self._held_from = since
        # A day more, as a deletion or a re-run stands before the end that it belongs to.
        self._first_day = day_of(max(since - DAY_S, 0))

    def ended_since(self, since: int, until: int | None = None) -> list[EndedJob]:
        """Give the jobs that ended from one time to another (epoch seconds), by end.

        Each job is there once, with its last run. Malformed lines are passed over, and the log
        says so.

        Raises
        ------
        SchedulerError
            If the files can't be read.
        """
        if since < self._held_from or self._held_from == 0:
            self._forget(since)
        # A record is written as its job ends; a day more for the server's own lateness.
        last_day = "99999999" if until is None else day_of(until + DAY_S)
        malformed = []
        for where, line in self._files.lines(self._first_day, last_day):
            try:
                self._take(line.decode("utf-8", errors="replace"))
            except ValueError as error:
                malformed.append(f"{where}: {error}")
        if malformed:
            logger.warning(
                "PBS accounting: %d malformed lines passed over: %s",
                len(malformed),
                "; ".join(malformed[:_MOST_NAMED])
                + ("; and more" if len(malformed) > _MOST_NAMED else ""),
            )
        if since > self._held_from:
            self._ended = {key: job for key, job in self._ended.items() if job.end_time >= since}
            self._held_from = since
        jobs = [
            job for job in self._ended.values() if until is None or since <= job.end_time <= until
        ]
        return sorted(jobs, key=_end_time)

    def _take(self, line: str) -> None:
        try:
            job = self._follower.take(parse_line(line))
        except NotAJobError:
            return
        if job is not None and job.end_time >= self._held_from:
            self._ended[job.job_id, job.submit_time] = job


def _end_time(job: EndedJob) -> int:
    return job.end_time


_HEAD = rb"^[^;]*;[^;]*;[^;]*;"
_LINE = re.compile(
    _HEAD + rb"(?:"
    rb"Hook;[^;]*;foretime: event=(?P<event>\w+) job=(?P<job>\S+) (?P<said>.*)"
    rb"|Req;[^;]*;Type (?P<request>[15]) request received from \S*, sock=(?P<connection>\d+)"
    rb"|Job;(?P<queued>[^;]+);Job Queued at request of )"
)
_TELLING = re.compile(rb";foretime: event=|;Type [15] request |;Job Queued at ")
_SUBMISSION = b"1"
_LOOK_BACK_S, _KEPT_S = 7 * DAY_S, 90 * DAY_S


class DecisionTail:
    """What the hook decided, from its lines in ``server_logs``, by job.

    It keeps each job's latest line for three months. At its start it looks back a week.

    At a submission a job has no id yet. It gets it when its last request, Type 1 for a command,
    Type 5 after a script, is done: on the same connection. A server that logs no requests (bit
    0x100 of its log_events is off) tells of no connections: there a submission's line is taken
    for the next job that is queued, unless another job was submitted in between.

    Parameters
    ----------
    folder
        The server logs' folder.
    """

    def __init__(self, folder: Path) -> None:
        self._files = DayFiles(folder, "scheduler.pbs_server_logs_dir")
        self._latest: dict[str, tuple[int, str]] = {}
        self._submitted: dict[bytes, list[str]] = {}  # by connection, what awaits its job's id
        self._connection = b""
        self._first_day: str | None = None
        self._next_cleaning = 0

    def follow(self, now: int) -> None:
        """Read what is new; forget what was logged for jobs that nobody asked for in a long time.

        Raises
        ------
        SchedulerError
            If the files can't be read.
        """
        if self._first_day is None:
            self._first_day = day_of(max(now - _LOOK_BACK_S, 0))
        for _, line in self._files.lines(self._first_day, "99999999"):
            if _TELLING.search(line) and (found := _LINE.search(line)):
                self._take(found, now)
        if now >= self._next_cleaning:
            oldest = now - _KEPT_S
            for job_id in [key for key, (at, _) in self._latest.items() if at < oldest]:
                del self._latest[job_id]
            self._next_cleaning = now + DAY_S

    def _take(self, found: re.Match[bytes], now: int) -> None:
        if found["request"]:
            self._connection = found["connection"]
            if found["request"] == _SUBMISSION:
                self._submitted.pop(self._connection, None)  # that one was rejected
        elif found["queued"]:
            waiting = self._submitted.pop(self._connection, [])
            if len(waiting) == 1:
                job_id = found["queued"].decode("utf-8", "replace")
                self._latest[job_id] = now, f"event=queuejob job={job_id} {waiting[0]}"
        else:
            said = found["said"].decode("ascii", "replace")
            if found["job"] == b"-":
                self._submitted.setdefault(self._connection, []).append(said)
            else:
                job_id = unquote_to_bytes(found["job"]).decode("utf-8", "replace")
                event = found["event"].decode("ascii")
                self._latest[job_id] = now, f"event={event} job={job_id} {said}"

    def of(self, job_id: str) -> str:
        """Give the latest decision about a job, "" if there is none."""
        array = re.sub(r"\[\d+\]", "[]", job_id)
        return (self._latest.get(job_id) or self._latest.get(array) or (0, ""))[1]
