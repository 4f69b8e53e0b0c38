"""What the daemon tells of itself at /metrics, for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psutil
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foretime_sidecar.sidecar import Sidecar


@dataclass(slots=True)
class Health:
    """How the polls went.

    Attributes
    ----------
    started_at
        Epoch seconds.
    errors
        Failed polls so far, by whose part failed: "scheduler" or "state".
    last_error
        What went wrong last; "" once a poll has gone through again.
    """

    started_at: int
    errors: dict[str, int] = field(default_factory=lambda: {"scheduler": 0, "state": 0})
    last_error: str = ""


class SelfMetrics(Collector):
    """The daemon's figures, read at each scrape; names and meanings are in ``docs/api.md``.

    Parameters
    ----------
    sidecar, health
        What is told of.
    clock
        Epoch seconds.
    """

    def __init__(self, sidecar: Sidecar, health: Health, clock: Callable[[], float]) -> None:
        self._sidecar = sidecar
        self._health = health
        self._clock = clock
        self._process = psutil.Process()
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        self._one_at_a_time = threading.Lock()

    def text(self) -> bytes:
        """Give all of it in Prometheus's text format."""
        with self._one_at_a_time:
            return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Tell the registry nothing beforehand, so that it asks nothing when this registers."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Give each figure that is known."""
        now, progress = self._clock(), self._sidecar.progress
        snapshot = self._sidecar.snapshot

        def age(since: int | None) -> float | None:
            return None if since is None else max(now - since, 0.0)

        left = None if progress.valid_until is None else progress.valid_until - now
        looked_at = None if snapshot is None else snapshot.taken_at
        gauges: dict[str, tuple[str, float | None]] = {
            "foretime_poll_age_seconds": (
                "Since the last poll that went through.",
                age(progress.polled_at),
            ),
            "foretime_queue_age_seconds": (
                "Since the last look at the queue that forecasts start from.",
                age(looked_at),
            ),
            "foretime_table_age_seconds": (
                "Since the table in place was written.",
                age(progress.written_at),
            ),
            "foretime_table_valid_seconds": (
                "Until the hook no longer heeds the table in place; negative: it does not.",
                left,
            ),
            "foretime_table_generation": ("Number of the table in place.", progress.generation),
            "foretime_table_rows": ("Rows of the table in place.", progress.table_rows),
            "foretime_enforcing": (
                "1 if the table tells the hook to change jobs, 0 if only to observe.",
                None if progress.mode is None else float(progress.mode == "enforce"),
            ),
            "foretime_finished_jobs": (
                "Finished jobs learned from, those of the store included.",
                progress.finished_jobs,
            ),
        }
        for name, (meaning, value) in gauges.items():
            if value is not None:
                yield GaugeMetricFamily(name, meaning, value=value)
        errors = CounterMetricFamily(
            "foretime_errors", "Polls that failed, by whose part failed.", labels=["part"]
        )
        for part, count in self._health.errors.items():
            errors.add_metric([part], count)
        yield errors
        yield from self._of_the_process()

    def _of_the_process(self) -> Iterator[Metric]:
        with self._process.oneshot():
            times, memory = self._process.cpu_times(), self._process.memory_info()
            started, files = self._process.create_time(), self._process.num_fds()
        yield CounterMetricFamily(
            "process_cpu_seconds", "Processor time used.", value=times.user + times.system
        )
        yield GaugeMetricFamily(
            "process_resident_memory_bytes", "Resident memory.", value=memory.rss
        )
        yield GaugeMetricFamily("process_open_fds", "Open files and sockets.", value=files)
        yield GaugeMetricFamily(
            "process_start_time_seconds", "Start of the daemon, epoch seconds.", value=started
        )
