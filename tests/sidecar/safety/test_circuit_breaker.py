"""The circuit breaker opens when a figure passes its limit, and stays open until it is reset."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, QueuedJob, QueueState
from foretime_sidecar.safety.circuit_breaker import CircuitBreaker
from foretime_sidecar.safety.hook_supervision import Oversight
from foretime_sidecar.settings.settings import BreakerSettings, Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode

NOW = 1_100_000
Record = Callable[..., FinishedRecord]

_DECIDE = "INSERT INTO job_decisions VALUES (NULL, ?, ?, ?, 'a', 'p', 'q', 1, ?, 3600, ?, '-', 1)"


def site(
    record: Record, runtimes: list[int], path: str = ":memory:", **limits: Any
) -> tuple[Store, CircuitBreaker]:
    """Jobs planned with 600 s that ran for so long, and a breaker that judges from ten jobs on."""
    store = Store(path)
    records = [
        record(number, runtime=runtime, end_time=NOW - 1000 + number)
        for number, runtime in enumerate(runtimes)
    ]
    store.add_finished(records, Cursor(NOW))
    rows = [
        (NOW - 5000, one.job.request.job_id, one.job.request.submit_time, "planned", 600)
        for one in records
    ]
    store.write("test", _DECIDE, rows)
    return store, CircuitBreaker(BreakerSettings(**{"least_jobs": 10, **limits}), store)


def test_too_many_jobs_that_outlive_their_times_open_the_breaker(
    record: Record, tmp_path: Path
) -> None:
    path = str(tmp_path / "store")
    store, breaker = site(record, [600] * 5 + [601] * 5, path)
    assert breaker.figures(NOW).outliving_percent == 50
    assert breaker.judge(NOW) is None
    store.close()
    store, breaker = site(record, [600] * 5 + [601] * 6, str(tmp_path / "worse"))
    trip = breaker.judge(NOW)
    assert trip is not None
    assert trip.reason.startswith("54.5% of 11 planned jobs outlived")
    # Neither time nor a restart closes it, nor better figures.
    again = CircuitBreaker(BreakerSettings(most_outliving_percent=100), store)
    assert again.judge(NOW + 10**7) == trip
    assert again.reset(NOW + 10) == trip
    assert again.reset(NOW + 10) is None
    # What it opened for is past.
    assert breaker.judge(NOW + 20) is None
    assert breaker.figures(NOW + 20).planned_jobs == 0


def test_too_few_jobs_open_nothing(record: Record) -> None:
    _, breaker = site(record, [10_000] * 9)
    assert breaker.judge(NOW) is None
    assert breaker.figures(NOW).outliving_percent is None


def test_jobs_outside_of_the_window_do_not_count(record: Record) -> None:
    _, breaker = site(record, [10_000] * 20, window_s=3600)
    assert breaker.judge(NOW + 3600) is None
    assert breaker.judge(NOW) is not None


def test_a_wait_beyond_the_bound_opens_the_breaker(record: Record) -> None:
    _, breaker = site(record, [600] * 100, most_wait_p99_s=60)
    assert breaker.figures(NOW).wait_p99_s == 60
    assert breaker.judge(NOW) is None
    _, breaker = site(record, [600] * 100, most_wait_p99_s=59)
    trip = breaker.judge(NOW)
    assert trip is not None
    assert "99th percentile of the waits is 00:01:00" in trip.reason
    _, breaker = site(record, [600] * 100, most_wait_p99_s=0)
    assert breaker.judge(NOW) is None


@pytest.mark.parametrize("reason", ["Resources", "", "Priority"])
def test_a_head_job_that_slips_opens_the_breaker_but_not_one_behind_it(
    record: Record, reason: str
) -> None:
    store, breaker = site(record, [], most_head_slip_s=3600)
    request = record(1).job.request
    head = QueuedJob(request, QueueState.PENDING, start_time=NOW + 100, reason=reason)
    breaker.note_heads([head], NOW)
    breaker.note_heads([replace(head, start_time=NOW + 3700)], NOW + 60)
    breaker.note_heads([replace(head, start_time=None)], NOW + 90)
    assert breaker.judge(NOW + 100) is None
    breaker.note_heads([replace(head, start_time=NOW + 3701)], NOW + 120)
    trip = breaker.judge(NOW + 1000)
    assert (trip is not None) is (reason != "Priority")
    if trip is not None:
        assert "a head job's start slipped by 01:00:01" in trip.reason
        # The same job still waits, as it was last planned; only what it slips from now on counts.
        breaker.reset(NOW + 1001)
        breaker.note_heads([replace(head, start_time=NOW + 3701)], NOW + 1002)
        assert breaker.judge(NOW + 1002) is None
        breaker.note_heads([replace(head, start_time=NOW + 7302)], NOW + 1003)
        assert breaker.judge(NOW + 2000) is not None
    assert store.rows("SELECT count(*) FROM head_jobs") == [(int(reason != "Priority"),)]


def test_an_open_breaker_takes_enforce(record: Record, tmp_path: Path) -> None:
    store, breaker = site(record, [10_000] * 20)
    off = tmp_path / "off"
    settings = Settings.model_validate({"hook": {"mode": "enforce", "disable_file": str(off)}})
    oversight = Oversight(settings, store, threading.RLock())
    assert oversight.allowed(Mode.ENFORCE, "") == (Mode.ENFORCE, "")
    breaker.judge(NOW)
    mode, reason = oversight.allowed(Mode.ENFORCE, "")
    assert mode is Mode.OBSERVE
    assert "the circuit breaker is open: 100.0% of 20" in reason
    assert oversight.allowed(Mode.ADVISE, "") == (Mode.ADVISE, "")
    breaker.reset(NOW)
    off.touch()
    for asked in (Mode.ENFORCE, Mode.ADVISE):
        mode, reason = oversight.allowed(asked, "")
        assert (mode, str(off) in reason) == (Mode.OBSERVE, True)
