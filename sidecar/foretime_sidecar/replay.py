"""The main job: a log replayed on the mock Slurm, through the real hook and the real sidecar.

Flow 4 of the architecture: the mock calls the shipped ``job_submit.lua`` for each submission; the
sidecar polls the mock as it polls a Slurm, stores and learns what has finished, and publishes the
table that the hook reads; the engine schedules. The clock and the scheduler alone are simulated.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from foretime_estimators.errors import InputError, StateError
from foretime_estimators.jobs import Ending
from foretime_sim.advance_reservations import AdvanceReservation
from foretime_sim.comparison import PairedRun
from foretime_sim.engine import simulate
from foretime_sim.estimated_run import estimator_of, simulate_with_estimator
from foretime_sim.finished_history import finished_before
from foretime_sim.mock_slurm import Mechanism, MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Correction, Policy, Roles
from foretime_sim.replay_result import HookStatistics
from foretime_sim.resource_requests import job_resources
from foretime_sim.schedule import Schedule
from foretime_sim.schedule import check as check_schedule
from foretime_sim.slurm_hook import LuaHook
from foretime_sim.workload import Int64Array, Workload

from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.settings import (
    AccuracySection,
    HookSettings,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store

TABLE_SCHEMES = ("user", "project", "combined")
SCHEMES = ("requested", *TABLE_SCHEMES, "actual", "blend:a")

_OUTLASTS_ANY_LOG_S = 100 * 365 * 86_400


def mechanism_policy(mechanism: Mechanism, policy: Policy) -> Policy:
    """Give a policy the roles and the correction rule that a mechanism has.

    A limit that is rewritten is raised again when the job starts, so running jobs are planned with
    t_req: Tang's selective scheme S110. The soft limits are used in all roles.
    """
    match mechanism:
        case Mechanism.SLURM_SOFT_LIMIT:
            return replace(policy, roles=Roles.parse("111"), correction=Correction.SLURM)
        case Mechanism.REWRITE_LIMIT:
            return replace(policy, roles=Roles.parse("110"), correction=Correction.REQUESTED)
        case Mechanism.PBS_SOFT_WALLTIME:
            return replace(policy, roles=Roles.parse("111"), correction=Correction.PBS)


@dataclass(frozen=True, slots=True)
class ReplaySchedule:
    """A schedule as it is scored: the engine's, and which jobs outlived the t_sched they had.

    Attributes
    ----------
    start_time, end_time
        Shape (jobs,), seconds of the log's clock.
    started_by
        Shape (jobs,), codes of `StartedBy`.
    outlived
        Shape (jobs,): ran longer than t_sched.
    killed
        Shape (jobs,): ended before the actual runtime *and* before t_req, which nobody may be.
    scheduled_time
        Shape (jobs,), seconds.
    """

    start_time: Int64Array
    end_time: Int64Array
    started_by: np.ndarray[tuple[int], np.dtype[np.int8]]
    outlived: np.ndarray[tuple[int], np.dtype[np.bool_]]
    killed: np.ndarray[tuple[int], np.dtype[np.bool_]]
    scheduled_time: Int64Array

    @classmethod
    def of(
        cls, workload: Workload, schedule: Schedule, scheduled_time: Int64Array
    ) -> ReplaySchedule:
        """Judge a schedule of a workload by what its users asked for."""
        ran = schedule.end_time - schedule.start_time
        promised = np.minimum(workload.actual_runtime, workload.requested_time)
        return cls(
            start_time=schedule.start_time,
            end_time=schedule.end_time,
            started_by=schedule.started_by,
            outlived=ran > scheduled_time,
            killed=ran < promised,
            scheduled_time=scheduled_time,
        )


@dataclass(frozen=True, slots=True)
class AdjustedStatistics:
    """What went on in one adjusted run besides its scores.

    Attributes
    ----------
    hook
        What the hook did; ``None`` where it was not in the loop.
    wait
        Shape (jobs,), seconds, in the order of the repeat's workload.
    guard_activations
        Jobs for which the starvation guard became active.
    """

    hook: HookStatistics | None
    wait: Int64Array
    guard_activations: int


@dataclass(frozen=True)
class Replay:
    """One log's replay, without and with Foretime; picklable, so that repeats run in processes.

    Attributes
    ----------
    policy
        Queue order, backfilling, correction, roles, guard and event order of both runs.
    scheme
        One of `SCHEMES`: ``user``, ``project`` and ``combined`` go through hook, table and sidecar;
        ``actual`` and ``blend:a`` are oracles that the engine is given directly.
    mechanism
        How t_sched reaches the scheduler.
    accuracy
        The accuracy rule, as in the daemon's settings.
    learn
        Whether jobs that finish are learned (otherwise the history alone decides).
    history
        Jobs learned before the log begins: those that had ended by then, at their logged ends. On
        the workload's clock if it does not say when it was. ``None`` for none.
    publish_interval_s
        How often a table may be written, seconds of the virtual clock.
    lua_version
        Which Lua runs the hook.
    state_dir
        Where store and table are kept, in a new folder ``repeat-N``; ``None`` for a folder that
        is removed afterwards.
    setup
        Faults to inject: the mock's slurm.conf; processors are the workload's.
    reservations
        Advance reservations of both runs, on the workload's clock.
    check
        Whether the conservation laws are checked on both schedules.
    progress
        Called with the number of jobs submitted so far, about a hundred times.
    """

    policy: Policy
    scheme: str = "combined"
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT
    accuracy: AccuracySection = field(default_factory=AccuracySection)
    learn: bool = True
    history: Workload | None = None
    publish_interval_s: int = 3600
    lua_version: str = "5.1"
    state_dir: Path | None = None
    setup: SlurmSetup | None = None
    reservations: tuple[AdvanceReservation, ...] = ()
    check: bool = False
    progress: Callable[[int], None] | None = None

    def __call__(self, workload: Workload, repeat: int) -> PairedRun:
        """Run a workload without and with Foretime."""
        plain = simulate(workload, self.policy, reservations=self.reservations, check=self.check)
        baseline = ReplaySchedule.of(workload, plain, workload.requested_time)
        if self.scheme in TABLE_SCHEMES:
            adjusted, statistics = self._through_the_hook(workload, repeat)
        else:
            adjusted, statistics = self._by_oracle(workload)
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
        return judged, AdjustedStatistics(None, wait, estimated.guard_activations)

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

    def _settings(self, folder: Path) -> Settings:
        if self.mechanism is Mechanism.REWRITE_LIMIT:
            hook = HookSettings(mode="enforce", mechanism="rewrite-limit")
        else:
            hook = HookSettings(mode="enforce")
        return Settings(
            # The mock's accounting knows of an end at once, so nothing need be read twice.
            scheduler=SchedulerSettings(overlap_s=0),
            store=StoreSettings(path=str(folder / "foretime.sqlite"), durability="normal"),
            accuracy=self.accuracy.model_copy(update={"scheme": self.scheme}),
            table=TableSettings(
                path=str(folder / "foretime.table"),
                publish_interval_s=self.publish_interval_s,
                # Nothing is polled while nothing happens, so the table must outlast a quiet week;
                # one of history alone is never written again, so it must outlast the log.
                valid_for_s=30 * 86_400 if self.learn else _OUTLASTS_ANY_LOG_S,
            ),
            hook=hook,
        )

    def _run(self, workload: Workload, folder: Path) -> tuple[ReplaySchedule, AdjustedStatistics]:
        clock = workload.epoch_of_zero
        begin = clock + int(workload.submit_time[0]) if len(workload) else clock
        settings = self._settings(folder)
        hook = LuaHook(lua_version=self.lua_version, table=Path(settings.table.path))
        setup = replace(
            self.setup or SlurmSetup(workload.machine_processors),
            processors=workload.machine_processors,
            mechanism=self.mechanism,
            machine=workload.machine,
            reservations=tuple(replace(r, start=r.start + clock) for r in self.reservations),
        )
        slurm = MockSlurm(setup, self.policy, hook, begin)
        store = Store(settings.store.path, settings.store.durability)
        try:
            client = SlurmCommands(slurm.run, settings.scheduler.overlap_s)
            sidecar = Sidecar(settings, client, store)
            if self.history is not None:
                records = _history_records(self.history, workload, clock)
                store.add_finished(records, Cursor(begin - 1))
            sidecar.start(begin)
            sidecar.poll(begin)
            self._drive(workload, clock, slurm, sidecar)
            latest = store.latest_generation()
        finally:
            store.close()
        schedule = slurm.schedule()
        schedule = replace(
            schedule, start_time=schedule.start_time - clock, end_time=schedule.end_time - clock
        )
        if self.check:
            check_schedule(workload, schedule, workload.requested_time, self.reservations)
        scheduled = slurm.scheduled_times()
        judged = ReplaySchedule.of(workload, schedule, scheduled)
        statistics = HookStatistics(
            submissions=len(workload),
            adjusted=slurm.adjusted_jobs,
            errors=slurm.hook_errors,
            table_generations=0 if latest is None else latest.generation,
        )
        wait = schedule.start_time - workload.submit_time
        return judged, AdjustedStatistics(statistics, wait, schedule.guard_activations)

    def _drive(self, workload: Workload, clock: int, slurm: MockSlurm, sidecar: Sidecar) -> None:
        """Submit every job at its time; poll whenever a table is due and something has finished."""
        submissions = _submissions(workload)
        times = (workload.submit_time + clock).tolist()
        next_poll = slurm.now + self.publish_interval_s
        step = max(len(times) // 100, 1)
        for index, (now, submission) in enumerate(zip(times, submissions, strict=True)):
            if self.learn and now >= next_poll:
                # The last poll before this submission; those before it would have told the hook
                # nothing that this one does not.
                at = now - (now - next_poll) % self.publish_interval_s
                slurm.advance(at)
                sidecar.poll(at)
                next_poll = at + self.publish_interval_s
            if now > slurm.now:
                slurm.advance(now)
            slurm.submit(submission)
            if self.progress is not None and index % step == 0:
                self.progress(index)
        slurm.finish()
        if self.learn:
            sidecar.poll(max(slurm.now, next_poll))


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


def _submissions(workload: Workload) -> list[Submission]:
    users = _names(workload, "users")
    projects = _names(workload, "projects")
    queues = _names(workload, "queues")
    arrays = None if workload.array_ids is None else workload.array_ids.codes.tolist()
    runtimes = workload.actual_runtime.tolist()
    requested = workload.requested_time.tolist()
    processors = workload.processors.tolist()
    return [
        Submission(
            user=users[job],
            account=projects[job],
            slurm_partition=queues[job],
            processors=processors[job],
            requested_time=requested[job],
            actual_runtime=runtimes[job],
            ending=workload.ending(job) or Ending.COMPLETED,
            array_id=None if arrays is None or arrays[job] < 0 else arrays[job] + 1,
            resources=None if workload.machine is None else job_resources(workload, job),
        )
        for job in range(len(workload))
    ]


def _names(workload: Workload, column: str) -> list[str | None]:
    labels = getattr(workload, column)
    if labels is None:
        return [None] * len(workload)
    names = (*labels.names, None)
    return [names[code] for code in labels.codes.tolist()]


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
