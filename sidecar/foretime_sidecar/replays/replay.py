"""The main job: a log replayed on a mock scheduler, through the real hook and the real sidecar.

Flow 4 of the architecture: the mock Slurm calls the shipped ``job_submit.lua`` for each submission,
the mock PBS ``foretime_hook.py``; the sidecar polls the mock as it polls a real scheduler, stores
and learns what has finished, and publishes the table that the hook reads; the engine schedules. The
clock and the scheduler alone are simulated.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from foretime_estimators.estimators.job_events import learn_history
from foretime_estimators.estimators.registry import parse_estimator
from foretime_estimators.jobs.errors import InputError, StateError
from foretime_sim.engine.engine import simulate
from foretime_sim.engine.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.engine.finished_history import finished_before
from foretime_sim.engine.schedule import check as check_schedule
from foretime_sim.engine.schedule import why_never
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.estimator_hook import EstimatorHook
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.pbs.mock_pbs import MockPbs
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.order import Order
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.python_policy import PythonBackfill
from foretime_sim.policies.site_machine import site_of
from foretime_sim.scores.comparison import PairedRun
from foretime_sim.scores.replay_result import HookStatistics, OrderingStatistics
from foretime_sim.scores.start_promises import StartPromises, promised_starts
from foretime_sim.sites.pbs.formula import RANK
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.workload import Workload

from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.forecasts.forecast_reliability import Reliability, reliability
from foretime_sidecar.ordering.pbs_starts import why_no_ranks
from foretime_sidecar.replays.replay_looks import OrderingLooks
from foretime_sidecar.replays.replay_outcome import AdjustedStatistics, ReplaySchedule, ordering_of
from foretime_sidecar.replays.replay_schedulers import (
    MockedScheduler,
    mocked_pbs,
    mocked_slurm,
    pbs_by_estimator,
)
from foretime_sidecar.settings.beside_settings import BesideSettings
from foretime_sidecar.settings.learned_settings import LearnedSettings
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import (
    AccuracySection,
    BreakerSettings,
    ForecastSettings,
    HookSettings,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.site_import.kept_site import KeptSite
from foretime_sidecar.site_import.site_sources import GivenSite, LiveSite, SiteSource
from foretime_sidecar.store.store import Store

TABLE_SCHEMES = ("user", "project", "combined", "learned")
SCHEMES = ("requested", *TABLE_SCHEMES, "actual", "blend:a")

_MORE_JOBS_THAN_ANY = 10**9
_OUTLASTS_ANY_LOG_S = 100 * 365 * 86_400
_POLLED_S = 60  # as the daemon does by default


@dataclass(frozen=True)
class Replay:
    """One log's replay, without and with Foretime; picklable, so that repeats run in processes.

    Attributes
    ----------
    policy
        Queue order, backfilling, correction, roles, guard and event order of both runs.
    scheme
        One of `SCHEMES`: those of `TABLE_SCHEMES` go through hook, table and sidecar; ``actual``
        and ``blend:a`` are oracles that the engine is given directly.
    mechanism
        How t_sched reaches the scheduler.
    accuracy
        The accuracy rule, as in the daemon's settings.
    learned
        The estimator of the scheme ``learned``, and how it is gone by, as in the daemon's settings.
    learn
        Whether jobs that finish are learned (otherwise the history alone decides).
    history
        Jobs learned before the log begins: those that had ended by then, at their logged ends. On
        the workload's clock if it does not say when it was. ``None`` for none.
    publish_interval_s
        How often a table may be written, seconds of the virtual clock.
    lua_version
        Which Lua runs Slurm's hook.
    estimator
        Name of an estimator that takes the hook's place on PBS, instead of scheme, table and
        sidecar; see `foretime_sim.mocks.estimator_hook`.
    readjust_after_s
        PBS's hook: a job that has waited so long, seconds, is judged anew as it starts.
    state_dir
        Where store and table are kept, in a new folder ``repeat-N``; ``None`` for a folder that
        is removed afterwards.
    setup
        Faults to inject: the mock Slurm's slurm.conf; processors are the workload's.
    reservations
        Advance reservations of both runs, on the workload's clock.
    queue_order
        How the sidecar puts the queue in order through site factors, in place of the policy's own
        order; ``None``: it does not. Slurm only.
    look_interval_s
        How often it looks at the queue for that, seconds; 0: at every event.
    look_takes_s
        How long after a look the queue is changed by it, seconds: below the time between two looks.
        Slurm only.
    plain_beside
        Whom the plain scheduler that is run beside protects from jobs that start at once; as in the
        daemon's settings.
    forecast_interval_s
        How often the queue is looked at and the waits of all pending jobs are forecast, seconds of
        the virtual clock; ``None``: never. They are kept, scored and learned from as the daemon's.
    check
        Whether the conservation laws are checked on both schedules.
    progress
        Called with the number of jobs submitted so far, about a hundred times.

    Examples
    --------
    >>> from foretime_sidecar import Replay
    >>> from foretime_sim import Policy, generate
    >>> workload = generate("lublin2003", jobs=50, processors=32, seed=1)
    >>> both = Replay(Policy(), scheme="actual")(workload, 0)
    >>> len(both.baseline.start_time), len(both.adjusted.start_time)
    (50, 50)
    """

    policy: Policy
    scheme: str = "combined"
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT
    accuracy: AccuracySection = field(default_factory=AccuracySection)
    learned: LearnedSettings = field(default_factory=LearnedSettings)
    learn: bool = True
    history: Workload | None = None
    publish_interval_s: int = 3600
    lua_version: str = "5.1"
    estimator: str | None = None
    readjust_after_s: int = 3600
    state_dir: Path | None = None
    setup: SlurmSetup | None = None
    reservations: tuple[AdvanceReservation, ...] = ()
    queue_order: QueueOrderSettings | None = None
    look_interval_s: int = 60
    look_takes_s: int = 0
    plain_beside: BesideSettings = field(default_factory=BesideSettings)
    forecast_interval_s: int | None = None
    check: bool = False
    progress: Callable[[int], None] | None = None

    def __call__(self, workload: Workload, repeat: int) -> PairedRun:
        """Run a workload without and with Foretime."""
        plain = simulate(workload, self.policy, reservations=self.reservations, check=self.check)
        baseline = ReplaySchedule.of(workload, plain, workload.requested_time)
        if self.estimator is not None:
            adjusted, statistics = self._by_estimator(workload, self.estimator)
        elif self.scheme in TABLE_SCHEMES or self.queue_order is not None:
            adjusted, statistics = self._through_the_hook(workload, repeat)
        else:
            adjusted, statistics = self._by_oracle(workload)
        promised = StartPromises.of(workload, baseline, promised_starts(self.policy, plain))
        never_ran = (why_never(baseline.never_ran), why_never(adjusted.never_ran))
        statistics = replace(statistics, baseline_promises=promised, never_ran=never_ran)
        return PairedRun(baseline, adjusted, statistics)

    def _by_oracle(self, workload: Workload) -> tuple[ReplaySchedule, AdjustedStatistics]:
        estimated = simulate_with_estimator(
            workload,
            self.policy,
            estimator_of(self.scheme, workload),
            reservations=self.reservations,
            check=self.check,
        )
        judged = ReplaySchedule.of(workload, estimated.schedule, estimated.scheduled_time)
        wait = estimated.start_time - workload.submit_time
        promised = promised_starts(self.policy, estimated.schedule)
        return judged, AdjustedStatistics(
            None,
            wait,
            estimated.guard_activations,
            promises=StartPromises.of(workload, judged, promised),
        )

    def _by_estimator(
        self, workload: Workload, estimator: str
    ) -> tuple[ReplaySchedule, AdjustedStatistics]:
        """Run with an estimator in the place of the hook, as sites do that predict in it."""
        if self.mechanism is not Mechanism.PBS_SOFT_WALLTIME:
            raise InputError(
                f"estimator {estimator} runs in the place of PBS's hook: "
                f"the mechanism must be {Mechanism.PBS_SOFT_WALLTIME.value}"
            )
        clock, begin = _clock_and_begin(workload)
        hook = EstimatorHook(parse_estimator(estimator), self.readjust_after_s)
        if self.history is not None:
            records = _history_records(self.history, workload, clock)
            learn_history(hook.estimator, [record.job for record in records])
        scheduler = pbs_by_estimator(
            workload,
            self.policy,
            begin,
            hook,
            learn=self.learn,
            reservations=self._reservations_at(clock),
        )
        for job, submit_time in enumerate((workload.submit_time + clock).tolist()):
            self._submit(scheduler, job, submit_time)
        scheduler.mock.finish()
        return self._judged(workload, clock, scheduler, None)

    def _through_the_hook(
        self, workload: Workload, repeat: int
    ) -> tuple[ReplaySchedule, AdjustedStatistics]:
        if self.state_dir is not None:
            folder = self.state_dir / f"repeat-{repeat}"
            try:
                folder.mkdir(parents=True)
            except FileExistsError as error:
                # What an earlier replay stored lies in the future of this one.
                raise InputError(
                    f"{folder}: is there already; name a new folder, as a replay learns from its "
                    "own jobs alone"
                ) from error
            except OSError as error:
                raise StateError(f"{folder}: can't make it: {error.strerror}") from error
            return self._run(workload, folder)
        with tempfile.TemporaryDirectory(prefix="foretime-replay-", dir=_memory()) as folder_name:
            return self._run(workload, Path(folder_name))

    @property
    def starts_now(self) -> bool:
        """Whether jobs are started at once, and none is planned short."""
        return self.queue_order is not None and self.queue_order.starts_now

    @property
    def protects_late(self) -> bool:
        """Whether jobs are protected that are late over their start without Foretime."""
        bounded = self.plain_beside.most_late_s or self.plain_beside.most_behind_s
        wanted = self.starts_now and self.plain_beside.enabled and bool(bounded)
        return wanted and isinstance(site_of(self.policy), SlurmSite)

    def _check_queue_order(self) -> None:
        if self.queue_order is None:
            return
        if self.mechanism is Mechanism.PBS_SOFT_WALLTIME and not self.starts_now:
            raise InputError(
                "queue_order: PBS has no site factors: replay it on Slurm, or take start-now"
            )
        if self.scheme not in (*TABLE_SCHEMES, "requested"):
            raise InputError(
                f"queue_order: scheme {self.scheme} knows the true runtimes, and has no sidecar; "
                f"take one of {', '.join(TABLE_SCHEMES)}, or requested"
            )
        if self.look_takes_s and self.mechanism is Mechanism.PBS_SOFT_WALLTIME:
            raise InputError("look_takes_s is for Slurm: leave it out under PBS")
        if self.look_takes_s and self.look_takes_s >= self.look_interval_s:
            raise InputError(
                f"look_takes_s is {self.look_takes_s} s: give less than between two looks "
                f"({self.look_interval_s} s)"
            )
        if not (self.queue_order.keeps_order or self.starts_now):
            raise InputError(
                f'queue_order: order is "{self.queue_order.order}", which leaves the queue as it is'
            )

    def _settings(self, folder: Path) -> Settings:
        adjusts = self.scheme in TABLE_SCHEMES and not self.starts_now
        kind: Literal["slurm", "pbs"] = "slurm"
        if self.mechanism is Mechanism.PBS_SOFT_WALLTIME:
            kind = "pbs"
        return Settings(
            # The mock's accounting knows of an end at once, so nothing need be read twice.
            scheduler=SchedulerSettings(kind=kind, overlap_s=0),
            store=StoreSettings(path=str(folder / "foretime.sqlite"), durability="normal"),
            accuracy=self.accuracy.model_copy(update={"scheme": self.scheme})
            if adjusts
            else self.accuracy.model_copy(update={"threshold": _MORE_JOBS_THAN_ANY}),
            learned=self.learned,
            # What would take enforce from the hook is for administrators to look into.
            breaker=BreakerSettings(
                most_outliving_percent=100, most_head_slip_s=0, most_wait_p99_s=0
            ),
            table=TableSettings(
                path=str(folder / "foretime.table"),
                publish_interval_s=self.publish_interval_s,
                # Nothing is polled while nothing happens, so the table must outlast a quiet week;
                # one of history alone is never written again, so it must outlast the log.
                valid_for_s=30 * 86_400 if self.learn else _OUTLASTS_ANY_LOG_S,
            ),
            forecast=self._forecast_settings(),
            queue_order=self.queue_order or QueueOrderSettings(order="none"),
            beside=self.plain_beside,
            hook=HookSettings(
                mode="enforce" if adjusts or self.starts_now else "observe",
                mechanism=self.mechanism.value,
                disable_file=str(folder / "foretime.off"),  # not this machine's
                # The mock has no deadlines, and its guard is the engine's own.
                planned_at="submission",
                starvation_guard_s=0,
            ),
        )

    def _slurm_setup(self, workload: Workload) -> SlurmSetup | None:
        if not self.look_takes_s:
            return self.setup
        setup = self.setup or SlurmSetup(workload.machine_processors)
        return replace(setup, changes_take_s=self.look_takes_s)

    def _forecast_settings(self) -> ForecastSettings:
        """Give what forecasts are to run the queue forward with: what the scheduler does."""
        order, backfill = self.policy.order, self.policy.backfill
        if self.queue_order is not None:
            order = Order.PRIORITY
        if self.forecast_interval_s is None and self.queue_order is None:
            return ForecastSettings()
        if site_of(self.policy) is not None:
            return ForecastSettings()  # and the site beside them
        if self.policy.switching is not None:
            raise InputError(
                f"{self.policy.switching}: no switching between orders where forecasts run the"
                " queue forward (--queue-order); take one order (--order fcfs)"
            )
        if not isinstance(order, Order) or isinstance(backfill, PythonBackfill):
            raise InputError(
                "forecasts run the queue forward, which no policy in Python can be asked in; take "
                "one of the engine's, or leave out the forecasts"
            )
        return ForecastSettings.of_policy(order.value, backfill.name)

    def _known_site(self, scheduler: MockedScheduler) -> KeptSite | None:
        """Give the site that the scheduler schedules as; ``None`` where there is none."""
        site, mock = site_of(self.policy), scheduler.mock
        if site is None:
            return None
        source: SiteSource = GivenSite(site)
        if isinstance(mock, MockPbs):  # whose fair share goes on
            source = LiveSite(GivenSite.name, mock.site)
        return KeptSite(
            source,
            ForecastSettings().site_interval_s,
            clock=lambda: mock.now,
            monotonic=lambda: mock.now,
        )

    def _by_site_factors(self) -> Policy:
        """Give the policy whose queue follows site factors, on PBS ranks."""
        site = site_of(self.policy)
        if site is None:
            if self.mechanism is Mechanism.PBS_SOFT_WALLTIME:
                raise InputError("queue_order: on PBS it goes by PBS's own rules: give --site")
            return self.policy.in_order(Order.PRIORITY)
        if isinstance(site, PbsSite):
            return replace(self.policy, backfill=Pbs(_ranked(site)))
        if not site.priority.multifactor:
            raise InputError("queue_order: priority/basic has no site factors: give multifactor")
        return self.policy

    def _run(self, workload: Workload, folder: Path) -> tuple[ReplaySchedule, AdjustedStatistics]:
        self._check_queue_order()
        clock, begin = _clock_and_begin(workload)
        settings = self._settings(folder)
        table = Path(settings.table.path)
        at_clock = self._reservations_at(clock)
        if self.mechanism is Mechanism.PBS_SOFT_WALLTIME:
            scheduler = mocked_pbs(
                workload,
                self._by_site_factors() if self.queue_order is not None else self.policy,
                begin,
                folder,
                table=table,
                readjust_after_s=self.readjust_after_s,
                keep_decisions=self.state_dir is not None,
                reservations=at_clock,
            )
        else:
            scheduler = mocked_slurm(
                workload,
                self._by_site_factors() if self.queue_order is not None else self.policy,
                self.mechanism,
                begin,
                table,
                lua_version=self.lua_version,
                setup=self._slurm_setup(workload),
                reservations=at_clock,
            )
        # What is not kept need not be written to a file.
        path = ":memory:" if self.state_dir is None else settings.store.path
        store = Store(path, settings.store.durability)
        try:
            forecasts = self.forecast_interval_s is not None
            ranks_pbs = self.starts_now and isinstance(scheduler.mock, MockPbs)
            wants_site = forecasts or ranks_pbs or self.protects_late
            site = self._known_site(scheduler) if wants_site else None
            if site is not None:
                site.refresh()
            sidecar = Sidecar(
                settings,
                scheduler.client,
                store,
                forecasts=forecasts,
                estimating_s=math.inf,
                bounds=self.queue_order is not None and not self.starts_now,
                site=site,
                beside=self.protects_late,
                only_late=True,
            )
            if self.history is not None:
                records = _history_records(self.history, workload, clock)
                store.add_finished(records, Cursor(begin - 1), settings.scheduler.kind)
            sidecar.start(begin)
            sidecar.poll(begin)
            looks = None
            if self.queue_order is not None:
                # Who starts jobs at once goes by what has just finished.
                polls_s = _POLLED_S if self.starts_now and self.learn else None
                looks = OrderingLooks(scheduler, sidecar, self.look_interval_s, polls_s)
            self._drive(workload, clock, scheduler, sidecar, looks)
            ordering = None if looks is None else ordering_of(looks.looks, sidecar)
            latest = store.latest_generation()
            done = None
            if forecasts:
                end = scheduler.mock.now
                done = reliability(store, end, (end - begin) // 86_400 + 1, smallest_group=1)
        finally:
            store.close()
        hook = HookStatistics(
            submissions=len(workload),
            adjusted=scheduler.mock.adjusted_jobs,
            errors=scheduler.mock.hook_errors,
            table_generations=0 if latest is None else latest.generation,
        )
        return self._judged(workload, clock, scheduler, hook, done, ordering)

    def _reservations_at(self, clock: int) -> tuple[AdvanceReservation, ...]:
        """Give the advance reservations in epoch seconds."""
        return tuple(replace(claim, start=claim.start + clock) for claim in self.reservations)

    def _judged(
        self,
        workload: Workload,
        clock: int,
        scheduler: MockedScheduler,
        hook: HookStatistics | None,
        forecasts: Reliability | None = None,
        ordering: OrderingStatistics | None = None,
    ) -> tuple[ReplaySchedule, AdjustedStatistics]:
        """Judge what was scheduled, on the log's clock."""
        mock = scheduler.mock
        schedule = mock.schedule()
        promised = promised_starts(self.policy, schedule)
        if promised is not None:
            promised = promised - clock
        schedule = replace(
            schedule, start_time=schedule.start_time - clock, end_time=schedule.end_time - clock
        )
        if self.check:
            check_schedule(workload, schedule, workload.requested_time, self.reservations)
        judged = ReplaySchedule.of(workload, schedule, mock.scheduled_times(), mock.running_times())
        wait = schedule.start_time - workload.submit_time
        return judged, AdjustedStatistics(
            hook,
            wait,
            schedule.guard_activations,
            forecasts,
            ordering,
            StartPromises.of(workload, judged, promised),
        )

    def _drive(
        self,
        workload: Workload,
        clock: int,
        scheduler: MockedScheduler,
        sidecar: Sidecar,
        looks: OrderingLooks | None,
    ) -> None:
        """Submit every job at its time; poll whenever a table is due and something has finished."""
        mock = scheduler.mock
        advance = mock.advance if looks is None else looks.advance
        times = (workload.submit_time + clock).tolist()
        next_poll = mock.now + self.publish_interval_s
        next_look = mock.now
        for index, now in enumerate(times):
            if self.learn and now >= next_poll and not self.starts_now:  # whose looks poll
                # The last poll before this submission; those before it would have told the hook
                # nothing that this one does not.
                at = now - (now - next_poll) % self.publish_interval_s
                next_look = self._forecast(advance, scheduler, sidecar, next_look, at)
                advance(at)
                if sidecar.estimating is not None:
                    sidecar.look(at)  # who has started, and what pending jobs are refined to
                sidecar.poll(at)
                next_poll = at + self.publish_interval_s
            next_look = self._forecast(advance, scheduler, sidecar, next_look, now)
            if now > mock.now:
                advance(now)
            self._submit(scheduler, index, now)
            if looks is not None:
                looks.happened()
        while (
            sidecar.forecasting is not None
            and sidecar.waits_for_starts()
            and mock.next_event_time is not None  # whom the site never lets run, none waits for
        ):
            next_look = self._forecast(advance, scheduler, sidecar, next_look, next_look + 1)
        if looks is not None:
            looks.finish()
        mock.finish()
        if self.learn:
            sidecar.poll(max(mock.now, next_poll))

    def _forecast(
        self,
        advance: Callable[[int], None],
        scheduler: MockedScheduler,
        sidecar: Sidecar,
        first: int,
        until: int,
    ) -> int:
        """Look at the queue and forecast at each time that is due before ``until``; give the next.

        A poll comes with it, so that the forecasts know who has ended; tables are not published any
        more often for that.
        """
        forecasting, at = sidecar.forecasting, first
        if forecasting is None or self.forecast_interval_s is None:
            return until
        while at < until:
            if at > scheduler.mock.now:
                advance(at)
            sidecar.see(at)
            if self.learn:
                sidecar.poll(at)
            if sidecar.site is not None:
                sidecar.site.refresh()
            forecasting.refresh(maps=False)  # nobody looks at them
            at += self.forecast_interval_s
        return at

    def _submit(self, scheduler: MockedScheduler, job: int, now: int) -> None:
        if now > scheduler.mock.now:
            scheduler.mock.advance(now)
        scheduler.submit(job)
        if self.progress is not None and job % scheduler.progress_step == 0:
            self.progress(job)


