"""What breaks in mid-replay: the sidecar, its table, the hook's leave to act; killed processes."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foretime_estimators.jobs.jobs import FinishedJob
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
from foretime_sidecar.daemon.sidecar import PollResult, Sidecar
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.settings.queue_order_settings import QueueOrderSettings
from foretime_sidecar.settings.settings import (
    AccuracySection,
    HookSettings,
    SchedulerSettings,
    Settings,
    StoreSettings,
    TableSettings,
)
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode, read_table
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.slurm.hook import LuaHook

from tests.support.replay_runs import (
    CLOCK,
    DAY_S,
    FEW_JOBS,
    INTERVAL_S,
    PROCESSORS,
    WORKLOAD,
    expected_scheduled_times,
    made_workload,
    replay_of,
    run,
)

# What breaks in mid-replay ------------------------------------------------------------------------

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

    monkeypatch.setattr("foretime_sidecar.replays.replay_schedulers.LuaHook", with_disable_file)
    sidecar_dies(monkeypatch, lambda _: disable_file.touch())
    _, adjusted = run(replay_of())
    shortened = adjusted.scheduled_time < WORKLOAD.requested_time
    submitted = WORKLOAD.submit_time + CLOCK
    assert shortened[submitted < DEATH].any()
    assert not shortened[submitted >= DEATH + INTERVAL_S].any()


# SIGKILL ------------------------------------------------------------------------------------------


class Recorded(SchedulerClient):
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

    def limits(self, configuration: SchedulerConfiguration) -> SiteLimits:
        return SiteLimits()

    def update(self, changes: Sequence[JobChange]) -> None:
        del changes

    def load(self) -> ControllerLoad | None:
        return None

    def site_factors(self) -> dict[str, int]:
        return {}

    def qos_priorities(self) -> dict[str, int]:
        return {}


def sidecar_settings(folder: Path) -> Settings:
    return Settings(
        scheduler=SchedulerSettings(overlap_s=0),
        store=StoreSettings(path=str(folder / "foretime.sqlite")),
        accuracy=AccuracySection.of_model(FEW_JOBS),
        table=TableSettings(path=str(folder / "foretime.table")),
        hook=HookSettings(mode="enforce"),
        queue_order=QueueOrderSettings(order="none"),
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
    context.set_forkserver_preload(["foretime_sidecar.replays.replay"])
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
        expected = whole.learner.table(1, 0, 1, Mode.ENFORCE, Exclusions()).rows
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
