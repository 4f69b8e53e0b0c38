"""The scheme learned, poll by poll: gone by once all is learned, and never in anybody's way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.jobs.errors import StateError
from foretime_estimators.jobs.jobs import FinishedJob, JobRequest
from foretime_sidecar.cli.reports.explanation import explanation
from foretime_sidecar.clients.client import FinishedRecord
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.learning import guarded_estimator as held_estimator
from foretime_sidecar.safety.reasons import REASONS
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.model_states import NAMED
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Table, read_table

Record = Callable[..., FinishedRecord]
NOW = 100_000_000
STATE = f"{NAMED}scheme learned, last-two"


class Site:
    """A scheduler, a store and a table, and sidecars that come and go."""

    def __init__(self, folder: Path, scheduler: Any) -> None:
        self.folder = folder
        self.scheduler = scheduler
        self.stores: list[Store] = []

    def start(self, estimator: str = "last-two", estimating_s: float = 1e9) -> Sidecar:
        settings = Settings.model_validate(
            {
                "accuracy": {"scheme": "learned", "threshold": 2},
                "learned": {"estimator": estimator, "threshold": 2},
                "table": {"path": str(self.folder / "table"), "publish_interval_s": 60},
            }
        )
        self.stores.append(Store(self.folder / "store"))
        return Sidecar(settings, self.scheduler, self.stores[-1], estimating_s=estimating_s)

    @property
    def table(self) -> Table:
        return read_table(self.folder / "table")

    def scheme(self) -> str:
        return self.table.settings.scheme.value

    def saved(self) -> list[str]:
        with_store = Store(self.folder / "store")
        names = [row[0] for row in with_store.rows("SELECT name FROM model_states ORDER BY name")]
        with_store.close()
        return names


@pytest.fixture
def site(tmp_path: Path, scheduler: Any, record: Record) -> Iterator[Site]:
    site = Site(tmp_path, scheduler)
    scheduler.finished = [
        record(number, end_time=NOW - 1000 + number, user=user, runtime=300 * (number + 1))
        for number, user in enumerate(["alice", "bob"] * 3)
    ]
    yield site
    for store in site.stores:
        store.close()


def planned(sidecar: Sidecar, user: str) -> int:
    return sidecar.learner.scheduled_time(JobRequest("9", user, "physics", 4, 3600, NOW))


def test_the_table_has_what_the_estimator_says(site: Site) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    assert site.scheme() == "learned"
    assert {(row.kind, row.name) for row in site.table.learned_rows} == {
        (kind, user)
        for kind in ("user+request+size", "user+request", "user+class+size", "user+class")
        for user in ("alice", "bob")
    }
    assert planned(sidecar, "alice") == (900 + 1500) // 2
    assert planned(sidecar, "zoe") == 3600


def test_it_follows_what_finishes(site: Site, record: Record) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    site.scheduler.finished.append(record(77, end_time=NOW + 50, user="alice", runtime=3300))
    sidecar.poll(NOW + 60)
    assert planned(sidecar, "alice") == (1500 + 3300) // 2
    assert site.table.generation == 2


def test_until_all_is_learned_the_combined_scheme_counts(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sidecar = site.start(estimating_s=-1)
    sidecar.poll(NOW)
    assert site.scheme() == "combined"
    assert {row.name for row in site.table.rows} == {"alice", "bob", "physics"}
    assert not site.table.learned_rows
    combined = planned(sidecar, "zoe")
    assert combined < 3600  # by the project's row
    assert "estimator last-two can't be gone by: it has not learned" in caplog.text
    for minute in range(1, 60):
        sidecar.poll(NOW + 60 * minute)
    assert site.scheme() == "learned"
    assert planned(sidecar, "alice") == 1200
    assert caplog.messages[-1] == "jobs are planned by estimator last-two"
    assert sum("can't be gone by" in line for line in caplog.messages) == 1


def test_a_restart_goes_on_with_what_was_saved(
    site: Site, monkeypatch: pytest.MonkeyPatch, record: Record
) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    sidecar.end()
    assert site.saved() == [STATE]
    learned: list[str] = []

    def learn_one(self: LastTwo, job: FinishedJob) -> None:
        learned.append(job.request.job_id)
        original(self, job)

    original = LastTwo.learn_one
    monkeypatch.setattr(LastTwo, "learn_one", learn_one)
    site.scheduler.finished.append(record(77, end_time=NOW + 50, user="alice", runtime=3300))
    again = site.start()
    again.poll(NOW + 60)
    assert learned == ["77"]
    assert planned(again, "alice") == 2400
    assert site.scheme() == "learned"


@pytest.mark.parametrize(
    "spoilt", ["{", "[]", "{}", '{"version":1,"last_seq":6,"seen":[],"model":{}}']
)
def test_a_spoilt_state_is_learned_anew(
    site: Site, spoilt: str, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    sidecar.end()
    sidecar.store.write("spoil", "UPDATE model_states SET state = ?", [(spoilt,)])
    again = site.start()
    again.poll(NOW + 60)
    assert f"{STATE} is learned anew from the store" in caplog.text
    assert planned(again, "alice") == 1200


def test_another_estimator_begins_with_the_store(site: Site) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    sidecar.end()
    other = site.start("similar")
    other.poll(NOW + 60)
    other.end()
    assert site.scheme() == "learned"
    assert len(site.saved()) == 2


def test_whoever_is_forgotten_is_in_no_row_and_no_state(site: Site) -> None:
    sidecar = site.start()
    sidecar.poll(NOW)
    sidecar.estimating.save(NOW)  # type: ignore[union-attr]
    sidecar.forget("alice", NOW + 10)
    assert site.saved() == []
    assert planned(sidecar, "alice") == 3600
    sidecar.poll(NOW + 60)
    assert {row.name for row in site.table.learned_rows} == {"bob"}
    sidecar.end()
    assert '"alice"' not in str(sidecar.store.rows("SELECT state FROM model_states"))


class Broken(LastTwo):
    """Fails on whatever a test says."""

    on_learning = on_predicting = False
    answer: Any = None

    def predict_one(self, job: JobRequest, now: int) -> int:
        if self.on_predicting:
            raise RuntimeError("division by cucumber")
        return super().predict_one(job, now) if self.answer is None else self.answer

    def learn_one(self, job: FinishedJob) -> None:
        if self.on_learning:
            raise RuntimeError("division by cucumber")
        super().learn_one(job)


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Broken:
    estimator = Broken()
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: estimator)
    return estimator


@pytest.mark.parametrize("answer", [float("nan"), -1, 0, 10**9, "x", True])
def test_a_wild_answer_gives_no_row(site: Site, broken: Broken, answer: object) -> None:
    broken.answer = answer
    sidecar = site.start()
    sidecar.poll(NOW)
    assert site.scheme() == "learned"
    assert site.table.learned_rows == ()
    assert planned(sidecar, "alice") == 3600


def test_an_estimator_that_fails_again_and_again_is_not_gone_by(
    site: Site, broken: Broken, caplog: pytest.LogCaptureFixture, record: Record
) -> None:
    caplog.set_level(logging.INFO)
    sidecar = site.start()
    sidecar.poll(NOW)
    assert planned(sidecar, "alice") == 1200
    broken.on_predicting = True
    for minute in range(1, 10):
        sidecar.poll(NOW + 60 * minute)
    assert site.scheme() == "combined"
    assert "it fails again and again: estimator last-two can't predict a job" in caplog.text
    broken.on_predicting = False
    sidecar.poll(NOW + 900)
    assert site.scheme() == "learned"


def test_jobs_that_it_cannot_learn_are_left_out(site: Site, broken: Broken) -> None:
    broken.on_learning = True
    sidecar = site.start()
    sidecar.poll(NOW)
    assert sidecar.progress.finished_jobs == 6
    assert planned(sidecar, "alice") == 3600


def test_a_store_that_fails_has_the_combined_scheme_count(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sidecar = site.start()

    def unreadable(*_: object) -> None:
        raise StateError("disk I/O error")

    with monkeypatch.context() as patch:
        patch.setattr(sidecar.store, "finished_after", unreadable)
        sidecar.poll(NOW)
    assert site.scheme() == "combined"
    assert "the scheme learned: disk I/O error" in caplog.text
    sidecar.poll(NOW + 60)
    assert site.scheme() == "learned"


def test_switched_off_and_on(site: Site) -> None:
    site.start().poll(NOW)
    settings = site.start().settings
    off = settings.model_copy(
        update={"accuracy": settings.accuracy.model_copy(update={"scheme": "combined"})}
    )
    store = Store(site.folder / "store")
    site.stores.append(store)
    sidecar = Sidecar(off, site.scheduler, store)
    sidecar.poll(NOW + 60)
    assert sidecar.estimating is None
    assert site.scheme() == "combined"
    assert site.table.back_off is None
    site.start().poll(NOW + 120)
    assert site.scheme() == "learned"


def test_what_is_said_of_a_job_names_the_kind_it_is_estimated_from(site: Site) -> None:
    sidecar = site.start()
    job = JobRequest("9", "alice", "physics", 4, 3600, NOW)
    said = [sidecar.learner.kind_of(job)]
    sidecar.poll(NOW)
    said += [sidecar.learner.kind_of(one) for one in (job, replace(job, requested_time=3000))]
    assert said == [
        None,
        "its user's jobs that ask for the same time and about as many processors",
        "its user's jobs that ask for about as much time and about as many processors",
    ]
    answer = {
        "job_id": "9",
        "user": "alice",
        "requested_time_s": 3600,
        "scheduled_time_s": 1200,
        "action": "changed",
        "why": REASONS["refined"],
        "own_jobs": None,
        "estimated_from": said[1],
        "history": [],
    }
    asks, may_run, estimated = explanation(answer)
    assert asks.startswith("Job 9 of alice asks for 01:00:00, and is planned with 00:20:00 now: ")
    assert "is estimated anew" in asks
    assert may_run.startswith("It may run for 01:00:00 in any case")
    assert estimated == f"What it needs is estimated from {said[1]}."