def _ranked(site: PbsSite) -> PbsSite:
    """Give a site once ``foretime install pbs`` has prepared it for jobs that are raised."""
    formula = site.server.job_sort_formula
    prepared = replace(site, server=replace(site.server, job_sort_formula=formula or RANK))
    if why_not := why_no_ranks(prepared):
        raise InputError(f"queue_order: {why_not}")
    return prepared


def _clock_and_begin(workload: Workload) -> tuple[int, int]:
    """Give the epoch seconds of a log's time zero, and of its first submission."""
    clock = workload.epoch_of_zero
    return clock, clock + int(workload.submit_time[0]) if len(workload) else clock


def _memory() -> str | None:
    """Give a folder in memory where the machine has one: a replay's own files need no disk."""
    folder = "/dev/shm"  # noqa: S108  # TemporaryDirectory makes a private folder inside
    return folder if os.access(folder, os.W_OK) else None


def oracle_share(scheme: str) -> float:
    """Share of the actual runtime in t_sched: 0 requested, 1 actual, a of ``blend:a`` (Tang eq. 3).

    Raises
    ------
    InputError
        If it is no such scheme.
    """
    if scheme == "requested":
        return 0.0
    if scheme == "actual":
        return 1.0
    name, _, text = scheme.partition(":")
    try:
        share = float(text) if name == "blend" else -1.0
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InputError(
            f"unknown scheme {scheme!r}. Valid: {', '.join(SCHEMES)}, a from 0 to 1 (blend:0.5)"
        )
    return share


def _history_records(history: Workload, workload: Workload, clock: int) -> list[FinishedRecord]:
    """Give a history's jobs as the accounting would have recorded them, by end.

    Parameters
    ----------
    clock
        Epoch seconds of the workload's time zero.

    Raises
    ------
    InputError
        If no job had ended when the workload begins.
    """
    records = []
    for job in finished_before(history, workload):
        submitted = job.request.submit_time + clock
        finished = replace(
            job,
            request=replace(job.request, submit_time=submitted),
            start_time=None if job.start_time is None else job.start_time + clock,
            end_time=job.end_time + clock,
        )
        records.append(FinishedRecord(finished, submitted, job.ending.value))
    return records
