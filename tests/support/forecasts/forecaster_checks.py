"""Checks that every forecaster of waits passes; a new one is tested by being given to them.

Each check takes ``make``, which builds a fresh forecaster for a workload (an oracle is told its
runtimes), a workload and a policy; it raises AssertionError with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.policies.policy import Policy
from foretime_sim.waits.forecast_records import ForecastRecords
from foretime_sim.waits.forecaster import WaitForecaster, WaitForecasts
from foretime_sim.waits.moment import Moment
from foretime_sim.waits.scores.moments import Asking, ask_forecasters
from foretime_sim.waits.scores.wait_sources import SimulatedWaits
from foretime_sim.workloads.workload import Workload

Make: TypeAlias = Callable[[Workload], WaitForecaster]
Check: TypeAlias = Callable[[Make, Workload, Policy], None]


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def _asked(
    forecaster: WaitForecaster, workload: Workload, policy: Policy, looks_s: tuple[int, ...]
) -> ForecastRecords:
    return ask_forecasters(SimulatedWaits(workload, policy), [forecaster], Asking(looks_s=looks_s))


def _looks(workload: Workload) -> tuple[int, ...]:
    """Give times of later looks that are as short as the workload's jobs."""
    typical = int(np.median(workload.requested_time))
    return max(1, typical // 4), max(2, typical)


def require_forecasts(forecasts: WaitForecasts) -> None:
    """Require what holds of any forecasts: no answer at all, or quantiles that rise from 0 or more.

    Raises
    ------
    AssertionError
        Naming the row.
    """
    missing = np.isnan(forecasts.wait_s)
    for row, (quantiles, now) in enumerate(
        zip(forecasts.wait_s, forecasts.starts_now, strict=True)
    ):
        if missing[row].any() or np.isnan(now):
            _require(bool(missing[row].all() and np.isnan(now)), f"row {row} is half an answer")
            continue
        _require(bool(np.isfinite(quantiles).all()), f"row {row}: {quantiles} is not finite")
        _require(bool((np.diff(quantiles) >= 0).all()), f"row {row}: {quantiles} falls")
        _require(bool((quantiles >= 0).all()), f"row {row}: {quantiles} is in the past")
        _require(0 <= now <= 1, f"row {row}: starts now with the probability {now}")


def check_forecasts(make: Make, workload: Workload, policy: Policy) -> None:
    """Check that every answer is one, at submissions and later."""
    records = _asked(make(workload), workload, policy, _looks(workload))
    require_forecasts(records.of(records.methods[0]))


def check_sees_no_future(make: Make, workload: Workload, policy: Policy) -> None:
    """Check that what has not happened yet can't change an answer.

    Jobs submitted after a cut are removed, and those that had not ended by then end at other times;
    once where a job waits for long, and once in the middle.
    """
    if make(workload).oracle:
        return  # it says so itself
    looks_s = _looks(workload)
    whole = SimulatedWaits(workload, policy)
    records = ask_forecasters(whole, [make(workload)], Asking(looks_s=looks_s))
    jobs = len(workload)
    ended = np.array([whole.finished(job).end_time for job in range(jobs)])
    started = ended - np.array([whole.finished(job).actual_runtime for job in range(jobs)])
    longest = int(np.argmax(started - workload.submit_time))
    for last in (longest, int(0.6 * jobs)):
        cut = int(workload.submit_time[last])
        known = workload.take(workload.submit_time <= cut)
        unknown = ended[: len(known)] > cut
        age = np.maximum(0, cut - started[: len(known)])
        other = np.where(unknown, age + 1 + known.actual_runtime // 3, known.actual_runtime)
        otherwise = replace(known, actual_runtime=np.minimum(other, known.requested_time))
        again = _asked(make(otherwise), otherwise, policy, looks_s)
        before, same = records.made_at <= cut, again.made_at <= cut
        _require(
            bool(np.array_equal(records.job[before], again.job[same]))
            and bool(np.array_equal(records.made_at[before], again.made_at[same])),
            f"other jobs were asked about up to {cut}: the check is wrong",
        )
        for name in ("wait_s", "starts_now"):
            first, second = getattr(records, name)[0, before], getattr(again, name)[0, same]
            _require(
                bool(np.array_equal(first, second, equal_nan=True)),
                f"{name} up to {cut} depends on what came later",
            )


def check_deterministic(make: Make, workload: Workload, policy: Policy) -> None:
    """Check that two fresh ones give the same answers."""
    looks_s = _looks(workload)
    first = _asked(make(workload), workload, policy, looks_s)
    second = _asked(make(workload), workload, policy, looks_s)
    _require(bool(np.array_equal(first.wait_s, second.wait_s, equal_nan=True)), "two runs differ")


def check_empty_history(make: Make, workload: Workload, policy: Policy) -> None:
    """Check that a machine without jobs and a past without events are no trouble.

    Whoever answers then must say that a job which fits on an empty machine may start.
    """
    forecaster = make(workload)
    none = np.zeros(0, dtype=np.int64)
    empty = Snapshot(
        int(workload.submit_time[0]),
        workload.machine_processors,
        RunningJobs(none, none, none),
        PendingJobs(none, none, none),
    )
    nobody = forecaster.forecast(Moment(empty, policy, [], none))
    _require(len(nobody.starts_now) == 0, "nobody was asked about, but there is an answer")
    request = workload.job_request(0)
    forecaster.submitted(request)
    alone = empty.with_job(request.processors, request.requested_time)
    forecasts = forecaster.forecast(Moment(alone, policy, [request], np.array([0])))
    _require(len(forecasts.starts_now) == 1, "one job was asked about")
    require_forecasts(forecasts)


def check_asked_in_any_order(make: Make, workload: Workload, policy: Policy) -> None:
    """Check that there is an answer for each job asked about, whichever are."""
    forecaster = make(workload)
    some = workload.head(min(len(workload), 12))
    now = int(some.submit_time[-1])
    pending = PendingJobs(np.minimum(some.submit_time, now), some.processors, some.requested_time)
    none: Int64Array = np.zeros(0, dtype=np.int64)
    snapshot = Snapshot(now, workload.machine_processors, RunningJobs(none, none, none), pending)
    requests = [some.job_request(job) for job in range(len(some))]
    for request in requests:
        forecaster.submitted(request)
    for columns in ([0], [len(some) - 1, 0], list(range(len(some)))):
        asked = np.array(columns, dtype=np.int64)
        forecasts = forecaster.forecast(Moment(snapshot, policy, requests, asked))
        _require(len(forecasts.starts_now) == len(columns), f"asked {columns}")
        require_forecasts(forecasts)


CHECKS: tuple[Check, ...] = (
    check_forecasts,
    check_sees_no_future,
    check_deterministic,
    check_empty_history,
    check_asked_in_any_order,
)
