"""What estimators are told, in which order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from foretime_estimators.estimators.estimator import StartObserver
from foretime_estimators.estimators.job_events import learn_history, tell
from foretime_estimators.estimators.last_two import LastTwo
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest


class Diary:
    """Writes down what it is told and asked."""

    oracle = False

    def __init__(self) -> None:
        self.told: list[str] = []

    def predict_one(self, job: JobRequest, now: int) -> int:
        self.told.append(f"asked {job.job_id} {now}")
        return job.requested_time

    def start_one(self, job: JobRequest, start_time: int) -> None:
        self.told.append(f"start {job.job_id} {start_time}")

    def learn_one(self, job: FinishedJob) -> None:
        self.told.append(f"end {job.request.job_id} {job.end_time}")

    def state(self) -> dict[str, Any]:
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        pass


def ran(number: int, submit: int, start: int | None, end: int) -> FinishedJob:
    request = JobRequest(str(number), "u", None, 1, 1_000, submit)
    runtime = 0 if start is None else end - start
    ending = Ending.NEVER_STARTED if start is None else Ending.COMPLETED
    return FinishedJob(request, start, end, runtime, ending)


FIRST = ran(1, 0, 0, 100)
SECOND = ran(2, 10, 100, 150)
INSTANT = ran(3, 20, 100, 100)
NEVER = ran(4, 30, None, 100)


def test_a_start_in_the_second_of_an_end_is_told_after_it_unless_it_is_its_own() -> None:
    diary = Diary()
    assert isinstance(diary, StartObserver)
    started = [(SECOND.request, 100), (INSTANT.request, 100), (ran(5, 0, 120, 9).request, 120)]
    tell(diary, [(FIRST.request, 0)], [])
    tell(diary, started, [FIRST, INSTANT, SECOND])
    assert diary.told == [
        "start 1 0", "end 1 100", "start 2 100", "start 3 100", "end 3 100", "start 5 120",
        "end 2 150",
    ]  # fmt: skip


def test_history_is_gone_through_as_it_happened() -> None:
    diary = Diary()
    learn_history(diary, [SECOND, INSTANT, NEVER, FIRST])
    assert diary.told == [
        "asked 1 0", "start 1 0", "asked 2 10", "asked 3 20", "asked 4 30", "end 1 100",
        "start 2 100", "start 3 100", "end 3 100", "end 4 100", "end 2 150",
    ]  # fmt: skip


def test_one_that_observes_no_starts_only_learns(finished: Callable[..., FinishedJob]) -> None:
    estimator = LastTwo()
    assert not isinstance(estimator, StartObserver)
    late, early = finished(30, end_time=200), finished(10, end_time=100)
    learn_history(estimator, [late, early])
    assert [runtime for runtime, _ in estimator.recent("u")] == [10, 30]
    tell(estimator, [(late.request, 0)], [finished(50)])
    assert [runtime for runtime, _ in estimator.recent("u")] == [30, 50]
