"""A replay against what it must equal: the baseline, plain Python, itself, and its own promises."""

from __future__ import annotations

import io
import multiprocessing
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.accuracy import AccuracyModel, AccuracySettings, Scheme
from foretime_estimators.errors import InputError, StateError
from foretime_estimators.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import (
    Cursor,
    FinishedRecord,
    JobChange,
    Queue,
    Reservation,
    SchedulerConfiguration,
)
from foretime_sidecar.replay import (
    SCHEMES,
    AdjustedStatistics,
    Replay,
    ReplaySchedule,
    mechanism_policy,
    oracle_share,
)
from foretime_sidecar.report import render
from foretime_sidecar.settings import (
    AccuracySection,
    HookSettings,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.sidecar import PollResult, Sidecar
from foretime_sidecar.store import Store
from foretime_sidecar.table import Mode, read_table
from foretime_sim.comparison import compare
from foretime_sim.engine import simulate
from foretime_sim.filters import workload_of_log
from foretime_sim.log_files import read_log
from foretime_sim.mock_slurm import Mechanism, SlurmSetup
from foretime_sim.policy import Backfill, Order, Policy
from foretime_sim.replay_result import ReplayResult
from foretime_sim.schedule import check as check_schedule
from foretime_sim.slurm_hook import LuaHook
from foretime_sim.workload import ENDINGS, Labels, Workload
from rich.console import Console

DAY_S = 86_400
CLOCK = 1_200_000_000
INTERVAL_S = 3600
PROCESSORS = 32

FEW_JOBS = replace(AccuracySettings.production(), threshold=5)
PAPER = replace(AccuracySettings.tang2010(), threshold=5)
BEYOND_REACH = replace(AccuracySettings.production(), threshold=1_000_000)


def made_workload(jobs: int = 1200, days: float = 40, seed: int = 7) -> Workload:
    """Give jobs of users who ask for far too much, some without names, all submitted apart."""
    rng = np.random.default_rng(seed)
    submit_time = np.sort(rng.choice(int(days * DAY_S), size=jobs, replace=False))
    users = rng.integers(-1, 6, size=jobs).astype(np.int32)
    projects = np.where(rng.random(jobs) < 0.1, -1, users % 3).astype(np.int32)
    habit = np.array([0.05, 0.1, 0.2, 0.4, 0.7, 0.95, 0.3])[users]  # the last for no name
    requested = rng.choice(
        [1000, 3600, 7200, 40_000, 90_061], size=jobs, p=[0.1, 0.1, 0.4, 0.3, 0.1]
    )
    share = np.minimum(habit * rng.lognormal(0, 0.3, size=jobs), 1)
    endings = rng.choice(
        len(ENDINGS) - 1, size=jobs, p=[0.8, 0.1, 0.02, 0.02, 0.02, 0.02, 0.01, 0.01]
    )
    return Workload(
        name="made",
        machine_processors=PROCESSORS,
        unix_start_time=CLOCK,
        job_id=np.arange(1, jobs + 1),
        submit_time=submit_time.astype(np.int64),
        processors=rng.choice([1, 2, 4, 8, 32], size=jobs, p=[0.4, 0.3, 0.2, 0.08, 0.02]),
        actual_runtime=np.maximum((requested * share).astype(np.int64), 1),
        requested_time=requested.astype(np.int64),
        endings=np.ma.MaskedArray(endings.astype(np.int8), mask=rng.random(jobs) < 0.1),
        users=Labels(users, tuple(f"user{n}" for n in range(6))),
        projects=Labels(projects, ("physics", "name with space", "größe")),
        array_ids=Labels(
            np.where(rng.random(jobs) < 0.3, rng.integers(0, 40, size=jobs), -1).astype(np.int32),
            tuple(str(n) for n in range(40)),
        ),
    )


WORKLOAD = made_workload()


def replay_of(
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT,
    rule: AccuracySettings = FEW_JOBS,
    *,
    policy: Policy | None = None,
    **more: Any,
) -> Replay:
    return Replay(
        policy=mechanism_policy(mechanism, policy or Policy(guard_s=6 * 3600)),
        mechanism=mechanism,
        accuracy=AccuracySection.of_model(rule),
        publish_interval_s=INTERVAL_S,
        **more,
    )


def run(task: Replay, workload: Workload = WORKLOAD) -> tuple[ReplaySchedule, ReplaySchedule]:
    """Give the baseline and the adjusted schedule, lawful and without a job killed early."""
    pair = task(workload, 0)
    for judged in (pair.baseline, pair.adjusted):
        assert isinstance(judged, ReplaySchedule)
        ran = judged.end_time - judged.start_time
        promised = np.minimum(workload.actual_runtime, workload.requested_time)
        np.testing.assert_array_equal(ran, promised)
        assert not judged.killed.any()
        assert (judged.scheduled_time >= 1).all()
        assert (judged.scheduled_time <= workload.requested_time).all()
        check_processors(workload, judged)
    assert isinstance(pair.baseline, ReplaySchedule)
    assert isinstance(pair.adjusted, ReplaySchedule)
    return pair.baseline, pair.adjusted


def check_processors(workload: Workload, judged: ReplaySchedule) -> None:
    """Starts are after submissions, and never are more processors in use than there are."""
    assert (judged.start_time >= workload.submit_time).all()
    moments = np.concatenate([judged.end_time, judged.start_time])
    change = np.concatenate([-workload.processors, workload.processors])
    in_use = np.cumsum(change[np.lexsort((change, moments))])
    assert in_use.max() <= workload.machine_processors
    assert in_use[-1] == 0


def same_schedule(one: ReplaySchedule, other: ReplaySchedule) -> None:
    np.testing.assert_array_equal(one.start_time, other.start_time)
    np.testing.assert_array_equal(one.end_time, other.end_time)
    np.testing.assert_array_equal(one.started_by, other.started_by)


# (a) Nothing to go by, nothing changed -----------------------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("order", [Order.FCFS, Order.WFP])
def test_without_enough_history_the_schedule_is_the_baseline(
    mechanism: Mechanism, order: Order
) -> None:
    task = replay_of(mechanism, BEYOND_REACH, policy=Policy(order=order, guard_s=3600))
    baseline, adjusted = run(task)
    same_schedule(baseline, adjusted)
    np.testing.assert_array_equal(adjusted.scheduled_time, WORKLOAD.requested_time)


# (b) An independent second way -------------------------------------------------------------------


def whole_minutes(seconds: int) -> int:
    return -(-seconds // 60) * 60


def expected_scheduled_times(
    workload: Workload,
    adjusted: ReplaySchedule,
    rule: AccuracySettings,
    scheme: Scheme = Scheme.COMBINED,
    last_publication: int | None = None,
) -> list[int]:
    """t_sched by the accuracy model alone: no Lua, no table, no sidecar, no accounting."""

    def request(job: int) -> JobRequest:
        written = workload.job_request(job)
        return replace(written, requested_time=whole_minutes(written.requested_time))

    begin = int(workload.submit_time[0])
    by_end = sorted(range(len(workload)), key=lambda job: int(adjusted.end_time[job]))
    model = AccuracyModel(rule)
    learned, expected = 0, []
    for job in range(len(workload)):
        submit = int(workload.submit_time[job])
        published_at = submit - (submit - begin) % INTERVAL_S
        if last_publication is not None:
            published_at = min(published_at, last_publication)
        while learned < len(by_end) and adjusted.end_time[by_end[learned]] <= published_at:
            done = by_end[learned]
            start, end = int(adjusted.start_time[done]), int(adjusted.end_time[done])
            ending = workload.ending(done) or Ending.COMPLETED
            if end - start >= workload.requested_time[done]:
                ending = Ending.TIMED_OUT
            finished = FinishedJob(request(done), start + CLOCK, end + CLOCK, end - start, ending)
            model.learn_one(finished)
            learned += 1
        model.advance(published_at + CLOCK)
        planned = model.scheduled_time(request(job), scheme)
        expected.append(min(planned, int(workload.requested_time[job])))
    return expected


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize(
    "rule",
    [FEW_JOBS, PAPER, replace(FEW_JOBS, window_s=5 * DAY_S), replace(PAPER, half_life_s=DAY_S)],
    ids=["production", "tang2010", "window", "half-life"],
)
def test_every_scheduled_time_is_the_models(rule: AccuracySettings, scheme: Scheme) -> None:
    _, adjusted = run(replay_of(rule=rule, scheme=scheme.value))
    expected = expected_scheduled_times(WORKLOAD, adjusted, rule, scheme)
    assert adjusted.scheduled_time.tolist() == expected
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    assert shortened.mean() > 0.04, "or the test says nothing"


@pytest.mark.parametrize("mechanism", Mechanism)
def test_the_engine_given_the_same_times_gives_the_same_schedule(mechanism: Mechanism) -> None:
    task = replay_of(mechanism)
    _, adjusted = run(task)
    plain = simulate(WORKLOAD, task.policy, adjusted.scheduled_time, check=True)
    same_schedule(adjusted, ReplaySchedule.of(WORKLOAD, plain, adjusted.scheduled_time))


@pytest.mark.parametrize("lua_version", ["5.1", "5.2", "5.3", "5.4"])
def test_every_lua_gives_the_same(lua_version: str) -> None:
    workload = WORKLOAD.head(500)
    _, adjusted = run(replay_of(lua_version=lua_version), workload)
    expected = expected_scheduled_times(workload, adjusted, FEW_JOBS)
    assert adjusted.scheduled_time.tolist() == expected


# (c) Nothing is learned from the future ----------------------------------------------------------


@pytest.mark.parametrize("jobs", [1, 2, 50, 333, 900])
def test_the_jobs_of_a_log_do_not_know_how_it_goes_on(jobs: int) -> None:
    _, whole = run(replay_of())
    _, first = run(replay_of(), WORKLOAD.head(jobs))
    np.testing.assert_array_equal(first.scheduled_time, whole.scheduled_time[:jobs])


def test_history_that_ends_after_the_log_begins_is_not_learned() -> None:
    past, rest = WORKLOAD.split(20 * DAY_S)
    # Had the last 30 days' worth of waits been in the queue, nothing would have ended in time.
    waits = np.ma.MaskedArray(np.full(len(past), 30 * DAY_S))
    with pytest.raises(InputError, match="none of its jobs had ended"):
        run(replay_of(history=replace(past, logged_wait=waits), learn=False), rest)
    # Half of it in time: the same as that half alone.
    begin = int(rest.submit_time[0])
    in_time = past.submit_time + past.actual_runtime <= begin
    in_time[:200] = False
    waits = np.ma.MaskedArray(np.where(in_time, 0, 30 * DAY_S))
    _, late = run(replay_of(history=replace(past, logged_wait=waits), learn=False), rest)
    _, half = run(replay_of(history=past.take(in_time), learn=False), rest)
    np.testing.assert_array_equal(late.scheduled_time, half.scheduled_time)


def test_a_used_state_dir_is_refused(tmp_path: Path) -> None:
    run(replay_of(state_dir=tmp_path), WORKLOAD.head(20))
    with pytest.raises(InputError, match="is there already"):
        run(replay_of(state_dir=tmp_path), WORKLOAD.head(20))
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="can't make it: Not a directory"):
        run(replay_of(state_dir=tmp_path / "file"), WORKLOAD.head(20))


# (d) Nobody is killed early, and the check can fail ----------------------------------------------


@pytest.mark.parametrize("mechanism", Mechanism)
@pytest.mark.parametrize("guard_s", [None, 0, 3600])
def test_nobody_is_killed_before_the_time_asked_for(
    mechanism: Mechanism, guard_s: int | None
) -> None:
    _, adjusted = run(replay_of(mechanism, policy=Policy(guard_s=guard_s)))
    assert (adjusted.scheduled_time < WORKLOAD.requested_time).any()
    assert adjusted.outlived.any(), "no job outlived t_sched, so none could have been killed"


def test_a_prolog_that_fails_kills_early_and_the_report_says_so() -> None:
    broken = SlurmSetup(PROCESSORS, prolog_works=False)
    task = replay_of(Mechanism.REWRITE_LIMIT, setup=broken)
    comparison = compare(WORKLOAD, task)
    adjusted = task(WORKLOAD, 0).adjusted
    assert isinstance(adjusted, ReplaySchedule)
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    np.testing.assert_array_equal(
        adjusted.killed,
        shortened
        & (np.minimum(WORKLOAD.actual_runtime, WORKLOAD.requested_time) > adjusted.scheduled_time),
    )
    assert adjusted.killed.any()
    ran = adjusted.end_time - adjusted.start_time
    np.testing.assert_array_equal(ran[adjusted.killed], adjusted.scheduled_time[adjusted.killed])
    text = printed(comparison_result(comparison))
    assert "Nobody was killed" not in text
    assert f"{int(adjusted.killed.sum())} jobs" in text


def comparison_result(comparison: Any) -> ReplayResult:
    return ReplayResult("made", PROCESSORS, len(WORKLOAD), (), {}, comparison, None, 0, 1.0)


def printed(result: ReplayResult) -> str:
    file = io.StringIO()
    Console(file=file, width=100).print(render(result))
    return file.getvalue()


# (e) Without the soft limit the hook only observes ------------------------------------------------


def test_without_the_soft_limit_nothing_is_changed(tmp_path: Path) -> None:
    setup = SlurmSetup(PROCESSORS, soft_limit_parameter=False)
    baseline, adjusted = run(replay_of(setup=setup, state_dir=tmp_path))
    same_schedule(baseline, adjusted)
    np.testing.assert_array_equal(adjusted.scheduled_time, WORKLOAD.requested_time)
    table = read_table(tmp_path / "repeat-0" / "foretime.table")
    assert table.settings.mode is Mode.OBSERVE
    assert table.rows, "it learned all the same"


# (f) What breaks in mid-replay --------------------------------------------------------------------

DEATH = CLOCK + 20 * DAY_S


def sidecar_dies(
    monkeypatch: pytest.MonkeyPatch, then: Callable[[Path], None] | None = None
) -> None:
    """From `DEATH` on the sidecar polls no more; ``then`` is done to its table at that moment."""
    poll = Sidecar.poll
    harmed: list[int] = []

    def dying(sidecar: Sidecar, now: int) -> PollResult:
        if now < DEATH:
            return poll(sidecar, now)
        if then is not None and not harmed:
            harmed.append(now)
            then(Path(sidecar.settings.table.path))
        return PollResult(0, None)

    monkeypatch.setattr(Sidecar, "poll", dying)


def test_a_dead_sidecars_table_goes_stale(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    workload = made_workload(days=80)
    sidecar_dies(monkeypatch)
    _, adjusted = run(replay_of(state_dir=tmp_path), workload)
    shortened = adjusted.scheduled_time < workload.requested_time
    valid_until = read_table(tmp_path / "repeat-0" / "foretime.table").valid_until - CLOCK
    assert shortened[workload.submit_time <= valid_until].any()
    assert not shortened[workload.submit_time > valid_until].any()
    assert (workload.submit_time > valid_until).sum() > 100


def garble_rows(table: Path) -> None:
    content = bytearray(table.read_bytes())
    for position in range(len(content) // 3, len(content) // 2):
        content[position] = ord("7")
    table.write_bytes(content)


def garble_all(table: Path) -> None:
    garble_rows(table)
    content = table.read_text()
    generation = read_generation(content)
    table.write_text(content.replace(f"generation={generation} ", f"generation={generation + 1} "))


def read_generation(content: str) -> int:
    return int(content.split("generation=", 1)[1].split(maxsplit=1)[0])


def truncate(table: Path) -> None:
    content = table.read_bytes()
    table.write_bytes(content[: len(content) * 2 // 3])


def make_directory(table: Path) -> None:
    table.unlink()
    table.mkdir()


@pytest.mark.parametrize(
    "harm",
    [
        Path.unlink,
        truncate,
        garble_all,
        make_directory,
        lambda table: table.write_bytes(b""),
        lambda table: table.write_bytes(b"\0" * 5000),
        lambda table: table.write_text(
            table.read_text().replace("foretime-table 1", "foretime-table 9")
        ),
    ],
    ids=["deleted", "truncated", "garbled", "directory", "empty", "zeros", "version"],
)
@pytest.mark.parametrize("mechanism", [Mechanism.SLURM_SOFT_LIMIT, Mechanism.REWRITE_LIMIT])
def test_a_broken_table_changes_no_job(
    monkeypatch: pytest.MonkeyPatch, mechanism: Mechanism, harm: Callable[[Path], None]
) -> None:
    sidecar_dies(monkeypatch, harm)
    _, adjusted = run(replay_of(mechanism))
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    submitted = WORKLOAD.submit_time + CLOCK
    assert shortened[submitted < DEATH].any()
    assert not shortened[submitted >= DEATH + INTERVAL_S].any()


def test_rows_garbled_under_the_hook_change_no_job_wrongly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first line is as it was, so the hook goes on with the table that it has read: whole.
    sidecar_dies(monkeypatch, garble_rows)
    _, adjusted = run(replay_of())
    begin = int(WORKLOAD.submit_time[0])
    last = DEATH - CLOCK - 1 - (DEATH - CLOCK - 1 - begin) % INTERVAL_S
    frozen = expected_scheduled_times(WORKLOAD, adjusted, FEW_JOBS, last_publication=last)
    untouched = adjusted.scheduled_time == WORKLOAD.requested_time
    assert (untouched | (adjusted.scheduled_time == np.array(frozen))).all()


def test_the_disable_file_stops_the_hook_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    disable_file = tmp_path / "disabled"

    def with_disable_file(**options: Any) -> object:
        return LuaHook(**options, disable_file=disable_file)

    monkeypatch.setattr("foretime_sidecar.replay.LuaHook", with_disable_file)
    sidecar_dies(monkeypatch, lambda _: disable_file.touch())
    _, adjusted = run(replay_of())
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    submitted = WORKLOAD.submit_time + CLOCK
    assert shortened[submitted < DEATH].any()
    assert not shortened[submitted >= DEATH + INTERVAL_S].any()


# (g) SIGKILL --------------------------------------------------------------------------------------


class Recorded:
    """A scheduler whose accounting holds what an undisturbed replay's held."""

    def __init__(self, jobs: list[FinishedJob]) -> None:
        self.jobs = jobs

    def configuration(self) -> SchedulerConfiguration:
        return SchedulerConfiguration(
            scheduler="slurm",
            cluster="replay",
            version="23.11.10",
            scheduler_type="sched/backfill",
            parameters={"time_min_as_soft_limit": ""},
        )

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        end = until if until is not None else self.jobs[-1].end_time
        found = [job for job in self.jobs if cursor.end_time <= job.end_time <= end]
        records = [FinishedRecord(job, job.request.submit_time, "") for job in found]
        return records, Cursor(max(cursor.end_time, end))

    def queue(self) -> Queue:
        return Queue(PROCESSORS, ())

    def reservations(self) -> list[Reservation]:
        return []

    def update(self, changes: Sequence[JobChange]) -> None:
        del changes


def sidecar_settings(folder: Path) -> Settings:
    return Settings(
        scheduler=SchedulerSettings(overlap_s=0),
        store=StoreSettings(path=str(folder / "foretime.sqlite")),
        accuracy=AccuracySection.of_model(FEW_JOBS),
        table=TableSettings(path=str(folder / "foretime.table")),
        hook=HookSettings(mode="enforce"),
    )


def restarted(folder: Path, jobs: list[FinishedJob]) -> tuple[Sidecar, Store]:
    settings = sidecar_settings(folder)
    store = Store(settings.store.path)
    return Sidecar(settings, Recorded(jobs), store), store


def test_killed_at_any_moment_it_loses_nothing(tmp_path: Path) -> None:
    workload = WORKLOAD.head(700)
    stored_at: dict[int, int] = {}

    def note(submitted: int) -> None:
        store = Store(tmp_path / "whole" / "repeat-0" / "foretime.sqlite")
        stored_at[submitted] = store.finished_count()
        store.close()

    replay_of(state_dir=tmp_path / "whole", progress=note)(workload, 0)
    whole, whole_store = restarted(tmp_path / "whole" / "repeat-0", [])
    jobs = list(whole_store.finished_jobs())
    assert len(jobs) == len(workload)
    end = jobs[-1].end_time + DAY_S

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["foretime_sidecar.replay"])
    chance = random.Random(3)  # moments, not secrets
    moments = []
    for attempt in range(12):
        state_dir = tmp_path / f"killed-{attempt}"
        here, there = context.Pipe(duplex=False)
        task = replay_of(state_dir=state_dir, progress=there.send)
        child = context.Process(target=task, args=(workload, 0))
        child.start()
        there.close()
        acknowledged = wait_for(here, chance.randrange(len(stored_at)))
        child.join(chance.random() * 0.01)
        child.kill()
        child.join()
        acknowledged = max(acknowledged, *drained(here), 0)
        moments.append(acknowledged)

        folder = state_dir / "repeat-0"
        table = folder / "foretime.table"
        number = read_table(table).generation if table.exists() else 0
        sidecar, store = restarted(folder, jobs)
        found = list(store.finished_jobs())
        assert found == jobs[: len(found)]
        assert len(found) >= stored_at[acknowledged]
        latest = store.latest_generation()
        number = max(number, 0 if latest is None else latest.generation)
        result = sidecar.poll(end)
        assert result.learned == len(jobs) - len(found)
        assert result.generation is not None
        assert result.generation > number
        assert read_table(table).generation == result.generation
        assert list(store.finished_jobs()) == jobs
        whole.start(end)
        whole.learner.refresh(end)
        expected = whole.learner.table(1, 0, 1, Mode.ENFORCE, ()).rows
        assert set(read_table(table).rows) == set(expected)
        store.close()
        here.close()
    whole_store.close()
    assert len(set(moments)) > 3, "killed at the same moment each time"


def wait_for(connection: Connection, step: int) -> int:
    """Wait until a child has made so many steps of progress; give how many jobs it submitted."""
    submitted = 0
    for _ in range(step):
        try:
            submitted = connection.recv()
        except EOFError:
            break
    return submitted


def drained(connection: Connection) -> list[int]:
    """Read what a child had still said before it was killed."""
    said = [0]
    try:
        while connection.poll():
            said.append(connection.recv())
    except EOFError:
        pass
    return said


# (h) The starvation guard -------------------------------------------------------------------------


def starving() -> tuple[Workload, Workload]:
    """Give a stream of narrow jobs whose history says that they are short, and a wide one in it."""

    def narrow(submit_time: np.ndarray[Any, np.dtype[np.int64]], runtime: int) -> Workload:
        count = len(submit_time)
        return Workload(
            name="starving",
            machine_processors=10,
            unix_start_time=CLOCK,
            job_id=np.arange(1, count + 1),
            submit_time=submit_time,
            processors=np.ones(count, dtype=np.int64),
            actual_runtime=np.full(count, runtime),
            requested_time=np.full(count, 4 * 3600),
            users=Labels(np.zeros(count, dtype=np.int32), ("narrow", "wide")),
        )

    history = narrow(np.arange(60) * 600, 300)
    stream = narrow(3 * DAY_S + np.arange(1500) * 400, 3900)
    processors, requested = stream.processors.copy(), stream.requested_time.copy()
    codes = np.zeros(len(stream), dtype=np.int32)
    wide = 50
    processors[wide], requested[wide], codes[wide] = 10, 3600, 1
    runtime = stream.actual_runtime.copy()
    runtime[wide] = 3600
    users = Labels(codes, ("narrow", "wide"))
    return history, replace(
        stream, processors=processors, requested_time=requested, actual_runtime=runtime, users=users
    )


def test_the_guard_bounds_the_wait_of_a_head_job() -> None:
    history, log = starving()
    waits = {}
    for guard_s in (None, 6 * 3600):
        task = replay_of(rule=PAPER, policy=Policy(guard_s=guard_s), history=history, learn=False)
        baseline, adjusted = run(task, log)
        waits[guard_s] = int(adjusted.start_time[50] - log.submit_time[50])
        plain = int(baseline.start_time[50] - log.submit_time[50])
        # Every limit has run out 4 hours after the wide job became the head.
        assert plain <= 4 * 3600
    assert waits[None] > 4 * DAY_S
    assert waits[6 * 3600] <= (4 + 6 + 4) * 3600 + 400


def test_guard_activations_are_counted() -> None:
    history, log = starving()
    task = replay_of(rule=PAPER, policy=Policy(guard_s=3600), history=history, learn=False)
    statistics = task(log, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.guard_activations >= 1


# (i) History, oracles, repeats --------------------------------------------------------------------


def test_history_alone_decides_to_the_end_of_a_long_log() -> None:
    workload = made_workload(days=120)
    past, rest = workload.split(30 * DAY_S)
    _, adjusted = run(replay_of(rule=PAPER, history=past, learn=False), rest)
    begin = int(rest.submit_time[0])
    model = AccuracyModel(PAPER)
    for job in np.argsort(past.submit_time + past.actual_runtime, kind="stable").tolist():
        start = int(past.submit_time[job])
        runtime = int(past.actual_runtime[job])
        if start + runtime <= begin:
            ending = past.ending(job) or Ending.COMPLETED
            model.learn_one(
                FinishedJob(past.job_request(job), start, start + runtime, runtime, ending)
            )
    for job in range(len(rest)):
        request = rest.job_request(job)
        request = replace(request, requested_time=whole_minutes(request.requested_time))
        planned = min(model.scheduled_time(request), int(rest.requested_time[job]))
        assert adjusted.scheduled_time[job] == planned
    last_month = rest.submit_time > 90 * DAY_S
    assert (adjusted.scheduled_time < rest.requested_time)[last_month].any()


def test_history_adds_to_what_is_learned_on_the_way() -> None:
    past, rest = WORKLOAD.split(20 * DAY_S)
    alone = run(replay_of(), rest)[1]
    with_history = run(replay_of(history=past), rest)[1]
    early = rest.submit_time < 21 * DAY_S
    shortened_alone = alone.scheduled_time < rest.requested_time
    shortened = with_history.scheduled_time < rest.requested_time
    assert shortened[early].sum() > shortened_alone[early].sum()


def test_oracles() -> None:
    requested, actual = WORKLOAD.requested_time, WORKLOAD.actual_runtime
    baseline, same = run(replay_of(scheme="requested"))
    same_schedule(baseline, same)
    _, perfect = run(replay_of(scheme="actual"))
    np.testing.assert_array_equal(perfect.scheduled_time, np.minimum(actual, requested))
    assert not perfect.outlived.any()
    _, half = run(replay_of(scheme="blend:0.5"))
    np.testing.assert_array_equal(half.scheduled_time, -(-(actual + requested) // 2))
    statistics = replay_of(scheme="actual")(WORKLOAD, 0).statistics
    assert isinstance(statistics, AdjustedStatistics)
    assert statistics.hook is None
    for share, scheme in ((0, "requested"), (1, "actual"), (0, "blend:0"), (0.25, "blend:0.25")):
        assert oracle_share(scheme) == share


@pytest.mark.parametrize(
    "scheme", ["", "user!", "blend", "blend:", "blend:2", "blend:-1", "blend:nan", "blend:x", "a:b"]
)
def test_unknown_schemes_name_the_valid_ones(scheme: str) -> None:
    with pytest.raises(InputError, match="unknown scheme") as caught:
        oracle_share(scheme)
    for valid in SCHEMES:
        assert valid in str(caught.value)


def test_repeats_depend_on_the_seed_alone() -> None:
    workload = WORKLOAD.head(300)

    def waits(seed: int) -> list[list[int]]:
        comparison = compare(workload, replay_of(), repeats=2, seed=seed)
        found = []
        for scores in comparison.repeats:
            assert isinstance(scores.statistics, AdjustedStatistics)
            found.append(scores.statistics.wait.tolist())
        return found

    one, again, other = waits(1), waits(1), waits(2)
    assert one == again
    assert one != other
    assert one[0] != one[1]


# (j) Every order and backfilling ------------------------------------------------------------------


@pytest.mark.parametrize("order", [order for order in Order if order is not Order.PRIORITY])
@pytest.mark.parametrize("backfill", Backfill)
def test_every_order_runs_and_matches_the_engine(order: Order, backfill: Backfill) -> None:
    workload = WORKLOAD.head(400)
    unguarded = Policy(order=order, backfill=backfill)
    guard_s = 6 * 3600 if unguarded.may_guard else None
    task = replay_of(policy=replace(unguarded, guard_s=guard_s))
    _, adjusted = run(task, workload)
    plain = simulate(workload, task.policy, adjusted.scheduled_time)
    check_schedule(workload, plain, workload.requested_time)
    same_schedule(adjusted, ReplaySchedule.of(workload, plain, adjusted.scheduled_time))


@pytest.mark.traces
def test_a_real_log(trace: Callable[[str], Path]) -> None:
    log = read_log(trace("KTH-SP2-1996-2.1-cln.swf.gz"))
    workload = workload_of_log(log)[0].head(3000)
    rule = AccuracySettings.production()
    _, adjusted = run(replay_of(rule=rule, scheme="user"), workload)
    begin = workload.unix_start_time
    assert begin is not None
    assert (adjusted.scheduled_time < workload.requested_time).any()
    tang = AccuracySettings.tang2010()
    _, paper = run(replay_of(rule=tang, scheme="user"), workload)
    assert paper.outlived.sum() > adjusted.outlived.sum()
