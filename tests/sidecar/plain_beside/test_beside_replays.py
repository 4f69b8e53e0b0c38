"""The runs beside on a mock Slurm, where plain Slurm's starts are known: they must agree."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sidecar.plain_beside.account import Account
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.plain_starts import PlainStarts
from foretime_sim.workloads.workload import Workload

from tests.support.replay_runs import made_workload
from tests.support.watched_runs import Watched, WatchedSlurm

HOUR = 3600
JOBS = 300


@pytest.fixture(scope="module")
def workload() -> Workload:
    """Jobs of ten days on a machine that is full most of the time."""
    return replace(made_workload(JOBS, 8, seed=4), array_ids=None)


def account(watched: Watched) -> Account:
    return watched.beside.account(0, "user")


def saved_hours(watched: Watched) -> float:
    """What was really saved, by plain Slurm run on the same log."""
    return float((watched.plain_start - watched.start_time).sum()) / HOUR


@pytest.fixture(scope="module")
def with_us(workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> Watched:
    return WatchedSlurm(workload, tmp_path_factory.mktemp("with"), starts_now=True).live()


def test_what_is_told_agrees_with_what_was_saved(with_us: Watched) -> None:
    total = account(with_us).brought
    assert total.jobs >= 0.9 * JOBS
    true = saved_hours(with_us)
    assert true > 20, "or nothing is shown"
    assert total.low_hours is not None
    assert total.high_hours is not None
    assert total.low_hours <= true <= total.high_hours
    assert total.saved_hours == pytest.approx(true, rel=0.25)
    assert account(with_us).would_bring.jobs == 0


def test_all_days_are_settled_and_nothing_more_is_kept(with_us: Watched) -> None:
    standing = with_us.beside.standing
    assert (standing.why_not, with_us.beside.failures) == ("", 0)
    assert standing.days <= 3
    assert standing.open_jobs == 0
    rows = PlainStarts(with_us.store).judged(0)
    assert len({(row.could_start, row.start_time) for row in rows}) >= 0.9 * JOBS


def test_in_observe_the_model_without_us_is_the_real_scheduler(
    workload: Workload, with_us: Watched, tmp_path: Path
) -> None:
    """Nothing is changed, so the model can be held against what happened; and it foretells."""
    watched = WatchedSlurm(workload, tmp_path, starts_now=False).live()
    told = account(watched)
    assert told.brought.jobs == 0
    assert told.model.bias_percent == pytest.approx(0, abs=2)
    would = told.would_bring
    true = saved_hours(with_us)
    assert would.saved_hours == pytest.approx(true, rel=0.35)


def test_a_daemon_that_ends_and_begins_again_tells_the_same(
    workload: Workload, with_us: Watched, tmp_path: Path
) -> None:
    def at_job(index: int, watched: WatchedSlurm) -> None:
        if index in (100, 200):
            watched.restart()

    again = WatchedSlurm(workload, tmp_path, starts_now=True).live(at_job)
    assert account(again).brought.jobs == account(with_us).brought.jobs
    assert account(again).brought.saved_hours == pytest.approx(saved_hours(again), rel=0.25)


def test_a_day_on_which_the_daemon_was_away_costs_only_that(
    workload: Workload, tmp_path: Path
) -> None:
    watched = WatchedSlurm(workload, tmp_path, starts_now=True)
    begin = watched.begin
    watched.away = lambda now: begin + 80 * HOUR < now < begin + 110 * HOUR
    lived = watched.live()
    assert lived.beside.failures == 0
    total = account(lived).brought
    assert total.jobs >= 0.85 * JOBS
    assert total.saved_hours == pytest.approx(saved_hours(lived), rel=0.4)


def test_jobs_that_are_withdrawn_are_in_nobodys_account(workload: Workload, tmp_path: Path) -> None:
    cancelled: list[int] = []

    def at_job(index: int, watched: WatchedSlurm) -> None:
        if index % 10 == 5:
            waiting = watched.scheduler.client.queue().jobs
            pending = [job for job in waiting if job.start_time is None]
            if pending:
                job_id = int(pending[-1].request.job_id)
                watched.scheduler.mock.cancel(job_id)
                cancelled.append(job_id)

    lived = WatchedSlurm(workload, tmp_path, starts_now=False).live(at_job)
    assert len(cancelled) > 5
    told = account(lived)
    assert told.model.bias_percent == pytest.approx(0, abs=3)
    ran = {row.job_id for row in PlainStarts(lived.store).open() if row.start_time is not None}
    assert not ran & {str(job_id) for job_id in cancelled}


def test_without_a_site_it_says_so_and_tells_nothing(workload: Workload, tmp_path: Path) -> None:
    few = workload.head(20)
    watched = WatchedSlurm(few, tmp_path, starts_now=False)
    watched.sidecar.site = None
    watched.sidecar.beside._site = None  # type: ignore[union-attr]
    lived = watched.live()
    assert "the site is not known" in lived.beside.standing.why_not
    assert account(lived).would_bring.jobs == 0
    assert lived.beside.standing.open_jobs == 0


def test_a_head_that_is_late_is_protected(workload: Workload, tmp_path: Path) -> None:
    """With a bound of a minute nearly nobody is let in before those who are late."""

    def bound(settings: Settings) -> Settings:
        beside = settings.beside.model_copy(update={"most_late_s": 60})
        return settings.model_copy(update={"beside": beside})

    strict = WatchedSlurm(workload, tmp_path, starts_now=True, change=bound).live()
    late = strict.start_time - strict.plain_start
    free = WatchedSlurm(workload, tmp_path / "free", starts_now=True)
    del free
    assert strict.beside.failures == 0
    assert late.max() >= 0
