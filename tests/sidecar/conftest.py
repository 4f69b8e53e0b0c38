"""Finished jobs to store and learn from, and a scheduler that says what it is told."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
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

from tests.support.processes.daemon_process import open_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def _record(
    number: int,
    *,
    end_time: int | None = None,
    runtime: int = 600,
    requested_time: int = 3600,
    user: str | None = "alice",
    project: str | None = "physics",
    processors: int = 4,
    ending: Ending = Ending.COMPLETED,
    admin_comment: str = "",
) -> FinishedRecord:
    """A job that ended ten seconds after the one before it, unless told otherwise."""
    end = 1_000_000 + 10 * number if end_time is None else end_time
    request = JobRequest(
        str(number), user, project, processors, requested_time, end - runtime - 60, "main"
    )
    job = FinishedJob(request, end - runtime, end, runtime, ending)
    return FinishedRecord(job, request.submit_time, ending.name, admin_comment)


@dataclass
class FakeScheduler(SchedulerClient):
    """A `SchedulerClient` with the answers in its fields; ``fault`` is raised instead if set."""

    finished: list[FinishedRecord] = field(default_factory=list)
    version: str = "23.11.10"
    parameters: dict[str, str] = field(default_factory=lambda: {"time_min_as_soft_limit": ""})
    to_come: list[Reservation] = field(default_factory=list)
    overlap_s: int = 3600
    asked: list[tuple[Cursor, int | None]] = field(default_factory=list)
    fault: Exception | None = None
    busy: ControllerLoad | None = None

    def configuration(self) -> SchedulerConfiguration:
        if self.fault is not None:
            raise self.fault
        return SchedulerConfiguration(
            "slurm", "test", self.version, "sched/backfill", self.parameters
        )

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        if self.fault is not None:
            raise self.fault
        self.asked.append((cursor, until))
        since = cursor.end_time - self.overlap_s
        found = [
            record
            for record in self.finished
            if record.job.end_time >= since and (until is None or record.job.end_time <= until)
        ]
        found.sort(key=lambda record: record.job.end_time)
        latest = found[-1].job.end_time if found else 0
        return found, Cursor(max(cursor.end_time, latest, until or 0))

    def queue(self) -> Queue:
        return Queue(64, ())

    def reservations(self) -> list[Reservation]:
        return self.to_come

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        return SiteLimits()

    def update(self, changes: Sequence[JobChange]) -> None:
        assert not changes

    def load(self) -> ControllerLoad | None:
        return self.busy


@pytest.fixture(scope="session")
def record() -> Callable[..., FinishedRecord]:
    """Build a finished job by its number."""
    return _record


@pytest.fixture
def scheduler() -> FakeScheduler:
    """A scheduler that says what it is told."""
    return FakeScheduler()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that other users can look into, with a path short enough for a socket."""
    with open_folder() as path:
        yield path


@pytest.fixture
def stockholm(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the machine's clocks be Stockholm's."""
    monkeypatch.setenv("TZ", "Europe/Stockholm")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, for which evil.example and other.example are this machine."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    # Its sandbox does not work for root.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    options += [
        "--host-resolver-rules=MAP *.example 127.0.0.1",
        # What other browsers do not have between a page and this machine.
        "--disable-features=LocalNetworkAccessChecks",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=options)
        yield browser
        browser.close()
