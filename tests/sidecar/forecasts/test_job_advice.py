"""The same work in other shapes: what is suggested, and that it would have killed no like job."""

from __future__ import annotations

from dataclasses import replace

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.forecasts.job_advice import Shape, like_jobs, safe_limit, shapes
from foretime_sidecar.forecasts.job_question import JobParameters, JobQuestion, question_of
from foretime_sidecar.wording.submit_words import submit_words
from hypothesis import given
from hypothesis import strategies as st

NOW = 1_700_000_000


def asked(**parameters: object) -> JobQuestion:
    return question_of(JobParameters.model_validate(parameters), "ann", NOW)


def finished(
    runtime: int, requested_time: int = 7200, ending: Ending = Ending.COMPLETED, processors: int = 8
) -> FinishedJob:
    request = JobRequest("1", "ann", None, processors, requested_time, NOW - 9000)
    return FinishedJob(request, NOW - 9000, NOW - 9000 + runtime, runtime, ending)


def offered(question: JobQuestion, like: list[FinishedJob], **site: object) -> list[Shape]:
    options = {
        "machine_processors": 64,
        "longest_s": None,
        "soft_limit": False,
        "takes_time_min": True,
        "words": submit_words("slurm"),
    }
    return list(shapes(question, like, **(options | site)))  # type: ignore[arg-type]


def test_fewer_and_more_nodes_keep_the_processor_time() -> None:
    question = asked(nodes="4", ntasks=16, time="2:00:00", scales=True)
    two, one, eight = offered(question, [])
    assert two.change == {"nodes": 2, "ntasks": 8, "time": "04:00:00"}
    assert two.options == "--nodes=2 --ntasks=8 --time=04:00:00"
    assert two.text.startswith("on 2 nodes instead of 4, with a time limit of 04:00:00")
    assert (one.change["nodes"], one.question.request.requested_time) == (1, 8 * 3600)
    assert (eight.change["nodes"], eight.question.request.processors) == (8, 32)
    assert [shape.runtime_factor for shape in (two, one, eight)] == [2, 4, 0.5]
    for shape in (two, one, eight):
        assert shape.processor_seconds == 16 * 7200


def test_tasks_are_resized_where_nodes_were_not_named() -> None:
    half, quarter, twice = offered(asked(ntasks=4, cpus_per_task=2, time="60", scales=True), [])
    assert half.options == "--ntasks=2 --time=02:00:00"
    assert (quarter.question.tasks, quarter.question.request.processors) == (1, 2)
    assert twice.question.request.processors == 16


def test_shapes_that_can_not_be_are_not_offered() -> None:
    # Three tasks can't be halved; six are more than the machine has.
    assert offered(asked(ntasks=3, time="60", scales=True), [], machine_processors=5) == []
    # The slurm_partition allows 100 min: half the tasks would take 120.
    assert [
        s.change["ntasks"]
        for s in offered(asked(ntasks=2, time="60", scales=True), [], longest_s=6000)
    ] == [4]
    # Half a minute is nothing that Slurm could be asked for.
    (half,) = offered(asked(ntasks=2, time="1", scales=True), [], machine_processors=2)
    assert half.change == {"ntasks": 1, "time": "00:02:00"}


def test_a_shorter_limit_and_time_min_come_from_the_users_own_jobs() -> None:
    like = [finished(1000 + number) for number in range(20)]
    time_min, limit = offered(asked(ntasks=8, time="2:00:00"), like)
    # 1019 s and 15% are 1172: two of ten minutes.
    assert limit.change == {"time": "00:20:00"}
    assert limit.question.request.requested_time == 1200
    assert "your last 20 jobs of this kind took less" in limit.text
    assert (time_min.change, time_min.planned_s) == ({"time_min": "00:20:00"}, 1200)
    assert time_min.question.request.requested_time == 7200
    assert len(offered(asked(ntasks=8, time="2:00:00", scales=True), like)) == 5
    # Where time_min is a soft limit Foretime gives it, and PBS has none.
    for site in ({"soft_limit": True}, {"takes_time_min": False}):
        assert "time" in offered(asked(ntasks=8, time="2:00:00"), like, **site)[0].change


@pytest.mark.parametrize(
    "like",
    [
        [finished(1000)] * 19,
        [finished(1000)] * 20 + [finished(7200, ending=Ending.TIMED_OUT)],
        [finished(1000)] * 20 + [finished(10, ending=Ending.NODE_FAILED)],
        [finished(5000)] * 20,  # 5750 is 6000 of 7200: hardly shorter
    ],
)
def test_no_limit_is_suggested_without_good_reason(like: list[FinishedJob]) -> None:
    assert safe_limit(asked(ntasks=8, time="2:00:00").request, like) is None


@given(st.lists(st.integers(1, 7200), min_size=20, max_size=60))
def test_no_suggested_limit_would_have_killed_a_like_job(runtimes: list[int]) -> None:
    like = [finished(runtime) for runtime in runtimes]
    for shape in offered(asked(ntasks=8, time="2:00:00"), like):
        if "ntasks" not in shape.change:
            limit = shape.planned_s or shape.question.request.requested_time
            assert limit > max(runtimes)
            assert limit <= 0.8 * 7200


def test_like_jobs_are_of_the_same_size_project_and_about_the_same_request() -> None:
    request = asked(ntasks=8, time="2:00:00").request
    like = finished(100)
    others = [
        finished(100, processors=4),
        finished(100, requested_time=3599),
        finished(100, requested_time=14_401),
        replace(like, request=replace(like.request, project="other")),
        replace(like, start_time=None),
    ]
    assert like_jobs([*others, like], request) == [like]
