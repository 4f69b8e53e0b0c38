"""The runs beside on a mock Slurm, where plain Slurm's starts are known: they must agree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sidecar.plain_beside import account as account_module
from foretime_sidecar.plain_beside import beside as beside_module
from foretime_sidecar.plain_beside.account import Account
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm

from tests.support.replay_runs import made_workload
from tests.support.watched_runs import Watched, WatchedSlurm

HOUR = 3600
JOBS = 90
# Two days and a half on a machine that is full most of the time.
WORKLOAD = replace(made_workload(300, 8, seed=4), array_ids=None).head(JOBS)


@pytest.fixture(scope="module", autouse=True)
def seldom() -> Iterator[None]:
    """Live the last days anew every six hours, not every quarter of one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beside_module, "_RUN_EVERY_S", 6 * HOUR)
        yield


def account(watched: Watched) -> Account:
    return watched.beside.account(0, "user")


def saved_hours(watched: Watched) -> float:
    """What was really saved, by plain Slurm run on the same log."""
    return float((watched.plain_start - watched.start_time).sum()) / HOUR


@pytest.fixture(scope="module")
def with_us(tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return WatchedSlurm(WORKLOAD, tmp_path_factory.mktemp("with"), starts_now=True).live()


def test_what_is_told_is_what_was_saved(with_us: Watched) -> None:
    """As the mock is the model, and a week has not gone by since the first look."""
    told, true = account(with_us), saved_hours(with_us)
    assert abs(true) > 20, "or nothing is shown"
    assert (told.brought.jobs, told.would_bring.jobs, told.left_out_jobs) == (JOBS, 0, 0)
    assert told.brought.saved_hours == pytest.approx(true, rel=0.0005)
    assert sum(row.saved_hours for row in told.brought_rows) == pytest.approx(
        told.brought.saved_hours
    )


def test_days_are_settled_and_nothing_more_is_held(with_us: Watched) -> None:
    standing = with_us.beside.standing
    assert (standing.why_not, with_us.beside.failures) == ("", 0)
    assert standing.days == 1, "all others are settled"
    assert standing.settled_until is not None
    assert PlainStarts(with_us.store).open() == []


def test_in_observe_the_model_without_us_is_the_real_scheduler_and_foretells(
    tmp_path: Path,
) -> None:
    """Jobs that wait are withdrawn now and then."""
    withdrawn: list[int] = []

    def at_job(index: int, watched: WatchedSlurm) -> None:
        pending = [
            job for job in watched.scheduler.client.queue().jobs if job.state.value == "pending"
        ]
        if index % 20 == 10 and len(pending) > 3:
            withdrawn.append(int(pending[-1].request.job_id))
            assert isinstance(watched.scheduler.mock, MockSlurm)
            watched.scheduler.mock.cancel(withdrawn[-1])

    watched = WatchedSlurm(WORKLOAD, tmp_path, starts_now=False)
    lived = watched.live(at_job)
    told = account(lived)
    assert len(withdrawn) >= 2
    assert told.brought.jobs == 0
    assert told.model.jobs == JOBS - len(withdrawn)
    assert told.model.bias_percent == pytest.approx(0, abs=1)
    assert told.would_bring.jobs == JOBS - len(withdrawn)
    assert told.would_bring.saved_hours > 20


def test_a_daemon_that_crashes_and_begins_again_tells_the_same(tmp_path: Path) -> None:
    def at_job(index: int, watched: WatchedSlurm) -> None:
        if index in (35, 70):
            watched.restart()

    again = WatchedSlurm(WORKLOAD, tmp_path, starts_now=True).live(at_job)
    told = account(again).brought
    assert told.jobs == JOBS
    assert told.saved_hours == pytest.approx(saved_hours(again), rel=0.0005)


def test_a_day_in_which_the_daemon_was_away_costs_nothing(tmp_path: Path) -> None:
    """What came and went meanwhile is known from the accounting."""
    watched = WatchedSlurm(WORKLOAD, tmp_path, starts_now=True)
    begin = watched.begin
    watched.away = lambda now: begin + 15 * HOUR < now < begin + 40 * HOUR
    lived = watched.live()
    assert lived.beside.failures == 0
    told = account(lived).brought
    assert told.jobs == JOBS
    assert told.saved_hours == pytest.approx(saved_hours(lived), rel=0.0005)


@pytest.mark.parametrize("most_percent", [1e9, -1.0])
def test_where_the_model_is_off_nobody_counts_as_late_by_it(
    tmp_path: Path, most_percent: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beside_module, "_MOST_OFF_PERCENT", most_percent)
    monkeypatch.setattr(account_module, "_FEWEST_DAYS", 2)
    off, known = set[bool](), set[bool]()

    def at_job(index: int, watched: WatchedSlurm) -> None:
        beside = watched.sidecar.beside
        assert beside is not None
        if index > JOBS * 2 // 3:
            off.add(beside.standing.model_is_off)
            waiting = [job for job in watched.scheduler.client.queue().jobs if job.has_nodes == ()]
            known.add(any(beside.late.plain_start(job) is not None for job in waiting))

    WatchedSlurm(WORKLOAD, tmp_path, starts_now=True).live(at_job)
    assert off == {most_percent < 0}
    assert (True in known) is (most_percent > 0)


def test_without_a_site_it_says_so_and_tells_nothing(tmp_path: Path) -> None:
    watched = WatchedSlurm(WORKLOAD.head(10), tmp_path, starts_now=False, knows_site=False)
    lived = watched.live()
    assert "the site is not known" in lived.beside.standing.why_not
    assert (account(lived).would_bring.jobs, lived.beside.standing.open_jobs) == (0, 0)
