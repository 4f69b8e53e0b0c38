"""time_min of pending jobs follows the estimator, through the whole filter, and harms none."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.jobs.errors import SchedulerError, StateError
from foretime_estimators.jobs.jobs import JobRequest
from foretime_sidecar.clients.client import (
    FinishedRecord,
    JobChange,
    QueuedJob,
    QueueState,
    Reservation,
)
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.learning import guarded_estimator as held_estimator
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.safety.heartbeat import heartbeat_path
from foretime_sidecar.safety.limit_repairs import changes_of, lowered_limits, time_min_changes
from foretime_sidecar.safety.refinements import Refined, refined_in
from foretime_sidecar.safety.watchdog import watch
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from hypothesis import given
from hypothesis import strategies as st
from sqlite_utils import Database

from tests.support.slurm import soft_slurm
from tests.support.slurm.soft_slurm import HOUR, NOTE, RAISED, START, Soft, changed

Record = Callable[..., FinishedRecord]
MINUTE = 60


def waiting(job_id: str, time_min: int | None = 600, **changes: Any) -> QueuedJob:
    """A job whose note says that its time_min may be refined."""
    comment = changes.pop("admin_comment", NOTE)
    return soft_slurm.waiting(
        job_id, time_min, admin_comment=comment and f"{comment},learned=1", **changes
    )


class Says(LastTwo):
    """An estimator that says what a test has it say, in seconds."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: Any = 600

    def predict_one(self, job: JobRequest, now: int) -> int:
        if isinstance(self.seconds, Exception):
            raise self.seconds
        if isinstance(self.seconds, dict):
            return min(int(self.seconds.get(job.processors, 600)), job.requested_time)
        return min(int(self.seconds), job.requested_time)


class Site:
    """A Slurm with waiting jobs, and daemons that come and go."""

    def __init__(self, folder: Path, says: Says, finished: list[FinishedRecord]) -> None:
        self.folder = folder
        self.says = says
        self.client = Soft([waiting("1")])
        self.client.finished = finished
        self.now = START
        self.stores: list[Store] = []
        self.sections: dict[str, dict[str, Any]] = {}
        self.start()

    def start(self, **sections: dict[str, Any]) -> None:
        self.sections = {**self.sections, **sections}
        values: dict[str, dict[str, Any]] = {
            "scheduler": {"poll_interval_s": 60, "history_days": 1},
            "store": {"path": str(self.folder / "store")},
            "accuracy": {"scheme": "learned"},
            "table": {"path": str(self.folder / "table")},
            "hook": {"mode": "enforce", "disable_file": str(self.folder / "off")},
            "queue_order": {"order": "none"},
        }
        for name, section in self.sections.items():
            values[name] = values.get(name, {}) | section
        settings = Settings.model_validate(values)
        self.stores.append(Store(self.folder / "store"))
        self.sidecar = Sidecar(settings, self.client, self.stores[-1], estimating_s=1e9)
        self.sidecar.poll(self.now)

    def look(self, after_s: int = MINUTE) -> list[JobChange]:
        """Look a while later, and give what was changed."""
        self.now += after_s
        before = len(self.client.changes)
        self.sidecar.look(self.now)
        self.sidecar.poll(self.now)
        return self.client.changes[before:]

    def reasons(self) -> list[tuple[str, int | None, str]]:
        with self.sidecar.lock:
            found = self.sidecar.oversight.decisions.find(job_id="1")
        return [(one.action, one.scheduled_time_s, one.reason) for one in found]


