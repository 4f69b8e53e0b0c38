"""Metrics for watching: bounded in number, silent where people could be told of, and right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.expected_waits import MOST_PARTITIONS, OTHERS, expected_waits
from foretime_sidecar.daemon.self_metrics import Health, SelfMetrics
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.daemon.watch_limits import watch_limits
from foretime_sidecar.forecasts import wait_map
from foretime_sidecar.forecasts.forecast_board import Board
from foretime_sidecar.forecasts.wait_map import TIMES_S, WaitMap, largest_mapped, sizes_of
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from prometheus_client.parser import text_string_to_metric_families

NOW = 1_700_000_000
_DECIDE = "INSERT INTO job_decisions VALUES (NULL, ?, ?, ?, ?, 'p', 'q', 1, ?, 3600, ?, ?, 1)"
Samples = dict[tuple[str, ...], float]


class World:
    """A sidecar on a mock Slurm, and its metrics."""

    def __init__(self, folder: Path, **sections: dict[str, Any]) -> None:
        self.settings = Settings.model_validate(
            {"table": {"path": str(folder / "table")}} | sections
        )
        self.slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
        self.store = Store(":memory:")
        client = SlurmCommands(self.slurm.run)
        self.sidecar = Sidecar(self.settings, client, self.store, forecasts=True)
        self.health = Health(NOW)
        self.metrics = SelfMetrics(self.sidecar, self.health, lambda: self.slurm.now)

    def look(self, seconds: int = 60) -> World:
        self.slurm.advance(self.slurm.now + seconds)
        self.sidecar.look(self.slurm.now)
        self.sidecar.poll(self.slurm.now)
        self.sidecar.waits.refresh()
        return self

    def decide(self, action: str, reason: str, jobs: int, users: int = 5) -> None:
        """Put words of the audit on jobs that nobody has seen yet."""
        first = self.store.rows("SELECT coalesce(max(seq), 0) FROM job_decisions")[0][0]
        rows = [
            (NOW, f"x{number}", NOW, f"u{number % users}", action, 600, reason)
            for number in range(first, first + jobs)
        ]
        self.store.write("test", _DECIDE, rows)

    def samples(self) -> Samples:
        return {
            (sample.name, *sample.labels.values()): sample.value
            for family in text_string_to_metric_families(self.metrics.text().decode())
            for sample in family.samples
        }


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def names(samples: Samples) -> set[str]:
    return {key[0] for key in samples}


def test_a_daemon_that_has_just_begun_tells_its_limits_and_nothing_that_it_can_not_know(
    world: World,
) -> None:
    samples = world.samples()
    assert samples["foretime_watch_limit", "table_age_seconds"] > 0
    assert samples["foretime_breaker_open",] == samples["foretime_working",] == 0
    unknown = {"outliving_percent", "expected_wait_seconds", "sign_of_life_age_seconds"}
    assert not names(samples) & {f"foretime_{name}" for name in unknown}


def test_limits_are_those_of_the_settings(tmp_path: Path) -> None:
    table = {"path": str(tmp_path / "t"), "valid_for_s": 1000, "watchdog_after_s": 77}
    breaker = {"most_outliving_percent": 100, "most_head_slip_s": 0, "most_wait_p99_s": 8}
    limits = watch_limits(World(tmp_path, table=table, breaker=breaker).sidecar)
    # It runs out before it would be late by when it is written anew.
    assert limits["table_age_seconds"] == 1000
    assert limits["sign_of_life_age_seconds"] == 77
    assert limits["wait_p99_seconds"] == 8
    assert not limits.keys() & {"outliving_percent", "head_slip_seconds"}
    limits = watch_limits(World(tmp_path, table={**table, "valid_for_s": 20_000}).sidecar)
    assert 10_000 < limits["table_age_seconds"] < 20_000


def test_jobs_are_counted_by_the_latest_word_on_each(world: World) -> None:
    world.decide("planned", "-", 8)
    world.decide("unplanned", "hook", 2)
    world.decide("left", "what a later hook says", 3)
    world.decide("left", "and another", 4)
    world.store.write("test", _DECIDE, [(NOW + 1, "x0", NOW, "u0", "cleared", 600, "modified")])
    samples = world.samples()
    assert samples["foretime_decided_jobs", "planned", "-"] == 7
    assert samples["foretime_decided_jobs", "cleared", "modified"] == 1
    assert samples["foretime_decided_jobs", "left", "other"] == 7
    assert samples["foretime_unplanned_percent",] == pytest.approx(100 * 2 / 9)
    assert samples["foretime_latest_decision_age_seconds",] == 0


def test_what_few_users_jobs_became_is_not_told(world: World) -> None:
    world.decide("planned", "-", 8, users=4)
    samples = world.samples()
    assert not names(samples) & {"foretime_decided_jobs", "foretime_planned_jobs"}
    assert samples["foretime_head_slip_seconds",] == 0


def test_figures_are_counted_anew_only_after_minutes_and_when_somebody_is_forgotten(
    world: World,
) -> None:
    world.decide("planned", "-", 12, users=6)
    assert world.samples()["foretime_decided_jobs", "planned", "-"] == 12
    world.decide("planned", "-", 12, users=6)
    assert world.samples()["foretime_decided_jobs", "planned", "-"] == 12
    world.sidecar.forget("u0", NOW)
    assert world.samples()["foretime_decided_jobs", "planned", "-"] == 20
    world.slurm.advance(NOW + 301)
    world.decide("planned", "-", 5, users=1)
    assert world.samples()["foretime_decided_jobs", "planned", "-"] == 25


def test_an_open_breaker_is_told_at_once_and_a_busy_store_keeps_nobody_waiting(
    world: World,
) -> None:
    assert world.samples()["foretime_breaker_open",] == 0
    insert = "INSERT INTO breaker_events VALUES (NULL, ?, 'tripped', 'test')"
    world.store.write("test", insert, [(NOW,)])
    assert world.samples()["foretime_breaker_open",] == 1
    world.store.close()
    assert world.samples()["foretime_breaker_open",] == 1


def fill(world: World, users: int) -> None:
    for number in range(users):
        world.slurm.submit(Submission(f"u{number}", "p", None, 64, 7200, 5400))
    world.look()


def test_expected_waits_are_by_partition_and_size_class(world: World) -> None:
    fill(world, 5)
    samples = world.samples()
    classes = [key[1] for key in samples if key[0] == "foretime_expected_wait_seconds"]
    assert classes == ["1", "2-4", "5-16", "17-64"]
    wait = samples["foretime_expected_wait_seconds", "17-64", "main"]
    (drawn,) = world.sidecar.waits.maps()
    assert wait == drawn.median_wait_s[drawn.sizes.index(64)][TIMES_S.index(4 * 3600)]
    assert wait > 0
    assert samples["foretime_expected_wait_bound_seconds", "17-64", "main"] >= wait


def test_expected_waits_are_not_told_where_jobs_are_hidden_or_of_few(world: World) -> None:
    fill(world, 4)
    assert "foretime_expected_wait_seconds" not in names(world.samples())
    fill(world, 5)
    assert "foretime_expected_wait_seconds" in names(world.samples())
    world.sidecar.private_data = frozenset({"jobs"})
    assert "foretime_expected_wait_seconds" not in names(world.samples())


def drawn(name: str, processors: int, wait_s: int | None) -> WaitMap:
    sizes = sizes_of(processors)
    rows = [[wait_s] * len(TIMES_S)] * len(sizes)
    return WaitMap(NOW, name, sizes, TIMES_S, rows, rows)


def test_two_hundred_partitions_make_few_series(monkeypatch: pytest.MonkeyPatch) -> None:
    partitions = {f"p{number:03}": 65_536 - 64 * number for number in range(200)}
    monkeypatch.setattr(wait_map, "mapped", lambda board: tuple(board))
    processors: Callable[[Any, str], int] = lambda board, name: board[name]  # noqa: E731
    monkeypatch.setattr(wait_map, "_processors", processors)
    own = largest_mapped(cast("Board", partitions), MOST_PARTITIONS)
    assert own == {f"p{number:03}" for number in range(20)}
    maps = [drawn(name, size, 60 * int(name[1:])) for name, size in partitions.items()]
    waits = expected_waits(maps, own)
    assert len(waits) <= 21 * 9
    assert len({(wait.slurm_partition, wait.size_class) for wait in waits}) == len(waits)
    others = [wait for wait in waits if wait.slurm_partition == OTHERS]
    assert {wait.median_s for wait in others} == {60 * 199}
    # While maps are drawn one by one, none has a series that it loses later.
    for count in range(200):
        so_far = {wait.slurm_partition for wait in expected_waits(maps[::-1][:count], own)}
        assert so_far <= {*own, OTHERS}


def test_a_size_that_nobody_can_have_for_long_is_told_for_less() -> None:
    waits: list[list[int | None]] = [[10, 20, None, None, None, None], [None] * 6]
    one = WaitMap(NOW, "short", (1, 2), TIMES_S, waits, waits)
    assert [(w.size_class, w.median_s) for w in expected_waits([one], ["short"])] == [("1", 20)]


def test_refusals_are_counted_by_status(world: World) -> None:
    for status in (200, 304, 429, 429, 431):
        world.health.note_answer(status)
    samples = world.samples()
    assert samples["foretime_http_refused_total", "429"] == 2
    assert samples["foretime_http_refused_total", "431"] == 1
    assert samples["foretime_http_refused_total", "503"] == 0
    assert ("foretime_http_refused_total", "200") not in samples


def test_the_sign_of_life_is_told_by_its_file(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "table.alive").touch()
    at = (tmp_path / "table.alive").stat().st_mtime
    clock = SimpleNamespace(time=lambda: at + 40)
    monkeypatch.setattr("foretime_sidecar.daemon.watch_metrics.time", clock)
    assert world.samples()["foretime_sign_of_life_age_seconds",] == pytest.approx(40)
