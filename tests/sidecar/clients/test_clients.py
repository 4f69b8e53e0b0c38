"""Every client passes the shared checks: on recorded replies, and on the mock Slurm."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, FinishedRecord, JobChange, QueuedJob, QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.clients.slurm.json import parse_finished
from foretime_sidecar.clients.slurm.queue_json import parse_queue, pending_tasks
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import SchedulerSettings, Settings, TableSettings
from foretime_sidecar.store.store import Store
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Policy
from hypothesis import given
from hypothesis import strategies as st

from tests.support.client_checks import CHANGING, READING, Check, check_no_changes

START = 1_800_000_000


class Recorded:
    """Replies of a live Slurm; of the finished jobs those of the times asked for."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        if stdin is not None:
            # A change of what is not there any more.
            raise SchedulerError(f"scontrol failed with exit code 1: refused: {stdin}")
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if "--json" not in argv:
            return (self._folder / f"{name}.txt").read_text()
        reply = json.loads((self._folder / f"{name}.json").read_text())
        times = dict(word[2:].split("=", 1) for word in argv if "time=" in word)
        if times:
            until = times["endtime"].removeprefix("uts")
            last = int(until)
            first = int(times["starttime"].removeprefix("uts"))
            reply["jobs"] = [j for j in reply["jobs"] if first <= j["time"]["end"] <= last]
        return reply


def _submission(processors: int = 4, **changed: Any) -> Submission:
    values: dict[str, Any] = {
        "user": "alice",
        "account": "physics",
        "slurm_partition": "main",
        "processors": processors,
        "requested_time": 3600,
        "actual_runtime": 600,
    }
    return Submission(**(values | changed))


def _busy_slurm() -> MockSlurm:
    """Some jobs have ended in every way that the mock knows, some run, some wait."""
    slurm = MockSlurm(SlurmSetup(processors=16), Policy(), None, START)
    for number, ending in enumerate(Ending):
        if ending is not Ending.NEVER_STARTED:
            slurm.submit(_submission(1, ending=ending, actual_runtime=100 + 10 * number))
    slurm.submit(_submission(1, requested_time=120, actual_runtime=500))
    slurm.submit(_submission(2, array_id=50))
    slurm.submit(_submission(2, array_id=50))
    slurm.advance(START + 1000)
    slurm.submit(_submission(12, actual_runtime=3000))
    slurm.submit(_submission(16, requested_time=7200))
    slurm.submit(_submission(16, array_id=51, time_min=1800))
    slurm.submit(_submission(16, user=None, account=None))
    slurm.cancel(slurm.submit(_submission(16)))
    slurm.advance(START + 1100)
    return slurm


@pytest.fixture(params=["slurm-22.05", "slurm-26.05", "mock-slurm"])
def client(request: pytest.FixtureRequest, repository: Path) -> SlurmCommands:
    """Each client that there is."""
    if request.param == "mock-slurm":
        return SlurmCommands(_busy_slurm().run, overlap_s=0)
    release = request.param.removeprefix("slurm-")
    return SlurmCommands(Recorded(repository / "tests/assets/slurm" / release), overlap_s=0)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.__name__)
def test_reading_passes_the_shared_checks(check: Check, client: SlurmCommands) -> None:
    check(client)


@pytest.mark.parametrize("check", CHANGING, ids=lambda check: check.__name__)
def test_changing_passes_the_shared_checks(check: Check) -> None:
    check(SlurmCommands(_busy_slurm().run))


class _Meddling(SlurmCommands):
    """Changes something whatever it is told."""

    def update(self, changes: Sequence[JobChange]) -> None:
        super().update([replace(change, time_min=60) for change in changes])


def test_a_client_that_changes_what_it_was_not_told_to_is_found() -> None:
    with pytest.raises(AssertionError, match=r"job \w+ was changed to \(\d+, 60\)"):
        check_no_changes(_Meddling(_busy_slurm().run))


@pytest.mark.parametrize(("moves", "ends"), [(3, True), (1_000, False)])
def test_a_queue_that_moves_of_itself_is_looked_at_again_but_not_for_ever(
    moves: int, ends: bool
) -> None:
    slurm = _busy_slurm()
    left = [True] * moves

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        if argv[0] == "squeue" and left and left.pop():
            slurm.submit(_submission(1))
        return slurm.run(argv, stdin)

    stands_still = (
        contextlib.nullcontext() if ends else pytest.raises(AssertionError, match="queue")
    )
    with stands_still:
        check_no_changes(SlurmCommands(run))
    assert ends == (not left)


