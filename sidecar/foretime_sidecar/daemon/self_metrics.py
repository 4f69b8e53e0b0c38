"""What the daemon tells of itself at /metrics, for Prometheus."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import psutil
from foretime_estimators.time_units import HOUR_S
from foretime_sim.waits.forecaster import BOUNDS
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_metrics import watch_metrics

_REFUSALS = (400, 401, 403, 421, 429, 500, 503)
"""HTTP statuses that are told from the start on, so that their increase can be seen."""


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
    refused
        Requests that were answered with each HTTP status from 400 on.
    """

    started_at: int
    errors: dict[str, int] = field(default_factory=lambda: {"scheduler": 0, "state": 0})
    last_error: str = ""
    refused: dict[int, int] = field(default_factory=lambda: dict.fromkeys(_REFUSALS, 0))

    def note_answer(self, status: int) -> None:
        """Count an answer if it is a refusal; only the thread that answers requests calls it."""
        if status >= _REFUSALS[0]:
            self.refused[status] = self.refused.get(status, 0) + 1


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
            "foretime_pause_seconds": (
                "Pause between two looks at the scheduler now.",
                float(self._sidecar.pause.seconds),
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
        yield from self._of_forecasts(now)
        yield from self._of_estimators(now)
        yield from self._of_the_order()
        yield from self._of_beside(now)
        yield from self._of_notifications()
        yield from watch_metrics(self._sidecar, dict(self._health.refused), now)
        yield from self._of_the_process()

    def _of_forecasts(self, now: float) -> Iterator[Metric]:
        forecasting = self._sidecar.forecasting
        if forecasting is None or forecasting.board is None:
            return
        yield GaugeMetricFamily(
            "foretime_forecasts_age_seconds",
            "Since the look at the queue that the forecasts are of.",
            value=max(now - forecasting.board.made_at, 0.0),
        )
        yield GaugeMetricFamily(
            "foretime_forecasts_pending",
            "Pending jobs that have a forecast.",
            value=sum(row.job.tasks for row in forecasting.board.rows if row.waits is not None),
        )
        yield CounterMetricFamily(
            "foretime_forecast_failures",
            "Times that forecasts could not be refreshed.",
            value=forecasting.failures,
        )
        kept = forecasting.kept_bounds
        if kept is not None and kept.kept_share is not None:
            yield GaugeMetricFamily(
                "foretime_start_bounds_judged",
                f"Bounds of the last {kept.days} days that jobs started within or waited past.",
                value=kept.judged,
            )
            yield GaugeMetricFamily(
                "foretime_start_bounds_kept_share",
                "Share of them that were kept.",
                value=kept.kept_share,
            )
        done = forecasting.reliability
        if done is None or not done.scored:
            return
        yield GaugeMetricFamily(
            "foretime_forecasts_scored",
            f"Forecasts of the last {done.days} days whose job has started.",
            value=done.scored,
        )
        within = GaugeMetricFamily(
            "foretime_forecast_within_share",
            "Share of waits that did not exceed the bound of a level.",
            labels=["level"],
        )
        for level, share in zip(done.levels, done.share_within, strict=True):
            if level in BOUNDS and share is not None:
                within.add_metric([str(level)], share)
        yield within
        figures = {
            "foretime_forecast_pinball_seconds": ("Mean pinball loss.", done.pinball_s),
            "foretime_forecast_median_error_seconds": (
                "Half of the likely waits were off by no more.",
                done.median_error_s,
            ),
            "foretime_forecast_now_brier": (
                "Mean squared error of the probability of a start within a minute.",
                done.brier_now,
            ),
        }
        for name, (meaning, value) in figures.items():
            if value is not None:
                yield GaugeMetricFamily(name, meaning, value=value)

    def _of_estimators(self, now: float) -> Iterator[Metric]:
        scoreboard = self._sidecar.scoreboard
        if scoreboard is None:
            return
        yield CounterMetricFamily(
            "foretime_estimators_failures",
            "Times that the estimators' scores could not be refreshed.",
            value=scoreboard.failures,
        )
        board = scoreboard.board
        if board is None:
            return
        yield GaugeMetricFamily(
            "foretime_estimators_age_seconds",
            "Since the look at the queue that the estimators' scores are of.",
            value=max(now - board.made_at, 0.0),
        )
        yield GaugeMetricFamily(
            "foretime_estimators_set_aside",
            "Estimators that failed or were too slow.",
            value=sum(bool(row.set_aside) for row in board.rows),
        )
        in_use = GaugeMetricFamily(
            "foretime_estimator_in_use",
            "1 for the estimator that jobs are planned by.",
            labels=["estimator"],
        )
        accuracy = GaugeMetricFamily(
            "foretime_estimator_accuracy",
            "Mean of min/max of prediction and runtime.",
            labels=["estimator"],
        )
        under = GaugeMetricFamily(
            "foretime_estimator_under_predicted_share",
            "Share of jobs that ran longer than predicted.",
            labels=["estimator"],
        )
        enough = board.users >= self._sidecar.settings.api.smallest_group
        for row in board.rows:
            in_use.add_metric([row.name], float(row.in_use))
            if enough and row.accuracy is not None and row.under_predicted is not None:
                accuracy.add_metric([row.name], row.accuracy)
                under.add_metric([row.name], row.under_predicted)
        yield from (in_use, accuracy, under)

    def _of_beside(self, now: float) -> Iterator[Metric]:
        beside = self._sidecar.beside
        if beside is None:
            return
        yield CounterMetricFamily(
            "foretime_beside_failures",
            "Times that the plain scheduler beside could not go on.",
            value=beside.failures,
        )
        standing = beside.standing
        if standing.ran_at is None:
            return
        yield GaugeMetricFamily(
            "foretime_beside_age_seconds",
            "Since what the latest run of the plain scheduler knows.",
            value=max(now - standing.ran_at, 0.0),
        )
        yield GaugeMetricFamily(
            "foretime_beside_late_jobs",
            "Waiting jobs that are later than beside.most_late_s over the plain scheduler.",
            value=beside.late.count(int(now)),
        )
        yield GaugeMetricFamily(
            "foretime_beside_behind_seconds",
            "Work of the jobs that would have started without Foretime, and still wait, in seconds"
            " of the nodes that they wait for, where it is most.",
            value=beside.late.behind_s,
        )
        account = beside.latest_account
        if account is None:
            return
        for name, what, row in (
            ("brought", "Foretime has saved", account.brought),
            ("would_bring", "Foretime would have saved", account.would_bring),
        ):
            if row.jobs:
                yield GaugeMetricFamily(
                    f"foretime_{name}_seconds",
                    f"Seconds of waiting that {what} in the last four weeks.",
                    value=HOUR_S * row.saved_hours,
                )
            if row.low_hours is not None and row.high_hours is not None:
                for side, hours in (("low", row.low_hours), ("high", row.high_hours)):
                    yield GaugeMetricFamily(
                        f"foretime_{name}_{side}_seconds",
                        f"The {side} end of the interval of 95% around it.",
                        value=HOUR_S * hours,
                    )
        if account.model.bias_percent is not None:
            yield GaugeMetricFamily(
                "foretime_beside_bias_percent",
                "By how much waits are longer in the model than they were.",
                value=account.model.bias_percent,
            )

    def _of_the_order(self) -> Iterator[Metric]:
        starts = self._sidecar.scheduler.starts
        if starts is not None:
            yield CounterMetricFamily(
                "foretime_jobs_raised", "Jobs raised to start at once.", value=starts.raised
            )
            yield CounterMetricFamily(
                "foretime_jobs_raised_missed",
                "Of these, jobs that had not started by the next look, though they still fitted.",
                value=starts.missed,
            )
        if not self._sidecar.settings.queue_order.keeps_order:
            return
        yield GaugeMetricFamily(
            "foretime_queue_order_going_first",
            "Jobs that go before the others, having waited for long or near their bound.",
            value=self._sidecar.going_first,
        )
        switched = self._sidecar.switched_order
        if switched is None:
            return
        yield CounterMetricFamily(
            "foretime_queue_order_tries",
            "Times that the best order of the queue was found.",
            value=switched.tries,
        )
        yield CounterMetricFamily(
            "foretime_queue_order_failures",
            "Times that it could not be, and the order stayed.",
            value=switched.failures,
        )
        if switched.last is not None:
            yield GaugeMetricFamily(
                "foretime_queue_order_seconds",
                "How long it took to find at the last look.",
                value=switched.last.took_s,
            )
        in_use = GaugeMetricFamily(
            "foretime_queue_order_in_use", "1 for the order that the queue is in.", labels=["order"]
        )
        switches = CounterMetricFamily(
            "foretime_queue_order_switches", "Switches to an order.", labels=["order"]
        )
        present, counts = switched.now_in, switched.log.counts()
        for order in self._sidecar.settings.queue_order.orders:
            in_use.add_metric([order], float(present is not None and present.order == order))
            switches.add_metric([order], counts.get(order, 0))
        yield from (in_use, switches)

    def _of_notifications(self) -> Iterator[Metric]:
        notifier = self._sidecar.notifier
        if notifier is None:
            return
        told = CounterMetricFamily(
            "foretime_notifications", "Notifications, by what became of them.", labels=["outcome"]
        )
        outbox = notifier.outbox
        told.add_metric(["sent"], outbox.sent)
        told.add_metric(["failed"], outbox.failed)
        told.add_metric(["dropped"], outbox.dropped)
        told.add_metric(["limited"], notifier.limited)
        yield told
        yield CounterMetricFamily(
            "foretime_notify_failures",
            "Times that it could not be found what to notify users of.",
            value=notifier.failures,
        )

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
