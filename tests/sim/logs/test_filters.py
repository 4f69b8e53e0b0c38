"""Filters on small logs: every reason, and a remedy in every refusal."""

from __future__ import annotations

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.logs.filters import Filters, repeated_numbers, workload_of_log
from foretime_sim.logs.swf import parse_swf
from foretime_sim.workloads.job_log import JobLog


def job(
    number: int = 1,
    submit: int = 0,
    runtime: int = 100,
    allocated: int = 4,
    requested: int = 4,
    limit: int = 200,
    status: int = 1,
) -> str:
    return (
        f"{number} {submit} -1 {runtime} {allocated} -1 -1 {requested} {limit} -1 {status} "
        "1 1 -1 -1 3 -1 -1"
    )


def log(*jobs: str, header: str = "; MaxProcs: 16\n") -> JobLog:
    return parse_swf(header + "\n".join(jobs), source="x.swf")


def test_numbers_that_are_there_twice_are_told() -> None:
    parts = (job(7), job(7, status=2), job(7, status=3))
    for jobs, note in (
        ((job(1), job(2), *parts), []),
        ((job(1), job(1), *parts), ["1 job has a number that another has"]),
        ((job(1), job(1), job(1), job(2), job(2)), ["3 jobs have numbers that others have"]),
    ):
        said = [f"{words}: run again, or a part of the log is there twice" for words in note]
        assert repeated_numbers(log(*jobs)) == said
        assert list(workload_of_log(log(*jobs))[1].notes) == said


def test_every_reason_counts_once_and_in_order() -> None:
    workload, report = workload_of_log(
        log(
            job(1),
            job(1, status=3),
            job(2, submit=-1, runtime=0),
            job(3, allocated=-1, requested=-1),
            job(4, requested=17),
            job(5, allocated=17),
            job(6, runtime=-1),
            job(7, runtime=0),
            job(8, limit=-1),
            job(9, requested=-1),
            job(10, allocated=-1),
            job(11, runtime=300),
        )
    )
    assert report.dropped == (
        ("part of a job that is listed as a whole", 1),
        ("no submit time", 1),
        ("no processors", 1),
        ("more than 16 processors", 2),
        ("no runtime", 1),
        ("runtime of 0 s", 1),
        ("no requested time", 1),
    )
    assert workload.job_id.tolist() == [1, 9, 10, 11]
    assert workload.actual_runtime.tolist() == [100, 100, 100, 200]
    assert workload.queues is not None
    assert workload.queues.get(0) == "partition3"
    assert "1 job dropped: no runtime" in report.text


def test_jobs_that_run_for_centuries_are_dropped() -> None:
    days, centuries = 3_650 * 86_400, 10**10
    jobs = log(
        job(1, runtime=days, limit=days),
        job(2, runtime=days + 1, limit=centuries),
        job(3, runtime=centuries, limit=centuries),
        job(4, runtime=centuries, limit=3_600),
        job(5, limit=centuries),
    )
    workload, report = workload_of_log(jobs)
    assert workload.job_id.tolist() == [1, 4, 5]
    assert "2 jobs dropped: runtime over 3,650 days" in report.text
    workload, report = workload_of_log(jobs, filters=Filters(overruns="keep"))
    assert workload.job_id.tolist() == [1, 5]
    with pytest.raises(InputError, match=r"no job is left .*runtime over 3,650 days"):
        workload_of_log(log(job(3, runtime=centuries, limit=centuries)))


def test_overruns_can_be_kept() -> None:
    workload, _ = workload_of_log(log(job(runtime=300)), filters=Filters(overruns="keep"))
    assert workload.actual_runtime[0] == 300


def test_a_job_occupies_what_it_asked_for_or_what_it_got() -> None:
    one = log(job(requested=3, allocated=8))
    assert workload_of_log(one)[0].processors[0] == 3
    assert workload_of_log(one, filters=Filters(occupied="allocated"))[0].processors[0] == 8


def test_a_missing_request_is_refused_or_filled_in() -> None:
    one = log(job(limit=-1), job(2, limit=-1, runtime=5_000))
    with pytest.raises(InputError, match="--missing-request"):
        workload_of_log(one)
    workload, _ = workload_of_log(one, filters=Filters(missing_request=3_600))
    assert workload.requested_time.tolist() == [3_600, 3_600]
    assert workload.actual_runtime.tolist() == [100, 3_600]
    workload, _ = workload_of_log(one, filters=Filters(missing_request="runtime"))
    assert workload.requested_time.tolist() == [100, 5_000]


def test_an_unknown_machine_and_an_empty_result_are_refused() -> None:
    with pytest.raises(InputError, match=r"--processors \(its largest job has 4\)"):
        workload_of_log(log(job(), header=""))
    assert workload_of_log(log(job(), header=""), processors=8)[0].machine_processors == 8
    with pytest.raises(InputError, match="no job is left"):
        workload_of_log(log(job(runtime=0)))
    with pytest.raises(InputError, match="--processors 0"):
        workload_of_log(log(job()), processors=0)
