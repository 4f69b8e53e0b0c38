"""A sidecar that polls without pause, to be killed; told apart from tests by its name."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    ControllerLoad,
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
    SiteLimits,
)
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import (
    AccuracySection,
    SchedulerSettings,
    Settings,
    TableSettings,
)
from foretime_sidecar.store.store import Store

FIRST_END = 1_000_000
STEP_S = 10
OVERLAP_S = 300
POLL_S = 70
MOST_POLLS = 40


class Accounting(SchedulerClient):
    """Job n ended at ``FIRST_END + n * STEP_S``, for every n until now."""

    def __init__(self) -> None:
        self.now = 0

    def configuration(self) -> SchedulerConfiguration:
        return SchedulerConfiguration("slurm", "test", "23.11.10", "sched/backfill")

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        first = max(cursor.end_time - OVERLAP_S - FIRST_END, 0) // STEP_S
        last = (min(self.now, until or self.now) - FIRST_END) // STEP_S
        records = [_record(number) for number in range(first, last + 1)]
        latest = records[-1].job.end_time if records else 0
        return records, Cursor(max(cursor.end_time, latest, until or 0))

    def queue(self) -> Queue:
        return Queue(64, ())

    def reservations(self) -> list[Reservation]:
        return []

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        return SiteLimits()

    def update(self, changes: Sequence[JobChange]) -> None:
        raise NotImplementedError(changes)

    def load(self) -> ControllerLoad | None:
        return None

    def site_factors(self) -> dict[str, int]:
        return {}

    def qos_priorities(self) -> dict[str, int]:
        return {}


def _record(number: int) -> FinishedRecord:
    end = FIRST_END + number * STEP_S
    user, runtime = f"user{number % 40}", 60 + number % 600
    request = JobRequest(str(number), user, "physics", 4, 3600, end - runtime)
    job = FinishedJob(request, end - runtime, end, runtime, Ending.COMPLETED)
    return FinishedRecord(job, end - runtime, "COMPLETED", f"decision {number}")


def poll(folder: Path, says: Connection) -> None:
    """Poll, with store and table in ``folder``, until killed.

    It says ``None`` before it begins, and after each poll that went through its time and the
    generation that it published, 0 for none. It waits after `MOST_POLLS`, so that a test that is
    slow to kill it has no more to check.
    """
    settings = Settings(
        scheduler=SchedulerSettings(history_days=1),
        accuracy=AccuracySection(threshold=2),
        table=TableSettings(path=str(folder / "table"), publish_interval_s=1),
    )
    accounting = Accounting()
    store = Store(folder / "store")
    sidecar = Sidecar(settings, accounting, store)
    cursor = store.cursor()
    accounting.now = FIRST_END if cursor is None else cursor.end_time
    says.send(None)
    for _ in range(MOST_POLLS):
        accounting.now += POLL_S
        result = sidecar.poll(accounting.now)
        says.send((accounting.now, result.generation or 0))
    signal.pause()
