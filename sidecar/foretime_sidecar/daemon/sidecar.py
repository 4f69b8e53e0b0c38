"""The sidecar itself: one poll reads the finished jobs, stores, learns and publishes.

It has no clock and no thread of its own: the daemon polls by the wall clock, a replay by its own.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from dataclasses import dataclass

from foretime_estimators.estimators.estimator import RolePrediction
from foretime_estimators.jobs.errors import SchedulerError, StateError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    QueuedJob,
    QueueState,
    Reservation,
    SchedulerClient,
    SchedulerConfiguration,
)
from foretime_sidecar.clients.cluster import Cluster
from foretime_sidecar.clients.garbage import uncollected
from foretime_sidecar.daemon.limits_reading import LimitsReading
from foretime_sidecar.daemon.poll_rate import Pause
from foretime_sidecar.daemon.table_publication import PublishedTable, TablePublication
from foretime_sidecar.forecasts.latest_starts import NotedBounds, noted_bounds_of
from foretime_sidecar.forecasts.wait_forecasting import WaitForecasting, forecasting_of
from foretime_sidecar.learning.estimator_scheme import learned_scheme_of
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner, effective_mode
from foretime_sidecar.notify.notifier import Notifier, notifier_of
from foretime_sidecar.ordering.switched_order import SwitchedOrder
from foretime_sidecar.plain_beside.beside import PlainBeside
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.queue.prepared_jobs import as_submitted
from foretime_sidecar.safety.hook_supervision import Oversight
from foretime_sidecar.safety.limit_repairs import as_changed
from foretime_sidecar.safety.refinements import NOTHING_REFINED, Refined
from foretime_sidecar.schedulers.choice import strategy_of
from foretime_sidecar.scoreboard.scoreboard import ShadowScoreboard
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.store.personal_data import erase
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode

logger = logging.getLogger("foretime")

# A long absence is made good in slices, so that no answer of the accounting grows without bound.
CATCH_UP_S = DAY_S
# What an estimator may take of a poll: the jobs wait for looks, and are planned without it so far.
_ESTIMATING_S = 5.0


@dataclass(frozen=True, slots=True)
class PollResult:
    """What one poll did.

    Attributes
    ----------
    learned
        Finished jobs that were new.
    generation
        Number of the table that was published, ``None`` if none was due.
    """

    learned: int
    generation: int | None


@dataclass(slots=True)
class Progress(PublishedTable):
    """What the daemon tells of itself, and of its table.

    Attributes
    ----------
    polled_at
        Epoch seconds of the last poll that went through, ``None`` before the first.
    finished_jobs
        Finished jobs learned since the start, and from the store at the start.
    """

    polled_at: int | None = None
    finished_jobs: int = 0


class Sidecar:
    """Learns from a scheduler's finished jobs and keeps the table up to date.

    Parameters
    ----------
    settings
        All settings.
    client
        The scheduler.
    store
        Where finished jobs are kept.
    forecasts
        Whether waits are forecast; whoever drives it then calls ``forecasting.refresh``, too.
    estimating_s
        How long an estimator may learn and be asked at one poll, seconds; infinite, as in a replay:
        as long as it takes, and so may everything else.
    shadow
        Whether all estimators run in the shadow; whoever drives it then calls
        ``scoreboard.refresh``, too.
    bounds
        Whether it is noted when jobs start no later than, even if no waits are forecast.
    site
        Keeps the site that the queue is run forward as; whoever drives it then calls
        ``site.refresh``, too. ``None``: forecasts go by the settings alone.
    beside
        Whether the plain scheduler is run beside; whoever drives it then calls
        ``beside.refresh``, too.
    notifies
        Whether users are sent news as the settings say; whoever drives it then calls
        ``notifier.refresh``, too.
    only_late
        Whether it says nothing but who is late, and not what Foretime brings.

    Attributes
    ----------
    learner
        What was learned; read it only with ``lock`` held.
    lock
        Held while the store and the learner change.
    progress
        What the daemon tells of itself.
    snapshot
        The queue as `look` last saw it, ``None`` before.
    pause
        Until the next look; the daemon sets it, as it adapts to the scheduler's load.
    oversight
        The audit of the hook, and what takes enforce from it.
    private_data
        What users may not see of others, as the scheduler said at the last look.
    forecasting
        What keeps forecasts of waits; ``None`` if nobody wants them.
    estimating
        The estimator of the scheme ``learned``; ``None`` under others.
    scoreboard
        What compares estimators; ``None`` if nobody wants it.
    noted_bounds
        When jobs start no later than; ``None`` if nobody wants to know.
    scheduler
        What is done for its kind of scheduler.
    limits
        What the site limits, and what is left alone for it.
    site
        As given.
    beside
        What runs the plain scheduler beside; ``None`` if nobody wants it.
    notifier
        What sends users news of their jobs; ``None`` if nothing does.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sidecar import Sidecar, Store, parse_settings
    >>> from foretime_sidecar.clients.slurm.commands import SlurmCommands
    >>> from foretime_sim import MockSlurm, Policy
    >>> from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
    >>> slurm = MockSlurm(SlurmSetup(processors=8), Policy(), start_time=1_700_000_000)
    >>> for _ in range(2):
    ...     job = slurm.submit(Submission("ann", "physics", None, 8, 3600, 600))
    >>> slurm.advance(1_700_003_600)
    >>> with TemporaryDirectory() as folder:
    ...     settings = parse_settings(f'table = {{path = "{folder}/table"}}')
    ...     Sidecar(settings, SlurmCommands(slurm.run), Store(":memory:")).poll(1_700_003_600)
    PollResult(learned=2, generation=1)
    """

    def __init__(
        self,
        settings: Settings,
        client: SchedulerClient,
        store: Store,
        *,
        forecasts: bool = False,
        estimating_s: float = _ESTIMATING_S,
        shadow: bool = False,
        bounds: bool = False,
        site: KeptSite | None = None,
        beside: bool = False,
        only_late: bool = False,
        notifies: bool = False,
    ) -> None:
        self.settings = settings
        self.site = site
        self.client = client
        self.store = store
        self.learner = Learner(settings)
        self.lock = threading.RLock()
        self.progress = Progress()
        self.snapshot: Look | None = None
        self.private_data: frozenset[str] = frozenset()
        self.pause = Pause(settings.scheduler.poll_interval_s)
        self.oversight = Oversight(settings, store, self.lock)
        self._table = TablePublication(
            settings.table, store, self.lock, lambda: self.learner, self.oversight, self.progress
        )
        self.noted_bounds: NotedBounds | None = None
        if forecasts or bounds or settings.queue_order.keep_promises:
            self.noted_bounds = noted_bounds_of(settings, store, self.lock)
        unhurried = math.isinf(estimating_s)
        self.forecasting: WaitForecasting | None = None
        if forecasts:
            self.forecasting = forecasting_of(
                settings, store, self.lock, self.noted_bounds, site, unhurried=unhurried
            )
        self.estimating = learned_scheme_of(settings, store, self.lock)
        self.scoreboard = ShadowScoreboard(settings, store, self.lock) if shadow else None
        self.beside: PlainBeside | None = None
        if beside:
            self.beside = PlainBeside(
                settings,
                store,
                self.lock,
                site,
                lambda: self.works_now,
                unhurried=unhurried,
                only_late=only_late,
            )
        self.notifier: Notifier | None = None
        if notifies:
            self.notifier = notifier_of(
                settings.notify,
                store,
                self.lock,
                lambda: None if self.forecasting is None else self.forecasting.board,
                lambda: "jobs" in self.private_data,
            )
        self._estimating_s = estimating_s
        self._reading_s = math.inf if unhurried else settings.scheduler.poll_interval_s
        self.scheduler = strategy_of(
            settings,
            client,
            store,
            self.lock,
            lambda: self.learner.runtimes,
            self.noted_bounds,
            site,
            None if self.beside is None else self.beside.late,
            unhurried=unhurried,
        )
        self.limits = LimitsReading(settings, client)
        self._allowed: tuple[Mode, Exclusions | None] | None = None  # at the last look
        self._cursor: Cursor | None = None
        self._next_publication = 0
        self._next_cleaning = 0

    @property
    def waits(self) -> WaitForecasting:
        """What forecasts waits, of a sidecar that does; `TypeError` for another."""
        if self.forecasting is None:
            raise TypeError("this sidecar forecasts no waits")
        return self.forecasting

    def start(self, now: int) -> Cursor:
        """Learn everything stored, and go on where the reading of finished jobs had stopped.

        Returns
        -------
        Cursor
            That place.

        Raises
        ------
        StateError
            If the store can't be read.
        """
        with self.lock:
            self.learner, self.progress.finished_jobs = self._learned()
            first = Cursor(max(now - self.settings.scheduler.history_days * DAY_S, 0))
            cursor = self._cursor = self.store.cursor(self.settings.scheduler.kind) or first
        self._table.take_over()
        return cursor

    def _learned(self, without: str | None = None) -> tuple[Learner, int]:
        """Learn what is stored, without one user's; give how many jobs that were, too."""
        learner, count = Learner(self.settings), 0
        for job in self.store.finished_jobs():
            if without is None or job.request.user != without:
                learner.learn_one(job)
                count += 1
        return learner, count

    def forget(self, user: str, now: int) -> dict[str, int]:
        """Erase a user's history, and learn the rest anew; give how many rows went, by table.

        The next poll publishes a table without them, and reads nothing of before ``now`` (epoch
        seconds) again. What waits are forecast with is learned anew at the next refresh.

        Raises
        ------
        StateError
            If the store can't be read or written: then nothing has changed.
        """
        with self.lock:
            learner, count = self._learned(without=user)
            if self.scoreboard is not None:
                self.scoreboard.forget()
            erased = erase(self.store, user, now)
            if self.beside is not None:
                self.beside.forget()
            self.learner, self.progress.finished_jobs = learner, count
            self.oversight.forget(user)
            if self.estimating is not None:
                self.estimating.forget()
            self._table.must_write = True
        if self.forecasting is not None:
            self.forecasting.forget(user)
        if self.notifier is not None:
            self.notifier.forget(user)
        return erased

    def poll(self, now: int, *, reads: bool = True) -> PollResult:
        """Read what has finished, store it, learn it, and publish a table if one is due.

        Jobs are learned only once they are stored, so that a failure at any point repeats nothing
        and loses nothing: the next poll reads them again.

        Parameters
        ----------
        now
            Epoch seconds.
        reads
            Whether the accounting is asked for what has finished; a later poll reads it else.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer.
        StateError
            If the store or the table can't be written; the table in place then runs out by itself.
        """
        cursor = self._cursor or self.start(now)
        learned = self._learn(cursor, now) if reads else 0
        self._estimate(now)
        generation = None
        if now >= self._next_publication or self._table.must_write:
            generation = self._publish(now)
            self._next_publication = now + self.settings.table.publish_interval_s
        if now >= self._next_cleaning:
            with self.lock:
                self.store.forget_before(now - self.settings.store.retention_days * DAY_S)
                keep_days = min(
                    self.settings.forecast.keep_days, self.settings.store.retention_days
                )
                self.store.forget_forecasts_before(now - keep_days * DAY_S)
            self._next_cleaning = now + DAY_S
        self.progress.polled_at = now
        return PollResult(learned, generation)

    def _estimate(self, now: int) -> None:
        """Tell the estimator what has happened, and go by it as far as that can be done."""
        with self.lock:
            learner = self.learner
        if self.estimating is None:
            return
        look = self.snapshot or Look(now, Queue(0, ()))
        usable = self.estimating.follow(look, learner.learned, self._estimating_s)
        if learner.learned is None:
            return
        with self.lock:
            if learner.go_by_estimator(usable=usable):
                self._next_publication = now

    @uncollected()
    def look(self, now: int) -> Look:
        """Look at the queue, for forecasts, and at what the scheduler lets the hook do.

        If that has changed, the next poll publishes at once. What the kind of scheduler needs is
        done: see `SchedulerStrategy`.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change; the next look tries it again.
        StateError
            If the store can't be read or written; no job is planned short then.
        """
        configuration, seen = self._see(now)
        self.scheduler.watch(seen)
        mode, refined = Mode.OBSERVE, NOTHING_REFINED
        try:
            mode, _ = self._mode(configuration)
            refined = self._refined(seen, mode)
            read = None if seen.cluster is None else seen.reservations
            exclusions = self.limits.exclusions(configuration, now, read)
        except (SchedulerError, StateError):
            # What can be mended without an answer is.
            self._mend(seen, mode, None, refined)
            raise
        made = self._mend(seen, mode, exclusions, refined)
        mended = as_changed(seen.queue.jobs, made)
        try:
            if self.oversight.note(mended, self.learner, exclusions, now, refined):
                self._next_publication = now
            if self.noted_bounds is not None and self.forecasting is None:
                self.noted_bounds.note(QueueMoment.of(seen, self.settings.forecast))
            self._arrange(seen, configuration, exclusions)
        except StateError:
            # Nothing may be changed that can't be written down; what was is put back.
            self.scheduler.give_back(seen.queue.jobs)
            raise
        return seen

    def _arrange(
        self, seen: Look, configuration: SchedulerConfiguration, exclusions: Exclusions
    ) -> None:
        """Put the queue in order, or start jobs at once, unless planning is switched off."""
        why_not = ""
        if self.scheduler.starts is not None or self.settings.queue_order.keeps_order:
            _, why_not = self.oversight.allowed(Mode.ENFORCE, "")  # which reads the store
        self.scheduler.arrange(seen, configuration, self._scheduled_time_of, why_not)
        if self.scheduler.starts is not None:
            self.scheduler.starts.arrange(seen, configuration, self._expected, exclusions, why_not)

    def _mend(
        self, seen: Look, mode: Mode, exclusions: Exclusions | None, refined: Refined
    ) -> list[JobChange]:
        """Set time_min, and change limits that jobs would be killed at too early; give those."""
        if self._allowed != (mode, exclusions):
            # Before anything is changed, which may be refused.
            self._allowed = mode, exclusions
            self._next_publication = seen.taken_at
        return self.scheduler.mend(seen, exclusions, mode, self.pause.seconds, refined)

    def _refined(self, seen: Look, mode: Mode) -> Refined:
        """Say what time_min of pending jobs is to be by what the estimator says of each now."""
        estimated = None
        if self.estimating is not None and mode is Mode.ENFORCE:
            with self.lock:
                estimated = self.estimating.estimates(self.learner, seen.taken_at)
        return self.scheduler.refined(seen.queue.jobs, estimated, seen.taken_at)

    @property
    def order_refused(self) -> str:
        """Why the queue is not put in order though the settings say so; "" if it is."""
        ordering = self.scheduler.ordering or self.scheduler.starts
        return "" if ordering is None else ordering.refused

    @property
    def works_now(self) -> bool:
        """Whether Foretime changes anything that decides when jobs start."""
        if self.progress.mode == "enforce":
            return True
        order = self.scheduler.ordering or self.scheduler.starts
        set_so = self.settings.queue_order.keeps_order or self.settings.starts_jobs
        return set_so and order is not None and not order.refused

    @property
    def going_first(self) -> int:
        """Jobs that went before the others at the last look, whatever the order."""
        ordering = self.scheduler.ordering
        return 0 if ordering is None else ordering.going_first

    @property
    def switched_order(self) -> SwitchedOrder | None:
        """What chooses the queue's order (dynP); ``None`` if that is set, or not kept at all."""
        ordering = self.scheduler.ordering
        return None if ordering is None else ordering.switched

    def see(self, now: int) -> Look:
        """Look at the queue for forecasts alone; raises `SchedulerError` as `look`."""
        return self._see(now)[1]

    def waits_for_starts(self) -> bool:
        """Whether jobs were pending when the queue was last looked at."""
        jobs = () if self.snapshot is None else self.snapshot.queue.jobs
        return any(job.state is QueueState.PENDING for job in jobs)

    def _see(self, now: int) -> tuple[SchedulerConfiguration, Look]:
        configuration = self.client.configuration()
        self.private_data = configuration.private_data
        queue, soft_limit = self.client.queue(), configuration.soft_limit
        correction = self.scheduler.correction
        seen = self.snapshot = Look(now, queue, soft_limit, correction, *self._nodes())
        if self.site is not None:
            partitions = () if seen.cluster is None else seen.cluster.partitions
            sign = (configuration, configuration.digest, partitions)
            self.site.looked(sign, busy=bool(self.pause.reason))
        if self.forecasting is not None:
            self.forecasting.looked(seen)
        if self.scoreboard is not None:
            self.scoreboard.looked(seen)
        if self.beside is not None:
            self.beside.looked(seen)
        return configuration, seen

    def _nodes(self) -> tuple[Cluster | None, tuple[Reservation, ...], str]:
        """Read the nodes and their reservations, for forecasts; without them a pool is assumed."""
        wanted = (self.forecasting, self.switched_order, self.scheduler.starts, self.beside)
        if all(each is None for each in wanted):
            return None, (), ""
        try:
            return self.client.cluster(), tuple(self.client.reservations()), ""
        except SchedulerError as error:
            logger.warning("forecasts do without the nodes of the machine: %s", error)
            return None, (), str(error)

    def _mode(self, configuration: SchedulerConfiguration) -> tuple[Mode, str]:
        """Give the mode that the table may carry now, and why if it is not the one set."""
        mode, reason = effective_mode(self.settings, configuration)
        mode, reason = self.oversight.allowed(mode, reason)
        if mode is Mode.ENFORCE and (why_not := self.scheduler.why_not_enforced()):
            return Mode.OBSERVE, why_not
        return mode, reason

    def end(self) -> None:
        """Give back what is only good while the sidecar runs, the queue's order; save the rest.

        Raises
        ------
        SchedulerError
            If the scheduler did not answer, or refused a change; the next start tries it again.
        """
        if self.estimating is not None and self.progress.polled_at is not None:
            self.estimating.save(self.progress.polled_at)
        self.scheduler.give_back()

    def _scheduled_time_of(self, job: QueuedJob) -> int:
        return self._scheduled_time(as_submitted(job))

    def _expected(self, job: JobRequest, now: int) -> RolePrediction | None:
        """Give how long a job is expected to run, for each use of it; ``None`` if unknown."""
        if self.estimating is None or self.estimating.why_not:
            return None
        return self.estimating.predict_roles(job, now)

    def _scheduled_time(self, job: JobRequest) -> int:
        with self.lock:
            return self.learner.scheduled_time(job)

    def _learn(self, cursor: Cursor, now: int) -> int:
        """Learn what has finished since a place in the scheduler's records; give how many jobs.

        What was missed in a long absence may take longer than a look can wait: the next poll goes
        on with it.
        """
        learned, began = 0, time.monotonic()
        while True:
            until = None
            if now - cursor.end_time > CATCH_UP_S:
                until = cursor.end_time + CATCH_UP_S
            records, after = self.client.finished_since(cursor, until)
            # An end that lies ahead (a clock that was wrong) must neither take the cursor past
            # others nor age out what was learned: it is read again until its time has come.
            records = [record for record in records if record.job.end_time <= now]
            after = Cursor(min(after.end_time, now))
            if records or after != cursor:
                learned += self._store_and_learn(records, after)
            if until is None or time.monotonic() - began > self._reading_s:
                return learned
            cursor = after

    def _store_and_learn(self, records: list[FinishedRecord], after: Cursor) -> int:
        with self.lock:
            added = self.store.add_finished(records, after, self.settings.scheduler.kind)
            for record in added:
                self.learner.learn_one(record.job)
            self._cursor = after
            self.progress.finished_jobs += len(added)
            self.oversight.learned(added)
        return len(added)

    def _publish(self, now: int) -> int | None:
        configuration: SchedulerConfiguration = self.client.configuration()
        mode, reason = self._mode(configuration)
        return self._table.write(now, mode, reason, self.limits.exclusions(configuration, now))