def test_in_the_mock_no_job_is_both_queued_and_finished() -> None:
    client = SlurmCommands(_busy_slurm().run)
    finished = {r.job.request.job_id for r in client.finished_since(Cursor())[0]}
    queued = {job.request.job_id for job in client.queue().jobs}
    assert finished.isdisjoint(queued)
    numbers = sorted(int(job_id.rpartition("_")[2]) for job_id in finished | queued)
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_mock_ends_jobs_as_told() -> None:
    slurm = _busy_slurm()
    records, cursor = SlurmCommands(slurm.run).finished_since(Cursor())
    by_number = {int(r.job.request.job_id.rpartition("_")[2]): r for r in records}
    endings = [ending for ending in Ending if ending is not Ending.NEVER_STARTED]
    for number, ending in enumerate(endings, start=1):
        assert by_number[number].job.ending is ending
        assert by_number[number].job.actual_runtime == 100 + 10 * (number - 1)
    cut = by_number[len(endings) + 1].job
    assert (cut.ending, cut.actual_runtime) == (Ending.TIMED_OUT, 120)
    never = records[-1]
    assert (never.job.ending, never.state, never.job.start_time) == (
        Ending.NEVER_STARTED,
        "CANCELLED",
        None,
    )
    assert cursor == Cursor(START + 1000)
    assert {r.job.request.array_id for r in records} == {None, "50"}


def test_the_mock_shows_what_runs_and_waits() -> None:
    queue = SlurmCommands(_busy_slurm().run).queue()
    assert queue.processors == 16
    running = [job for job in queue.jobs if job.state is QueueState.RUNNING]
    assert [job.start_time for job in running] == [START + 1000]
    waiting = [job for job in queue.jobs if job.state is QueueState.PENDING]
    assert [job.request.processors for job in waiting] == [16, 16, 16]
    assert [job.start_time for job in waiting] == [None] * 3
    assert [(j.request.job_id.partition("_")[0], j.time_min) for j in waiting][1] == ("51", 1800)
    assert (waiting[2].request.user, waiting[2].request.project) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (JobChange("51_999", time_min=60), "51_999"),
        (JobChange("1_3", time_min=60), "1_3"),  # Python would read 1_3 as 13
        (JobChange("1", time_limit=600), "already completing or completed for job 1"),
        (JobChange("12", time_min=600_000), "Requested time limit is invalid for job 12"),
    ],
)
def test_the_mock_refuses_as_slurm_does(change: JobChange, said: str) -> None:
    client = SlurmCommands(_busy_slurm().run)
    before = client.queue()
    with pytest.raises(SchedulerError, match=said):
        client.update([change])
    assert client.queue() == before


_SUBMISSIONS = st.lists(
    st.tuples(
        st.integers(0, 400),  # pause before it
        st.integers(1, 16),
        st.integers(1, 1200),  # actual runtime
        st.sampled_from([60, 300, 600, 3600]),
        st.sampled_from([e for e in Ending if e is not Ending.NEVER_STARTED]),
    ),
    max_size=25,
)


@given(submissions=_SUBMISSIONS, poll_every=st.integers(1, 900))
def test_polls_of_the_mock_lose_nothing(
    submissions: list[tuple[int, int, int, int, Ending]], poll_every: int, tmp_path_factory: Any
) -> None:
    folder = tmp_path_factory.mktemp("mock")
    slurm = MockSlurm(SlurmSetup(processors=16), Policy(), None, START)
    settings = Settings(
        scheduler=SchedulerSettings(overlap_s=0), table=TableSettings(path=str(folder / "table"))
    )
    store = Store(":memory:")
    sidecar = Sidecar(settings, SlurmCommands(slurm.run, overlap_s=0), store)
    sidecar.poll(START)
    next_poll = START + poll_every
    for pause, processors, runtime, requested, ending in submissions:
        at = slurm.now + pause
        while next_poll <= at:
            slurm.advance(next_poll)
            sidecar.poll(next_poll)
            next_poll += poll_every
        slurm.advance(at)
        slurm.submit(
            _submission(processors, requested_time=requested, actual_runtime=runtime, ending=ending)
        )
    slurm.finish()
    sidecar.poll(slurm.now)
    stored = {int(job.request.job_id): job for job in store.finished_jobs()}
    store.close()
    assert sorted(stored) == list(range(1, len(submissions) + 1))
    if submissions:
        schedule = slurm.schedule()
        assert [stored[n].start_time for n in sorted(stored)] == schedule.start_time.tolist()
        assert [stored[n].end_time for n in sorted(stored)] == schedule.end_time.tolist()
    assert all(
        stored[number].actual_runtime == min(runtime, requested)
        for number, (_, _, runtime, requested, _) in enumerate(submissions, start=1)
    )


