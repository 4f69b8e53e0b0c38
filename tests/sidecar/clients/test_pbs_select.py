"""What jobs of PBS ask of hosts, and have of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.clients.cluster import AskedChunks, HeldNode
from foretime_sidecar.clients.pbs.json import parse_queue, parse_vnodes
from foretime_sidecar.clients.pbs.select import (
    held_vnodes,
    parse_asked,
    parse_select,
    vnodes_of,
)
from foretime_sim.workloads.node_request import HostChunk

GIB = 2**30


@pytest.mark.parametrize(
    ("select", "place", "asked"),
    [
        ("1:ncpus=4", "free", AskedChunks((HostChunk(1, 4),))),
        ("ncpus=4", "", AskedChunks((HostChunk(1, 4),))),
        (
            "2:ncpus=8:mem=4gb+1:ncpus=1:ngpus=2",
            "scatter:excl",
            AskedChunks((HostChunk(2, 8, 4 * GIB), HostChunk(1, 1, 0, 2)), "scatter", True),
        ),
        (
            "3:ncpus=2:mpiprocs=2:ompthreads=1",
            "pack:shared",
            AskedChunks((HostChunk(3, 2),), "pack"),
        ),
        (
            "1:ncpus=2:host=n1+1:ncpus=2:host=n2",
            "vscatter:group=rack",
            AskedChunks(
                (HostChunk(1, 2), HostChunk(1, 2)),
                "scatter",
                not_modelled=("host of chunks", "place=vscatter", "place=group=rack"),
            ),
        ),
    ],
)
def test_select_and_place_are_read(select: str, place: str, asked: AskedChunks) -> None:
    assert parse_select(select, place) == asked


@pytest.mark.parametrize("select", ["two:ncpus=1", "1:ncpus=many", "1:mem=4 gb"])
def test_what_can_not_be_read_is_refused(select: str) -> None:
    with pytest.raises(InputError, match="select"):
        parse_select(select, "free")


def test_what_users_write_has_a_cpu_in_each_chunk() -> None:
    asked = parse_asked("2:mem=4gb+3+ncpus=8:ngpus=1", "scatter:excl")
    chunks = HostChunk(2, 1, 4 * GIB), HostChunk(3, 1), HostChunk(1, 8, 0, 1)
    assert asked == AskedChunks(chunks, "scatter", exclusive=True)
    odd = parse_asked("1:ncpus=2:host=n1", "group=rack")
    assert odd.not_modelled == ("host of chunks", "place=group=rack")


@pytest.mark.parametrize(
    ("select", "place", "said"),
    [
        ("two:ncpus=1", None, "'two:ncpus=1' is no chunk; write NUMBER:ncpus=8:mem=4gb"),
        ("ncpus=4:2", None, "'ncpus=4:2' is no chunk"),
        ("2:ncpus", None, "'2:ncpus' is no chunk"),
        ("1:ncpus=4++1", None, "'' is no chunk"),
        ("1:ncpus=many", None, "select = '1:ncpus=many': select 1:ncpus=many: ncpus: 'many'"),
        ("1:mem=4zb", None, "'4zb'.*; write NUMBER:ncpus=8:mem=4gb"),
        ("0:ncpus=4", None, "asks for 0 CPUs; ask for 1 to"),
        ("9999999999:ncpus=9999", None, "CPUs; ask for 1 to"),
        ("1:ncpus=4", "scater", "place = 'scater': 'scater' is no place; write free, pack,"),
        ("1:ncpus=4", "scatter:", "'' is no place"),
    ],
)
def test_what_qsub_would_not_take_is_refused(select: str, place: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_asked(select, place)


def test_vnodes_of_a_running_job_are_added_up() -> None:
    text = "(n1:ncpus=3:mem=4gb)+(n1:ncpus=3+n2:ncpus=1:ngpus=1)"
    assert held_vnodes(text, "1") == (HeldNode("n1", 6, 4096), HeldNode("n2", 1, 0, 1))
    assert vnodes_of(text, "1")["n1"] == {"ncpus": 6, "mem": 4 * GIB}


def test_jobs_and_hosts_of_a_real_server_are_read(repository: Path) -> None:
    recorded = repository / "tests/assets/pbs/recorded"
    jobs = {job.request.job_id: job for job in parse_queue((recorded / "qstat.json").read_text())}
    running = jobs["8.pbs01"]
    assert running.chunks == AskedChunks((HostChunk(1, 4),), project="physics")
    assert running.has_nodes == (HeldNode("pbs01", 4),)
    waiting = jobs["11.pbs01"]
    assert waiting.chunks is not None
    assert (waiting.chunks.chunks, waiting.has_nodes) == ((HostChunk(1, 8),), ())
    assert parse_vnodes((recorded / "pbsnodes.json").read_text())[1] == frozenset()


def test_a_job_whose_select_can_not_be_read_is_in_the_queue(repository: Path) -> None:
    text = (repository / "tests/assets/pbs/recorded/qstat.json").read_text()
    odd = text.replace('"1:ncpus=8"', '"many:ncpus=8"')
    assert odd != text
    jobs = {job.request.job_id: job for job in parse_queue(odd)}
    assert jobs["11.pbs01"].chunks is None
    assert len(jobs) == len(parse_queue(text))
