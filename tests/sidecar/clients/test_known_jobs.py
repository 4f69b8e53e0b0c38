"""Jobs of which a reply tells nothing new, which are not read again."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.clients.slurm.json import decoded
from foretime_sidecar.clients.slurm.queue_json import KnownJobs, parse_queue


@pytest.fixture(params=["22.05", "26.05"])
def reply(request: pytest.FixtureRequest, repository: Path) -> dict[str, Any]:
    text = (repository / f"tests/assets/slurm/{request.param}/squeue.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def _read(reply: object, known: KnownJobs | None = None) -> tuple[QueuedJob, ...] | str:
    try:
        return parse_queue(reply, known=known)
    except SchedulerError as error:
        return str(error)


def test_a_job_of_which_nothing_is_new_is_the_same_object(reply: dict[str, Any]) -> None:
    known = KnownJobs()
    before = parse_queue(reply, known=known)
    after = parse_queue(json.loads(json.dumps(reply)), known=known)
    assert len(before) > 5
    assert after == before == parse_queue(reply)
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_whatever_is_told_of_a_job_it_is_read_as_if_it_were_new(reply: dict[str, Any]) -> None:
    """Each field of each job takes the value that it has of another job."""
    jobs, tried = reply["jobs"], 0
    for place, job in enumerate(jobs):
        others = [other for other in jobs if other["job_state"] != job["job_state"]][:2]
        for name in job:
            for other in others:
                if other.get(name, job[name]) == job[name]:
                    continue
                tried += 1
                changed = [*jobs[:place], {**job, name: other[name]}, *jobs[place + 1 :]]
                known = KnownJobs()
                _read(reply, known)
                assert _read({"jobs": changed}, known) == _read({"jobs": changed}), name
    assert tried > 50


def test_a_job_that_is_gone_is_not_kept(reply: dict[str, Any]) -> None:
    known = KnownJobs()
    before = parse_queue(reply, known=known)
    assert parse_queue({"jobs": []}, known=known) == ()
    again = parse_queue(reply, known=known)
    assert again == before
    assert not any(one is other for one, other in zip(before, again, strict=True))


@pytest.mark.parametrize("indent", [None, 1])
def test_a_text_is_read_as_what_it_says(reply: dict[str, Any], indent: int | None) -> None:
    text = json.dumps(reply, indent=indent).encode()
    assert parse_queue(text) == parse_queue(reply)


def test_of_a_text_too_a_job_of_which_nothing_is_new_is_the_same_object(
    reply: dict[str, Any],
) -> None:
    known = KnownJobs()
    before = parse_queue(json.dumps(reply).encode(), known=known)
    for job in reply["jobs"]:
        job["last_sched_evaluation"] = 17  # which nobody reads
    after = parse_queue(json.dumps(reply).encode(), known=known)
    assert after == before
    assert all(one is other for one, other in zip(before, after, strict=True))


def test_whatever_a_text_tells_of_a_job_it_is_read_as_if_it_were_new(
    reply: dict[str, Any],
) -> None:
    """Each field of each job takes the value that it has of another job."""
    jobs, tried = reply["jobs"], 0
    known = KnownJobs()
    for place, job in enumerate(jobs):
        other = next(other for other in jobs if other["job_state"] != job["job_state"])
        for name in job:
            if other.get(name, job[name]) == job[name]:
                continue
            tried += 1
            changed = [*jobs[:place], {**job, name: other[name]}, *jobs[place + 1 :]]
            text = json.dumps({"jobs": changed}).encode()
            assert _read(text, known) == _read({"jobs": changed}), name
    assert tried > 50


@pytest.mark.parametrize(
    "value",
    [
        *("7", 7.0, 7.5, True, None, [], {}, -7, 2**70),
        {"set": True, "number": 7},
        {"set": 1, "infinite": 0, "number": 7.0, "more": 1},
        {"set": True, "infinite": True, "number": 7},
        {"set": True, "number": "7"},
    ],
)
def test_whatever_stands_in_the_place_of_a_number_a_text_is_read_as_what_it_says(
    reply: dict[str, Any], value: object
) -> None:
    numbers = [
        name
        for name, told in reply["jobs"][0].items()
        if isinstance(told, int) or (isinstance(told, dict) and "set" in told)
    ]
    assert len(numbers) > 20
    for name in numbers:
        jobs = [{**job, name: value} for job in reply["jobs"][:2]] + reply["jobs"][2:]
        assert _read(json.dumps({"jobs": jobs}).encode()) == _read({"jobs": jobs}), name


@pytest.mark.parametrize(
    "nodes",
    [
        *(None, {}, [], 17, "n1", {"allocation": None}, {"allocation": []}, {"allocation": [17]}),
        {"allocation": [{"name": "n1"}]},
        {"allocation": [{"name": 17, "cpus": {"count": 4.0}, "memory": {"allocated": None}}]},
        {
            "allocation": [
                {"name": "n1", "cpus": {"count": {"set": True, "number": 4}}, "memory": {}},
            ]
        },
    ],
)
def test_whatever_nodes_a_job_has_a_text_is_read_as_what_it_says(
    reply: dict[str, Any], nodes: object
) -> None:
    for job in reply["jobs"]:
        job["job_resources"] = {"nodes": nodes, "cpus": 4}
    assert _read(json.dumps(reply).encode()) == _read(reply)


def test_bytes_of_a_job_that_are_no_text_are_replaced(reply: dict[str, Any]) -> None:
    for job in reply["jobs"]:
        job["name"] = "odd?name"
    text = json.dumps(reply).encode().replace(b"odd?name", b"odd\xffname")
    assert {job.name for job in parse_queue(text)} == {"odd\ufffdname"}


@pytest.mark.parametrize(
    "text",
    [
        '{"jobs": [], "errors": [{"error": "slurmctld is down"}]}',
        '{"errors": []}',
        '{"jobs": {}}',
        '{"jobs": [17]}',
        '{"jobs": [{}]}',
        '{"jobs": [{"job_state": "PENDING"}]}',
        '{"jobs": [], "jobs": 17}',
    ],
)
def test_a_text_of_an_unknown_shape_is_told_as_what_it_says(text: str) -> None:
    said = _read(json.loads(text))
    assert isinstance(said, str)
    assert _read(text.encode()) == said


@pytest.mark.parametrize(
    "text", ['{"name": "\\ud800", "n": [1, 2.5, null, true, 184467440737095516160]}', "[]", "NaN"]
)
def test_json_is_decoded_as_the_standard_library_does(text: str) -> None:
    assert repr(decoded(text.encode(), "squeue")) == repr(json.loads(text))
    assert gc.isenabled()


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert decoded(b'"\xff"', "squeue") == "\ufffd"


@pytest.mark.parametrize(
    "text", ["", "CLUSTER: main\n{}", '{"jobs": [', '{"jobs": [{"job_id": x}]}']
)
def test_what_is_no_json_is_refused(text: str) -> None:
    for read in (decoded, parse_queue):
        with pytest.raises(SchedulerError, match="squeue did not print JSON"):
            read(text.encode(), "squeue")
    assert gc.isenabled()