# -- replies in shapes that nobody has seen ----------------------------------------------------

_ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 1 << 40),
    st.floats(allow_nan=False),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.builds(lambda number: {"set": True, "infinite": False, "number": number}, st.integers()),
    st.just({"set": True, "number": "x"}),
)


def _mutated(draw: Callable[[Any], Any], value: Any) -> Any:
    """A copy with one thing in it, however deep, replaced by something odd."""
    if isinstance(value, Mapping) and value and draw(st.integers(0, 9)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: _mutated(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 9)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _mutated(draw, value[place]), *value[place + 1 :]]
    return draw(_ODD)


@pytest.mark.parametrize(("name", "parse"), [("sacct", parse_finished), ("squeue", parse_queue)])
def test_odd_replies_are_read_or_refused(
    name: str, parse: Callable[[object], Sequence[Any]], repository: Path
) -> None:
    text = (repository / f"tests/assets/slurm/22.05/{name}.json").read_text()
    reply = json.loads(text)
    reply["jobs"] = [_slim(job) for job in reply["jobs"][:12]]

    @given(st.data())
    def check(data: st.DataObject) -> None:
        odd = copy.deepcopy(reply)
        place = data.draw(st.integers(0, len(odd["jobs"]) - 1))
        odd["jobs"][place] = _mutated(data.draw, odd["jobs"][place])
        with contextlib.suppress(SchedulerError):
            for job in parse(odd):
                _require_types(job)

    check()


def _require_types(job: FinishedRecord | QueuedJob) -> None:
    """What is read has the types that it is declared to have, whatever the reply said."""
    request = job.job.request if isinstance(job, FinishedRecord) else job.request
    assert type(request.job_id) is str
    for text in (request.user, request.project, request.queue, request.array_id):
        assert text is None or (type(text) is str and text)
    for number in (request.processors, request.requested_time):
        assert isinstance(number, int)
        assert number >= 1
    assert isinstance(request.submit_time, int)
    assert isinstance(job.admin_comment, str)
    for time in (job.job.start_time,) if isinstance(job, FinishedRecord) else (job.start_time,):
        assert time is None or isinstance(time, int)
    assert job.eligible_time is None or isinstance(job.eligible_time, int)


def _slim(job: dict[str, Any]) -> dict[str, Any]:
    """The fields that the parsers look at (a mutation elsewhere tells nothing)."""
    used = (
        "array array_job_id array_task_id array_task_string association comment cpus deadline "
        "dependency eligible_time het_job_id job_id job_state partition pre_sus_time priority qos "
        "required resv_name start_time state state_reason submit_time suspend_time time time_limit "
        "time_minimum tres user_name account admin_comment"
    )
    return {key: value for key, value in job.items() if key in used.split()}


@pytest.mark.parametrize("reply", [None, [], "x", {}, {"jobs": None}, {"jobs": {}}])
def test_replies_without_jobs_are_refused(reply: object) -> None:
    for parse, name in ((parse_finished, "sacct"), (parse_queue, "squeue")):
        with pytest.raises(SchedulerError, match=f"{name} --json answered without a list of jobs"):
            parse(reply)


def test_an_error_in_a_reply_is_passed_on() -> None:
    with pytest.raises(SchedulerError, match=r"reported an error: .*slurmdbd is down"):
        parse_finished({"jobs": [], "errors": [{"description": "slurmdbd is down"}]})


@pytest.mark.parametrize(
    ("expression", "tasks"),
    [("1-9,20,22,24%2", "1-9,20,22,24"), ("0-8:4", "0-8:4"), ("1-9,20,...", ""), ("", "")],
)
def test_the_tasks_of_an_array_that_wait_are_written_out(expression: str, tasks: str) -> None:
    assert pending_tasks(expression) == tasks


@pytest.mark.parametrize(
    ("word", "state"),
    [
        ("STOPPED", QueueState.RUNNING),
        ("SIGNALING", QueueState.RUNNING),
        ("REQUEUE_HOLD", QueueState.PENDING),
        ("RESV_DEL_HOLD", QueueState.PENDING),
    ],
)
def test_no_job_gets_out_of_sight(word: str, state: QueueState, repository: Path) -> None:
    """22.05 names a flag in the state's place."""
    reply = json.loads((repository / "tests/assets/slurm/22.05/squeue.json").read_text())
    reply["jobs"] = reply["jobs"][:1]
    reply["jobs"][0]["job_state"] = word
    assert [job.state for job in parse_queue(reply)] == [state]