@pytest.fixture
def site(tmp_path: Path, record: Record, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    says = Says()
    monkeypatch.setattr(held_estimator, "parse_estimator", lambda *_, **__: says)
    finished = [
        record(number, end_time=START - 1000 + number, user="ann", project="p", processors=8)
        for number in range(6)
    ]
    made = Site(tmp_path, says, finished)
    yield made
    for store in made.stores:
        store.close()


def test_a_pending_job_follows_the_estimator(site: Site) -> None:
    assert site.look() == []
    site.says.seconds = 1501
    assert site.look() == [], "asked ten minutes ago at the earliest"
    assert site.look(600) == [JobChange("1", time_min=1560)]
    assert site.look() == []
    site.says.seconds = 300
    assert site.look() == [], "not more often than every ten minutes"
    assert site.look(600) == [JobChange("1", time_min=300)]
    site.look()
    assert site.reasons() == [
        ("planned", 600, "-"),
        ("changed", 1560, "refined"),
        ("changed", 300, "refined"),
    ]


def test_what_is_hardly_off_stays(site: Site) -> None:
    site.says.seconds = 660
    assert site.look() == []
    site.says.seconds = 540
    assert site.look(600) == []
    site.says.seconds = 720
    assert site.look(600) == [JobChange("1", time_min=720)]


def test_never_above_what_was_asked_for_nor_below_the_least(site: Site) -> None:
    site.says.seconds = 99 * HOUR
    assert site.look() == [JobChange("1", time_min=HOUR)]
    site.says.seconds = 1
    assert site.look(600) == [JobChange("1", time_min=300)]


def test_the_first_time_min_is_already_refined(site: Site) -> None:
    site.client.jobs = [waiting("1", None)]
    site.says.seconds = 1800
    assert site.look() == [JobChange("1", time_min=1800)]


@pytest.mark.parametrize(
    "job",
    [
        waiting("1", deadline=True),
        waiting("1", heterogeneous=True),
        waiting("1", reservation="r"),
        waiting("1", opted_out=True),
        waiting("1", qos="left"),
    ],
)
def test_the_whole_filter_is_passed_again(site: Site, job: QueuedJob) -> None:
    site.start(hook={"leave_qos": ["left"]})
    site.client.jobs = [job]
    site.says.seconds = 1800
    assert site.look() == [JobChange("1", time_min=0)]


def test_before_a_reservation_nothing_is_refined_and_after_it_is(site: Site) -> None:
    site.says.seconds = 1800
    site.client.ahead = [Reservation("r", START + 1000, START + 2000)]
    assert site.look() == [JobChange("1", time_min=0)]
    site.client.ahead = []
    assert site.look() == [JobChange("1", time_min=1800)]


@pytest.mark.parametrize(
    "job",
    [
        waiting("1", state=QueueState.RUNNING),
        waiting("1", state=QueueState.SUSPENDED),
        waiting("1", admin_comment=""),
        soft_slurm.waiting("1"),
        waiting("1", 1234),
        waiting("1", admin_comment="foretime:treq=60,tsched=10,generation=1"),
        waiting("1", request=JobRequest("1", "ann", "p", 8, 540, START, "main")),
        waiting("1", request=JobRequest("1", "zoe", "p", 8, HOUR, START, "main")),
        waiting("1", request=JobRequest("1", None, "p", 8, HOUR, START, "main")),
        waiting("1", request=JobRequest("1", "ann", "p", 9, HOUR, START, "main")),
    ],
    ids=[
        "running", "suspended", "not ours", "planned by accuracy", "changed by somebody",
        "another mechanism",
        "shorter since", "another user", "nobody's", "larger than any",
    ],
)  # fmt: skip
def test_jobs_that_are_not_refined(site: Site, job: QueuedJob) -> None:
    site.client.jobs = [job]
    site.says.seconds = 1800
    assert [change for change in site.look() if change.time_min not in (0, None)] == []


@pytest.mark.parametrize(
    ("user_time_min", "expected"), [("raise", [300, 300]), ("clear", [300, 240])]
)
def test_a_users_own_time_min_is_a_floor_where_it_is_raised(
    site: Site, user_time_min: str, expected: list[int]
) -> None:
    site.start(
        hook={"user_time_min": user_time_min},
        accuracy={"minimum_scheduled_time_s": 60},
        learned={"refine_tolerance": 0.0},
    )
    site.client.jobs = [waiting("1", admin_comment=RAISED)]
    site.says.seconds = 300
    site.look()
    site.says.seconds = 240
    site.look(600)
    changes = [change.time_min for change in site.client.changes]
    assert changes == list(dict.fromkeys(expected))


@pytest.mark.parametrize(
    "sections",
    [
        {"learned": {"refine": False}},
        {"hook": {"mode": "observe"}},
        {"hook": {"enforce_share_percent": 0}},
        {"hook": {"enforce_only_accounts": ["other"]}},
        {"accuracy": {"scheme": "combined"}},
    ],
)
def test_switched_off_jobs_go_by_their_notes(
    site: Site, sections: dict[str, dict[str, Any]]
) -> None:
    site.says.seconds = 1800
    assert site.look() == [JobChange("1", time_min=1800)]
    site.start(**sections)
    site.says.seconds = 900
    site.look(600)
    (job,) = site.client.jobs
    outside = "hook" in sections and "mode" not in sections["hook"]
    off = sections.get("hook", {}).get("mode") == "observe"
    assert job.time_min == (None if off else 1800 if outside else 600)


def test_switched_off_and_on_again(site: Site) -> None:
    site.says.seconds = 1800
    site.look()
    site.start(accuracy={"scheme": "combined"})
    assert site.look() == [JobChange("1", time_min=600)]
    site.start(accuracy={"scheme": "learned"})
    assert site.look() == [JobChange("1", time_min=1800)]


def test_a_restart_knows_which_time_min_is_ours(site: Site) -> None:
    site.says.seconds = 1800
    site.look()
    site.start()
    assert site.look() == []
    site.says.seconds = 900
    assert site.look(600) == [JobChange("1", time_min=900)]
    assert refined_in(site.folder / "store").ours == {"1": {1800, 900}}


def test_what_somebody_else_sets_stays(site: Site) -> None:
    site.says.seconds = 1800
    site.look()
    site.client.jobs = [waiting("1", 1234)]
    site.says.seconds = 900
    assert site.look(600) == []
    site.look(600)
    assert site.reasons()[-1] == ("changed", 1234, "modified")


def test_who_is_gone_is_forgotten(site: Site) -> None:
    site.says.seconds = 1800
    site.look()
    site.client.jobs = [waiting("1", 1800, state=QueueState.RUNNING)]
    site.look()
    assert refined_in(site.folder / "store").ours == {"1": {1800}}
    site.client.jobs = []
    site.look()
    assert refined_in(site.folder / "store").ours == {}


def test_those_furthest_off_come_first(site: Site, record: Record) -> None:
    site.client.finished = [
        record(number, end_time=START - 1000 + number, user="ann", project="p", processors=40)
        for number in range(6)
    ]
    site.start(learned={"most_refined": 2})
    jobs = [waiting(str(number)) for number in range(1, 6)]
    site.client.jobs = [
        replace(job, request=replace(job.request, processors=number))
        for number, job in enumerate(jobs, start=1)
    ]
    site.says.seconds = {1: 600, 2: 900, 3: 3000, 4: 120, 5: 2000}
    assert site.look() == [JobChange("3", time_min=3000), JobChange("5", time_min=2040)]
    assert site.look() == [JobChange("2", time_min=900), JobChange("4", time_min=300)]
    assert site.look() == []


def test_an_estimator_that_fails_leaves_jobs_as_they_are(site: Site) -> None:
    site.says.seconds = 1800
    site.look()
    site.says.seconds = ValueError("nan")
    assert site.look(600) == []
    made = [change for _ in range(30) for change in site.look(600)]
    assert made == [JobChange("1", time_min=600)], "combined at last, by the hook's note"


def test_a_full_store_refines_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site.says.seconds = 1800
    original = site.sidecar.store.transaction

    def full(doing: str) -> contextlib.AbstractContextManager[Database]:
        if "refined" in doing:
            raise StateError("database or disk is full")
        return original(doing)

    with monkeypatch.context() as patch:
        patch.setattr(site.sidecar.store, "transaction", full)
        assert site.look() == []
        assert "is not refined: database or disk is full" in caplog.text
    assert site.look(600) == [JobChange("1", time_min=1800)]


def test_a_refusal_is_no_failure_of_the_others(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Slurm refuses: nothing is taken to have been given back in vain, and it is tried again."""
    caplog.set_level(logging.INFO)
    site.says.seconds = 1800
    original = site.client.update

    def refusing(changes: list[JobChange]) -> None:
        original([change for change in changes if change.job_id != "1"])
        raise SchedulerError("scontrol failed with exit code 1")

    site.client.jobs.append(waiting("2", None))
    with monkeypatch.context() as patch:
        patch.setattr(site.client, "update", refusing)
        assert site.look() == [JobChange("2", time_min=1800)]
        assert site.sidecar.progress.mode == "enforce"
    assert site.look() == [JobChange("1", time_min=1800)]


@pytest.mark.parametrize("soft_limit", [True, False])
def test_no_job_is_killed_at_a_refined_time(soft_limit: bool, site: Site) -> None:
    """Without the soft limit Slurm lowers a starting job to time_min (docs/left_alone.md: V2)."""
    site.says.seconds = 1800
    site.look()
    started = replace(
        site.client.jobs[0],
        state=QueueState.RUNNING,
        request=replace(site.client.jobs[0].request, requested_time=1800),
    )
    given_back = [JobChange("1", time_limit=HOUR)]
    ours = refined_in(site.folder / "store")
    assert changes_of(lowered_limits([started], soft_limit, {"1": HOUR}, refined=ours)) == (
        given_back
    )
    task = replace(started, request=replace(started.request, job_id="1_3", array_id="1"))
    assert changes_of(lowered_limits([task], False, {}, refined=ours)) == [
        JobChange("1_3", time_limit=HOUR)
    ]
    by_its_user = replace(started, request=replace(started.request, requested_time=1740))
    assert lowered_limits([by_its_user], soft_limit, {}, refined=ours) == []
    # The daemon is dead: the watchdog reads what is ours from its store.
    site.client.jobs = [started]
    site.client.parameters = {} if not soft_limit else site.client.parameters
    site.sidecar.store.close()
    heartbeat_path(site.sidecar.settings.table).touch()
    watch(site.sidecar.settings, site.client, 4_000_000_000.0)
    (job,) = site.client.jobs
    assert job.request.requested_time == (HOUR if not soft_limit else 1800)


def test_without_a_store_the_watchdog_goes_by_the_notes(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(b"no database")
    for name in ("none", "damaged"):
        assert refined_in(tmp_path / name) == Refined()


TIMES = st.none() | st.integers(1, 70).map(lambda minutes: minutes * MINUTE)


@given(
    time_min=TIMES,
    due=TIMES,
    ours=st.sets(st.integers(1, 70).map(lambda minutes: minutes * MINUTE)),
    limit=st.integers(1, 60).map(lambda minutes: minutes * MINUTE),
    running=st.booleans(),
)
def test_a_refined_time_is_within_the_limit_and_of_nobody_else(
    time_min: int | None, due: int | None, ours: set[int], limit: int, *, running: bool
) -> None:
    job = waiting("1", time_min, state=QueueState.RUNNING if running else QueueState.PENDING)
    job = replace(job, request=replace(job.request, requested_time=limit))
    refined = Refined({} if due is None else {"1": due}, {"1": frozenset(ours)})
    repairs = time_min_changes([job], Exclusions(), START, 0, refined)
    if running or time_min not in {None, 600} | ours:
        assert repairs == []
    for repair in repairs:
        assert repair.change.time_limit is None
        assert 0 < (repair.change.time_min or 0) <= limit
        after = changed(job, repair.change)
        assert time_min_changes([after], Exclusions(), START, 0, refined) == []
