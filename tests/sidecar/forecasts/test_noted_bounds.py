"""Start no later than: noted once, never later, judged, told in words that promise nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.cli.application import app as command
from foretime_sidecar.clients.client import Cursor, FinishedRecord, Queue, QueuedJob, QueueState
from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition
from foretime_sidecar.forecast_answer.coarsening import Telling, coarsened
from foretime_sidecar.forecasts import latest_starts as noted_bounds
from foretime_sidecar.forecasts.latest_starts import KeptBounds, NotedBounds
from foretime_sidecar.queue.forecast_question import Look, QueueMoment
from foretime_sidecar.queue.queue_events import END, START, Event
from foretime_sidecar.settings.settings import ForecastSettings
from foretime_sidecar.store.start_bounds import NotedBound
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.api.bound_answers import bound_answer
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer
from foretime_sidecar.wording.waits import bound_text
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.start_bounds import StartBounds, start_bounds
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy
from typer.testing import CliRunner

from tests.support.slurm.mock_site import MockSite
from tests.support.slurm.ordered_slurm import submission

NOW = 1_800_000_000
HOUR = 3600
DAY = 86_400
ROOT = Caller(Identity.of_peer(Peer(1, 0, 0)))


def _request(job_id: str, processors: int, hours: int, submit: int, user: str) -> JobRequest:
    return JobRequest(job_id, user, "p", processors, hours * HOUR, submit, "main")


def _waits(
    job_id: str, processors: int, hours: int, user: str = "ann", submit: int = NOW, **changed: Any
) -> QueuedJob:
    request = _request(job_id, processors, hours, submit, user)
    return QueuedJob(request, QueueState.PENDING, **({"eligible_time": submit} | changed))


RUNS = QueuedJob(_request("1", 16, 5, NOW - HOUR, "bob"), QueueState.RUNNING, start_time=NOW - HOUR)


def _moment(*waiting: QueuedJob, now: int = NOW) -> QueueMoment:
    return QueueMoment.of(Look(now, Queue(16, (RUNS, *waiting))), ForecastSettings(order="fcfs"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A site whose jobs have waited for two hours on average: none, and four."""
    with_waits = []
    for number, wait_s in enumerate((0, 4 * HOUR)):
        request = _request(f"{number}0", 1, 1, NOW - DAY, "ann")
        start = NOW - DAY + wait_s
        ended = FinishedJob(request, start, start + 60, 60, Ending.COMPLETED)
        with_waits.append(FinishedRecord(ended, NOW - DAY, "COMPLETED"))
    store = Store(tmp_path / "store")
    store.add_finished(with_waits, Cursor(NOW - HOUR))
    yield store
    store.close()


def _bounds(store: Store, smallest_group: int = 1, factor: float = 3.0) -> NotedBounds:
    return NotedBounds(store, threading.RLock(), factor, smallest_group, 1000)


def test_a_bound_is_the_planned_start_and_the_slack(store: Store) -> None:
    """Job 2 is planned in 4 h, twice the average wait: its priority is 1/3 of 1, its slack 2/3 of
    3 x 2 h. Job 3 is planned in 14 h and gets no more: a priority is at most 1."""
    bounds = _bounds(store)
    assert bounds.average_wait_s(NOW) == 2 * HOUR
    assert bounds.note(_moment(_waits("2", 16, 10), _waits("3", 16, 1))) == 2
    assert bounds.bound_of("2", NOW) == NotedBound(NOW, NOW + 4 * HOUR, NOW + 8 * HOUR)
    assert bounds.bound_of("3", NOW) == NotedBound(NOW, NOW + 14 * HOUR, NOW + 18 * HOUR)


def test_what_was_noted_is_never_made_later(store: Store) -> None:
    bounds = _bounds(store)
    bounds.note(_moment(_waits("2", 16, 10)))
    first = bounds.bound_of("2", NOW)
    # An hour on, behind another that came before it, and in another process.
    later = _moment(_waits("9", 16, 90, submit=NOW - 60), _waits("2", 16, 10), now=NOW + HOUR)
    assert bounds.note(later) == 1
    again = _bounds(store, factor=100.0)
    assert again.note(later) == 0
    assert bounds.bound_of("2", NOW) == again.bound_of("2", NOW) == first


