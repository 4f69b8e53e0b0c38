"""A reply of squeue that is read while it is printed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.clients.slurm import queue_json
from foretime_sidecar.clients.slurm.queue_json import KnownJobs, parse_queue, read_in_pieces
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


@pytest.fixture(params=["22.05", "26.05"])
def reply(request: pytest.FixtureRequest, repository: Path) -> dict[str, Any]:
    text = (repository / f"tests/assets/slurm/{request.param}/squeue.json").read_text()
    found: dict[str, Any] = json.loads(text)
    return found


def _pieces(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _parsed(reply: object) -> tuple[QueuedJob, ...] | str:
    try:
        return parse_queue(reply)
    except SchedulerError as error:
        return re.sub(r"line \d+ column \d+ \(char \d+\)", "somewhere", str(error))


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_most_of_a_reply_is_read_before_it_ends(
    reply: dict[str, Any], indent: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_json, "_DECODED_BYTES", 20_000)
    text = json.dumps(reply, indent=indent).encode()
    read = read_in_pieces(_pieces(text, 4_000), KnownJobs())
    assert parse_queue(read) == parse_queue(text)
    assert len(read.jobs) >= len(reply["jobs"]) // 2
    assert len(read.rest) < len(text) / 2


def test_what_is_told_as_before_is_in_memory_once(
    reply: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_json, "_DECODED_BYTES", 1)
    known = KnownJobs()
    before = read_in_pieces(_pieces(json.dumps(reply).encode(), 3_000), known)
    parse_queue(before, known=known)
    reply["jobs"][0]["comment"] = "new"
    after = read_in_pieces(_pieces(json.dumps(reply).encode(), 3_000), known)
    same = [one is other for one, other in zip(before.jobs, after.jobs, strict=True)]
    assert same == [False] + [True] * (len(same) - 1)
    assert len(same) > 5


_NASTY = st.sampled_from([
    '},{"account":"a"', '"jobs": [{"account": 1', "\\", '\\"', "}, {", "\n", "é\ud83d", "]}",
])  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(data=st.data())
def test_however_it_comes_it_is_read_as_what_it_says(
    repository: Path, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    """Whatever jobs have in their texts, and objects in them that begin as jobs do."""
    text = (repository / "tests/assets/slurm/26.05/squeue.json").read_text()
    reply = json.loads(text)
    reply["meta"] = data.draw(st.sampled_from([{}, {"jobs": []}, {"jobs": [{"account": "a"}]}]))
    jobs = reply["jobs"]
    for job in data.draw(st.lists(st.sampled_from(jobs), max_size=4)):
        job["name"] = data.draw(_NASTY)
        nested = {"account": 1, "job_id": 7, "more": [[{"account": 2}, {"account": 3}]]}
        job["gres_detail"] = data.draw(st.sampled_from([[], [nested, nested]]))
        job["job_state"] = data.draw(st.sampled_from([job["job_state"], 3.5, ["GONE"]]))
    spaces = data.draw(st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]))
    printed = json.dumps(reply, separators=spaces).encode()
    printed = printed[: data.draw(st.sampled_from([None, -1, len(printed) // 2]))]
    monkeypatch.setattr(queue_json, "_DECODED_BYTES", data.draw(st.integers(1, 50_000)))
    pieces = _pieces(printed, data.draw(st.integers(500, 100_000)))
    assert _parsed(read_in_pieces(pieces, KnownJobs())) == _parsed(printed)


def test_bytes_that_are_no_text_are_replaced(
    reply: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_json, "_DECODED_BYTES", 1)
    for job in reply["jobs"]:
        job["name"] = "odd?name"
    text = json.dumps(reply).encode().replace(b"odd?name", b"odd\xffname")
    jobs = parse_queue(read_in_pieces(_pieces(text, 3_000), KnownJobs()))
    assert {job.name for job in jobs} == {"odd\ufffdname"}


@pytest.mark.parametrize("text", ["", "[]", '{"jobs": []}', '{"jobs": 7}', '{"errors": [{}]}'])
def test_short_and_odd_replies_are_told_as_what_they_say(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_json, "_DECODED_BYTES", 1)
    assert _parsed(read_in_pieces([text.encode()], KnownJobs())) == _parsed(text.encode())
