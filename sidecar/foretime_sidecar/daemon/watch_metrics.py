"""Metrics by which a site watches Foretime: what it does to jobs, its limits, what is refused."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping

from foretime_estimators.jobs.errors import StateError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from foretime_sidecar.daemon.expected_waits import MOST_PARTITIONS, expected_waits
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import watch_limits
from foretime_sidecar.forecasts.wait_map import largest_mapped
from foretime_sidecar.safety.heartbeat import heartbeat_path, silent_for_s
from foretime_sidecar.safety.hook_record import HookFigures
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.settings.settings import Settings

_OTHER_REASON = "other"


def watch_metrics(sidecar: Sidecar, refused: Mapping[int, int], now: float) -> Iterator[Metric]:
    """Give each figure that is known.

    Parameters
    ----------
    sidecar
        Whose.
    refused
        Requests that were answered with each HTTP status from 400 on.
    now
        Epoch seconds.
    """
    limits = GaugeMetricFamily(
        "foretime_watch_limit",
        "From when on a figure asks for an administrator, in the figure's unit.",
        labels=["of"],
    )
    for name, value in watch_limits(sidecar).items():
        limits.add_metric([name], value)
    yield limits
    requests = CounterMetricFamily(
        "foretime_http_refused", "Requests that were refused, by HTTP status.", labels=["status"]
    )
    for status, count in sorted(refused.items()):
        requests.add_metric([str(status)], count)
    yield requests
    yield from _of_mode(sidecar)
    silent_s = sign_of_life_s(sidecar)
    if silent_s is not None:
        yield GaugeMetricFamily(
            "foretime_sign_of_life_age_seconds",
            "Since the sign of life that the watchdog looks for.",
            value=silent_s,
        )
    yield from _of_the_hook(sidecar, now)
    yield from _of_waits(sidecar)


def sign_of_life_s(sidecar: Sidecar) -> float | None:
    """Give the age of the daemon's sign of life, seconds; ``None``: there is none to be seen."""
    try:  # as the watchdog does, by the file system's clock
        return silent_for_s(heartbeat_path(sidecar.settings.table), time.time())
    except StateError:
        return None


def is_set_to_work(settings: Settings) -> bool:
    """Whether Foretime is set to change when jobs start, whatever keeps it from that."""
    return settings.hook.mode == "enforce" or settings.queue_order.keeps_order


def _of_mode(sidecar: Sidecar) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "foretime_set_to_work",
        "1 if Foretime is set to change when jobs start.",
        value=float(is_set_to_work(sidecar.settings)),
    )
    yield GaugeMetricFamily(
        "foretime_working",
        "1 if it does so now, by the table, the order of the queue, or by raising jobs.",
        value=float(sidecar.works_now),
    )
    yield GaugeMetricFamily(
        "foretime_disabled",
        "1 if foretime disable was said.",
        value=float(sidecar.oversight.disabled()),
    )


def _of_the_hook(sidecar: Sidecar, now: float) -> Iterator[Metric]:
    record = sidecar.oversight.record
    figures = record.figures(math.floor(now))
    if figures is None:
        return
    yield GaugeMetricFamily(
        "foretime_breaker_open", "1 if the circuit breaker is open.", value=float(bool(record.trip))
    )
    yield GaugeMetricFamily(
        "foretime_head_slip_seconds",
        "Largest delay of a head job against its first planned start, in breaker.window_s.",
        value=figures.judged.head_slip_s,
    )
    if figures.judged.wait_p99_s is not None:
        yield GaugeMetricFamily(
            "foretime_wait_p99_seconds",
            "99th percentile of the waits of jobs that ended in breaker.window_s.",
            value=figures.judged.wait_p99_s,
        )
    if figures.latest_end is not None:
        yield GaugeMetricFamily(
            "foretime_latest_end_age_seconds",
            "Since the job ended that was last learned from.",
            value=max(now - figures.latest_end, 0),
        )
    noted = figures.latest()
    if noted is not None:
        yield GaugeMetricFamily(
            "foretime_latest_decision_age_seconds",
            "Since the last line of the audit.",
            value=max(now - noted, 0),
        )
    if figures.users >= sidecar.settings.api.smallest_group:
        yield from _of_enough_users(figures)


def _of_enough_users(figures: HookFigures) -> Iterator[Metric]:
    yield GaugeMetricFamily(
        "foretime_planned_jobs",
        "Planned jobs that ended in breaker.window_s.",
        value=figures.judged.planned_jobs,
    )
    if figures.judged.outliving_percent is not None:
        yield GaugeMetricFamily(
            "foretime_outliving_percent",
            "Of these, those that ran longer than their scheduled time.",
            value=figures.judged.outliving_percent,
        )
    unplanned = figures.unplanned_percent()
    if unplanned is not None:
        yield GaugeMetricFamily(
            "foretime_unplanned_percent",
            "Of the jobs that the table says to plan, those that the hook did not.",
            value=unplanned,
        )
    counts: dict[tuple[str, str], int] = {}
    for row in figures.decided:
        # What a hook of another release says must not make a series.
        key = row.action, row.reason if row.reason in REASONS else _OTHER_REASON
        counts[key] = counts.get(key, 0) + row.jobs
    decided = GaugeMetricFamily(
        "foretime_decided_jobs",
        "Jobs seen in breaker.window_s, by the latest word of the audit on each.",
        labels=["action", "reason"],
    )
    for key, jobs in counts.items():
        decided.add_metric(list(key), jobs)
    yield decided


def _of_waits(sidecar: Sidecar) -> Iterator[Metric]:
    """Give expected waits where whoever is unknown is told them exactly, too."""
    forecasting = sidecar.forecasting
    if forecasting is None or (board := forecasting.board) is None:
        return
    users = {row.request.user for row in board.rows}
    users |= {job.request.user for job in board.running.values()}
    if "jobs" in sidecar.private_data or 0 < len(users) < sidecar.settings.api.smallest_group:
        return
    labels = ["slurm_partition", "size_class"]
    median = GaugeMetricFamily(
        "foretime_expected_wait_seconds",
        "Likely wait of a job of up to 4 h that is submitted now, of the largest size of a class.",
        labels=labels,
    )
    bound = GaugeMetricFamily(
        "foretime_expected_wait_bound_seconds",
        "What 95% of such jobs do not exceed.",
        labels=labels,
    )
    own = largest_mapped(board, MOST_PARTITIONS)
    for wait in expected_waits(forecasting.maps(), own):
        median.add_metric([wait.slurm_partition, wait.size_class], wait.median_s)
        bound.add_metric([wait.slurm_partition, wait.size_class], wait.bound_95_s)
    yield from (median, bound)