def test_who_is_not_in_the_queue_is_told_nothing_yet(store: Store) -> None:
    bounds = _bounds(store)
    held = _waits("2", 16, 10, held=True)
    later = _waits("3", 1, 1, eligible_time=NOW + HOUR)
    assert bounds.note(_moment(held, later)) == 0
    assert bounds.note(_moment(_waits("2", 16, 10), now=NOW + 60)) == 1


def test_without_any_wait_known_nothing_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "empty")
    bounds = _bounds(store)
    assert bounds.average_wait_s(NOW) is None
    assert bounds.note(_moment(_waits("2", 16, 10))) == 0
    store.close()


def test_a_queue_that_is_too_long_is_not_planned(store: Store) -> None:
    bounds = NotedBounds(store, threading.RLock(), 3.0, 1, most_jobs=2)
    assert bounds.note(_moment(_waits("2", 16, 10), _waits("3", 16, 1))) == 0


def test_on_nodes_the_first_of_a_deep_queue_are_planned(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = []

    def counted(snapshot: Snapshot, *settings: Any, **order: Any) -> StartBounds:
        planned.append(len(snapshot.pending))
        return start_bounds(snapshot, *settings, **order)

    monkeypatch.setattr(noted_bounds, "start_bounds", counted)
    monkeypatch.setattr(noted_bounds, "MOST_ON_NODES", 3)
    cluster = Cluster(
        (ClusterNode("n1", 16),), (ClusterPartition("main", frozenset({"n1"}), default=True),)
    )
    jobs = tuple(_waits(str(number), 16, 1, submit=NOW - 90 + number) for number in range(2, 8))
    bounds = _bounds(store)
    look = Look(NOW, Queue(16, tuple(reversed(jobs))), cluster=cluster)
    settings = ForecastSettings(order="fcfs")
    assert bounds.note(QueueMoment.of(look, settings)) == 3
    told = [bounds.bound_of(job.request.job_id, job.request.submit_time) for job in jobs]
    assert [one and one.planned_start for one in told] == [
        NOW, NOW + HOUR, NOW + 2 * HOUR, None, None, None,
    ]  # fmt: skip
    # Nothing is planned anew until somebody else is among the first.
    assert bounds.note(QueueMoment.of(replace(look, taken_at=NOW + 60), settings)) == 0
    left = replace(look, queue=Queue(16, jobs[1:]))
    assert bounds.note(QueueMoment.of(left, settings)) == 1
    assert planned == [3, 3]


def test_kept_missed_and_withdrawn(store: Store) -> None:
    bounds = _bounds(store)
    jobs = [_waits(str(number), 16, 1, f"u{number}") for number in range(2, 7)]
    bounds.note(_moment(*jobs))
    limit = {
        job.request.job_id: bound.latest_start
        for job in jobs
        if (bound := bounds.bound_of(job.request.job_id, NOW)) is not None
    }

    def withdrawn(job: QueuedJob, at: int) -> Event:
        ended = FinishedJob(job.request, None, at, 0, Ending.NEVER_STARTED)
        return Event(at, END, job.request, ended)

    bounds.learn(
        [
            Event(limit["2"], START, jobs[0].request),
            Event(limit["3"] + 1, START, jobs[1].request),
            withdrawn(jobs[2], limit["4"] - 1),
            withdrawn(jobs[3], limit["5"] + 1),
        ]
    )
    before = limit["6"]
    assert bounds.kept(before, 30) == KeptBounds(30, 3, 3, 1 / 3)
    # The last still waits, past its bound: it is missed at once.
    assert bounds.kept(before + 1, 30) == KeptBounds(30, 4, 4, 1 / 4)
    assert bounds.kept(NOW + 60 * DAY, 30).judged == 0, "too long ago"
    assert _bounds(store, smallest_group=5).kept(before + 1, 30).kept_share is None
    assert bounds.bound_of("2", NOW) is None, "it has started"


def test_rows_go_in_time_but_not_of_who_waits(store: Store) -> None:
    bounds = _bounds(store)
    jobs = [_waits("2", 16, 1), _waits("3", 16, 1)]
    bounds.note(_moment(*jobs))
    bounds.learn([Event(NOW + 60, START, jobs[0].request)])
    store.forget_forecasts_before(NOW + 60)
    assert [row[0] for row in store.rows("SELECT job_id FROM start_bounds")] == ["3"]
    store.forget_forecasts_before(NOW + 60 * DAY)
    assert not store.rows("SELECT job_id FROM start_bounds"), "past by so much"


# -- what is said ----------------------------------------------------------------------------------

BOUND = NotedBound(NOW, NOW + HOUR, NOW + 3 * HOUR)


def test_a_bound_is_told_in_words_that_promise_nothing() -> None:
    kept = KeptBounds(30, 1234, 9, 0.9712)
    answer = bound_answer(BOUND, kept, NOW + HOUR)
    assert answer is not None
    assert (answer.time, answer.wait_s, answer.judged) == (NOW + 3 * HOUR, 2 * HOUR, 1234)
    text = bound_text(answer, NOW + HOUR)
    assert text.startswith("should start by ")
    assert "a bound set when the job was first seen" in text
    assert text.endswith("no guarantee. In the last 30 days 97% of 1,234 such bounds held")
    unknown = bound_answer(BOUND, KeptBounds(30, 0, 0, None), NOW + HOUR)
    assert unknown is not None
    assert bound_text(unknown, NOW + 4 * HOUR) == ""
    assert bound_text(answer, NOW + 4 * HOUR).startswith("should have started by ")
    assert bound_answer(None, kept, NOW) is None


def test_a_bound_is_coarse_where_jobs_are_hidden() -> None:
    answers = [bound_answer(BOUND, None, NOW + later) for later in (0, 600, 4 * HOUR)]
    coarse = [coarsened(each, Telling(NOW, "")) for each in answers if each is not None]
    (time,) = {each.time for each in coarse}
    assert time >= BOUND.latest_start, "asked again and again it stays, and is not earlier"
    assert time % HOUR == 0
    assert all(each.planned_start is None for each in coarse)


def test_the_daemon_tells_it(tmp_path: Path) -> None:
    slurm = MockSlurm(SlurmSetup(16), Policy(), None, NOW - DAY)
    for number in range(7):  # history: three have waited
        slurm.submit(submission(16, HOUR, user=f"u{number}"))
    slurm.advance(NOW)
    slurm.submit(submission(16, 5 * HOUR, user="bob"))
    slurm.submit(submission(16, HOUR, user="ann"))
    slurm.advance(NOW + 60)
    with MockSite(tmp_path, slurm) as site:
        site.app.dependency_overrides[caller_of] = lambda: ROOT
        client = TestClient(site.app, base_url="http://localhost", raise_server_exceptions=False)
        slurm.advance(NOW + 120)
        slurm.submit(submission(16, HOUR, user="eve"))
        slurm.advance(NOW + 180)
        site.look()
        site.look()
        found = client.get("/v1/jobs/10/forecast").json()["start_no_later_than"]
        assert found["planned_start"] == NOW + 6 * HOUR
        assert found["time"] > found["planned_start"]
        assert (found["noted_at"], found["kept_share"]) == (NOW + 180, None)
        assert client.get("/v1/forecast?processors=1&time=60").json()["start_no_later_than"] is None
        text = client.get("/").text
        assert "no guarantee" not in text, "how often it holds is not known yet"
        said = CliRunner().invoke(command, ["wait", "10", "--socket", str(site.socket_path)])
        words = " ".join(said.output.split())
        assert "Latest" not in words
        forecasting = site.daemon.sidecar.forecasting
        assert forecasting is not None
        forecasting.kept_bounds = KeptBounds(30, 1234, 9, 0.97)
        text = client.get("/").text
        assert "no guarantee. In the last 30 days 97% of 1,234 such bounds held." in text
        said = CliRunner().invoke(command, ["wait", "10", "--socket", str(site.socket_path)])
        words = " ".join(said.output.split())
        assert "Latest It should start by" in words
        done = client.get("/v1/reliability").json()["start_no_later_than"]
        assert done["judged"] == 0
        site.app.dependency_overrides.clear()
