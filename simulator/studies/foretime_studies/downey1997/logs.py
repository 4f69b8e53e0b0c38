"""The logs of Downey 1997: on which machines they are simulated, and the classes of their jobs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from foretime_estimators.arrays import Int64Array, StringArray
from foretime_sim.logs.filters import Filters, workload_of_log
from foretime_sim.workloads.job_log import JobLog
from foretime_sim.workloads.workload import Workload

PARAGON, CTC = "SDSC-Par-1996", "CTC-SP2-1996"
PROCESSORS = {PARAGON: 368, CTC: 430}
"""Machines that the paper simulates (sections 5 and 6); other logs run on their own."""
SHORT_S, MEDIUM_S = 900, 10_800
"""Longest requests of CTC's short and medium class, and of logs without such queues."""
STANDBY = "standby"
_INTERACTIVE = "interactive"

Names = StringArray


@dataclass(frozen=True, slots=True)
class StudiedLog:
    """A log, and the class of each job."""

    workload: Workload  # its jobs, on the machine that they are simulated on
    classes: Names  # shape (jobs,): sequential, short, medium, long and the like
    memory: Names  # class of memory, empty where the log does not say; shape (jobs,)
    # Requested times, seconds, shape (jobs,); the workload's are never below the runtimes.
    asked_s: Int64Array
    notes: tuple[str, ...]  # what was made of the log

    @property
    def name(self) -> str:
        """The log's."""
        return self.workload.name

    def with_limits(self) -> Workload:
        """Give the jobs with the requests that they had, killed there."""
        runtime = np.minimum(self.workload.actual_runtime, self.asked_s)
        return replace(self.workload, requested_time=self.asked_s, actual_runtime=runtime)

    @property
    def class_names(self) -> list[str]:
        """The classes that have jobs, in the paper's order."""
        known = ["sequential", "short", "medium", "long", STANDBY]
        return [name for name in known if (self.classes == name).any()]

    def runtimes(self, of: str | None = None) -> Int64Array:
        """Give the runtimes of a class, of all jobs if ``None``; seconds."""
        runtimes = self.workload.actual_runtime
        return runtimes if of is None else runtimes[self.classes == of]


def known_log(name: str) -> str | None:
    """Say which of the paper's logs a name begins with."""
    return next((key for key in PROCESSORS if name.startswith(key)), None)


def studied_log(
    log: JobLog,
    name: str,
    # Size of the machine; if ``None``, the paper's for its two machines, else the log's own.
    processors: int | None = None,
) -> StudiedLog:
    """Make a studied log of a log as read.

    On the Paragon classes go by the queue's last letter (short, medium, long; section 3.1), jobs on
    one processor being a class, and so the standby queues, of which the paper says nothing; of the
    log's jobs those of the batch queues are taken. Elsewhere they go by the requested time.
    """
    known = known_log(name)
    if processors is None and known is not None:
        processors = PROCESSORS[known]
    unasked = bool(np.ma.getmaskarray(log.requested_time).all())
    filters = Filters(overruns="keep", missing_request="runtime" if unasked else "drop")
    workload, report = workload_of_log(log, processors=processors, filters=filters)
    # Requests play no part but for classes: FCFS ends jobs by their runtimes.
    asked = workload.requested_time
    workload = replace(workload, requested_time=np.maximum(asked, workload.actual_runtime))
    memory = np.full(len(workload), "", dtype=np.str_)
    if known == PARAGON and workload.queues is not None:
        queues = np.array([queue or "" for queue in workload.queues.by_job()])
        batch = queues != _INTERACTIVE
        workload, queues, asked = workload.take(batch), queues[batch], asked[batch]
        classes = np.array(
            [
                _paragon_class(queue, size)
                for queue, size in zip(queues.tolist(), workload.processors.tolist(), strict=True)
            ]
        )
        memory = np.array(["fat" if "f" in queue else "thin" for queue in queues.tolist()])
        made = "classes by queue; interactive jobs left out"
    else:
        classes = np.where(asked <= SHORT_S, "short", np.where(asked <= MEDIUM_S, "medium", "long"))
        made = "classes by requested time, at most 15 min, at most 3 h, and longer"
    size = f"simulated on {workload.machine_processors} processors; {made}."
    return StudiedLog(workload, classes, memory, asked, (report.text, f"{workload.name}: {size}"))


def without_standby(log: StudiedLog) -> StudiedLog:
    """Give the Paragon's log without its standby queues, of which the paper says nothing."""
    kept = log.classes != STANDBY
    workload = log.workload.take(kept)
    named = replace(workload, name=f"{log.name}, no standby")
    note = f"{named.name}: the same without {int((~kept).sum()):,} jobs of the standby queues."
    return StudiedLog(named, log.classes[kept], log.memory[kept], log.asked_s[kept], (note,))


def _paragon_class(queue: str, processors: int) -> str:
    if processors == 1:
        return "sequential"
    if STANDBY in queue:
        return STANDBY
    return {"s": "short", "t": "short", "m": "medium", "l": "long"}.get(queue[-1:], STANDBY)
