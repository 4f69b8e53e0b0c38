"""Rows from an estimator: enough history, nobody moved by another, the hook's answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_estimators.accuracy.accuracy_settings import AccuracySettings
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.learning.estimator_rows import LearnedRows
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.settings.settings import AccuracySection, Settings
from foretime_sidecar.table.row_kinds import BackOff, LearnedRow
from foretime_sidecar.table.table import Mode, table_bytes
from foretime_sim.mocks.slurm.hook import LuaHook
from hypothesis import given, settings
from hypothesis import strategies as st

NOW = 1_100_000
GROUP = 5
ACCURACY = AccuracySettings.production()


def finished(
    number: int,
    user: str | None = "alice",
    *,
    project: str | None = "physics",
    requested_time: int = 36_000,
    processors: int = 4,
    ending: Ending = Ending.COMPLETED,
    array_id: str | None = None,
    end_time: int | None = None,
) -> FinishedJob:
    end = 1_000_000 + number if end_time is None else end_time
    request = JobRequest(
        str(number), user, project, processors, requested_time, end - 700, None, array_id
    )
    return FinishedJob(request, end - 600, end, 600, ending)


def rows_of(*kinds: str, threshold: int = 3, accuracy: AccuracySettings = ACCURACY) -> LearnedRows:
    return LearnedRows(BackOff((1, 4, 16), kinds), accuracy, threshold, GROUP)


def vote(
    rows: LearnedRows, say: Callable[[JobRequest], int | None], most_again: int = 100
) -> list[LearnedRow]:
    rows.answered([(vote, say(vote.request)) for vote in rows.to_ask(most_again)])
    rows.refresh(NOW)
    return sorted(rows.rows(), key=lambda row: row.key)


def shares(**of_users: int) -> Callable[[JobRequest], int]:
    """Percents of the request by user."""
    return lambda job: job.requested_time * of_users[job.user or ""] // 100


def test_a_user_needs_enough_submissions_of_a_kind() -> None:
    rows = rows_of("user+request", "user+class")
    for number in range(2):
        rows.learn_one(finished(number))
    assert vote(rows, shares(alice=20)) == []
    rows.learn_one(finished(2, requested_time=36_060))
    assert vote(rows, shares(alice=20)) == [
        LearnedRow("user+class", "alice", (2,), 200_000, 4 * 36_060)
    ]
    rows.learn_one(finished(3, processors=2))
    assert [row.kind for row in vote(rows, shares(alice=30))] == ["user+class", "user+request"]


@pytest.mark.parametrize("ending", [Ending.CANCELLED, Ending.NODE_FAILED, Ending.NEVER_STARTED])
def test_what_is_no_evidence_counts_for_nothing(ending: Ending) -> None:
    rows = rows_of("user+request", threshold=1)
    rows.learn_one(finished(1, ending=ending))
    rows.learn_one(finished(2, user=None))
    assert vote(rows, shares(alice=20)) == []


def test_an_array_is_one_submission() -> None:
    rows = rows_of("user+request")
    for number in range(9):
        rows.learn_one(finished(number, array_id="77" if number % 2 else "78"))
    assert vote(rows, shares(alice=20)) == []
    rows.learn_one(finished(9))
    assert len(vote(rows, shares(alice=20))) == 1
    each = rows_of("user+request", accuracy=AccuracySettings.tang2010())
    for number in range(3):
        each.learn_one(finished(number, array_id="77"))
    assert len(vote(each, shares(alice=20))) == 1


def test_the_latest_job_stands_for_the_next() -> None:
    rows = rows_of("user+class", threshold=1)
    rows.learn_one(finished(1))
    rows.learn_one(finished(2, requested_time=43_000))
    asked = rows.to_ask(100)
    assert [vote.request.job_id for vote in asked] == ["2"]
    (row,) = vote(rows, lambda job: job.requested_time // 2 + 1)
    assert row.adjustment_micro == 21_501 * 1_000_000 // 43_000


def test_of_whom_the_estimator_says_nothing_there_is_no_row() -> None:
    rows = rows_of("user+request", threshold=1)
    rows.learn_one(finished(1))
    assert len(vote(rows, shares(alice=20))) == 1
    assert vote(rows, lambda _: None) == []
    assert len(vote(rows, shares(alice=20))) == 1


def test_several_users_rows_need_a_group() -> None:
    rows = rows_of("project+class", "class")
    say = shares(**{f"user{number}": 10 * (number + 1) for number in range(6)})
    for number in range(GROUP - 1):
        for again in range(50):
            rows.learn_one(finished(100 * number + again, f"user{number}"))
    assert vote(rows, say) == []
    rows.learn_one(finished(900, f"user{GROUP - 1}"))
    assert [(row.kind, row.name, row.adjustment_micro) for row in vote(rows, say)] == [
        ("class", "-", 400_000),  # 80% of five users are covered by the fourth
        ("project+class", "physics", 400_000),
    ]


def test_a_row_of_several_applies_to_sizes_that_a_group_has_run() -> None:
    rows = rows_of("class")
    for number in range(GROUP + 2):
        rows.learn_one(finished(number, f"user{number}", processors=number + 1))
    (row,) = vote(rows, lambda job: 60)
    assert row.largest_processor_seconds == 3 * 36_000  # 7, 6, 5, 4 and 3 processors
    whole = rows_of("class", accuracy=replace(ACCURACY, within_largest_job=False))
    for number in range(GROUP):
        whole.learn_one(finished(number, f"user{number}"))
    assert vote(whole, lambda job: 60)[0].largest_processor_seconds is None


def test_what_is_long_over_is_forgotten() -> None:
    rows = rows_of("user+request", "class", threshold=1)
    window_s = ACCURACY.window_s or 0
    rows.learn_one(finished(1, end_time=NOW - window_s - 1))
    rows.learn_one(finished(2, "bob", end_time=NOW))
    assert [row.name for row in vote(rows, shares(alice=20, bob=20))] == ["bob"]
    assert len(rows.to_ask(100)) == 1


def test_all_are_asked_again_in_turn() -> None:
    rows = rows_of("user+request", threshold=1)
    for number in range(5):
        rows.learn_one(finished(number, f"user{number}"))
    asked = []
    for _ in range(5):
        votes = rows.to_ask(2)
        asked.append([vote.request.user for vote in votes])
        rows.answered([(vote, 60) for vote in votes])
    assert asked[0] == [f"user{number}" for number in range(5)]
    assert asked[1:4] == [["user0", "user1"], ["user2", "user3"], ["user4", "user0"]]
    rows.learn_one(finished(9, "zoe"))
    assert rows.to_ask(0)[0].request.user == "zoe"


@given(
    others=st.lists(
        st.tuples(st.sampled_from(["bob", "eve", "zoe"]), st.integers(1, 100)), max_size=30
    ),
    own=st.integers(1, 100),
)
def test_nobody_moves_anothers_row(others: list[tuple[str, int]], own: int) -> None:
    rows = rows_of("user+request", "user+class", "project+class", "class")
    for number in range(4):
        rows.learn_one(finished(number))
    said = {"alice": own} | dict(others)
    for number, (user, _) in enumerate(others):
        rows.learn_one(finished(1000 + number, user))
    found = vote(rows, shares(**said))
    assert [row.adjustment_micro for row in found if row.name == "alice"] == [own * 10_000] * 2
    assert not [row for row in found if row.kind in ("class", "project+class")]  # no group


@given(
    honest=st.lists(st.integers(1, 100), min_size=8, max_size=20),
    liars=st.integers(0, 60).map(lambda percent: percent / 100),
    jobs=st.integers(1, 40),
)
def test_a_group_cannot_be_talked_down_by_a_minority(
    honest: list[int], liars: float, jobs: int
) -> None:
    """However many jobs they run: the row is no lower than what some honest user has."""
    rows = rows_of("class")
    said = {f"honest{number}": share for number, share in enumerate(honest)}
    number = 0
    for user in said:
        rows.learn_one(finished(number, user))
        number += 1
    for liar in range(int(liars * len(honest))):
        said[f"liar{liar}"] = 1
        for _ in range(jobs):
            rows.learn_one(finished(number, f"liar{liar}"))
            number += 1
    (row,) = vote(rows, shares(**said))
    assert row.adjustment_micro >= min(honest) * 10_000


JOBS = st.builds(
    lambda number, user, project, processors, minutes: finished(
        number, user, project=project, processors=processors, requested_time=60 * minutes
    ),
    st.integers(0, 10**6),
    st.sampled_from([*(f"user{number}" for number in range(7)), None]),
    st.sampled_from(["physics", None]),
    st.sampled_from([1, 2, 5, 40]),
    st.sampled_from([30, 120, 600, 3000]),
)


@settings(deadline=None)
@given(
    history=st.lists(JOBS, min_size=20, max_size=40),
    jobs=st.lists(JOBS, max_size=5),
)
def test_the_learner_says_what_the_hook_does(
    hook: LuaHook, learned_table: Path, history: list[FinishedJob], jobs: list[FinishedJob]
) -> None:
    learner = Learner(Settings(accuracy=AccuracySection(scheme="learned")))
    assert learner.learned is not None
    for job in sorted(history, key=lambda job: job.end_time):
        learner.learn_one(job)
    learner.go_by_estimator(usable=True)
    learner.learned.answered(
        (vote, 1 + vote.request.requested_time * (int(vote.request.job_id) % 97) // 97)
        for vote in learner.learned.to_ask(0)
    )
    learner.refresh(NOW)
    assert learner.row_count() == len(learner.learned.rows())
    table = learner.table(1, NOW, NOW + 9, Mode.ENFORCE, Exclusions())
    learned_table.write_bytes(table_bytes(table))
    hook.configure({"table": str(learned_table)})
    for job in jobs:
        request = job.request
        fields: dict[str, int | str] = {
            "time_limit": request.requested_time // 60,
            "min_cpus": request.processors,
        }
        if request.user is not None:
            fields["user_name"] = request.user
        if request.project is not None:
            fields["account"] = request.project
        changes = hook.submit(fields, {"main": {"flag_default": 1}}, 1000, NOW).changes
        planned = (
            str(changes.get("admin_comment", "tmin=0")).partition("tmin=")[2].partition(",")[0]
        )
        expected = learner.scheduled_time(request)
        assert int(planned) * 60 == (expected if expected < request.requested_time else 0)
        assert learner.as_planned(request, expected) == expected


@pytest.fixture(scope="module")
def learned_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("learned") / "table"


@pytest.fixture(scope="module")
def hook(learned_table: Path) -> LuaHook:
    return LuaHook(table=learned_table)
