"""Clients that send or read slowly, or not at all: what they hold, they hold for a while only."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foretime_sidecar.web.connections import peer_protocol
from foretime_sidecar.web.connections.connection_places import OPERATORS
from foretime_sidecar.web.connections.peer_protocol import PeerProtocol
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

from tests.support.processes.raw_http import (
    TIMEOUT_S,
    Address,
    connected,
    exchange,
    head,
    read_all,
    statuses,
)
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
SOON_S = 0.5  # instead of the deadlines
LARGE = "/openapi.json"


@pytest.fixture(scope="module", params=["socket", "port"])
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MockSite]:
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    api = {"listen": "127.0.0.1:0"} if request.param == "port" else {}
    with MockSite(tmp_path_factory.mktemp("slow"), slurm, api=api) as site:
        yield site


@pytest.fixture
def address(site: MockSite) -> Address:
    if site.listen.startswith("unix:"):
        return site.socket_path
    host, _, port = site.listen.rpartition(":")
    return host, int(port)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_protocol, "HEAD_S", SOON_S)
    monkeypatch.setattr(peer_protocol, "READ_S", SOON_S)
    monkeypatch.setattr(peer_protocol, "LEAST_READ_BYTES_PER_S", 100_000_000)


@contextlib.contextmanager
def asleep(site: MockSite) -> Iterator[None]:
    """Let the daemon take no connection meanwhile.

    What is sent by the end has come before any deadline runs, however slow this machine is.
    """
    (server,) = site.daemon._server.servers
    sleeps, wake = threading.Event(), threading.Event()

    def sleep() -> None:
        sleeps.set()
        wake.wait()

    server.get_loop().call_soon_threadsafe(sleep)
    sleeps.wait()
    try:
        yield
    finally:
        wake.set()


def held(site: MockSite) -> int:
    return len(site.daemon._server.server_state.connections)


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def dribble(connection: socket.socket, text: bytes) -> None:
    """Send a byte at a time until the daemon has enough of it."""
    deadline = time.monotonic() + 60
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        for byte in itertools.cycle(text):
            assert time.monotonic() < deadline
            connection.sendall(bytes((byte,)))
            time.sleep(0.02)


@pytest.mark.usefixtures("soon")
def test_a_head_in_single_bytes_has_one_deadline(site: MockSite, address: Address) -> None:
    with contextlib.ExitStack() as stack:
        with asleep(site):
            connection = stack.enter_context(connected(address))
            connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
        dribble(connection, b"slow")
        answer = read_all(connection)
        # Lost, if the connection was reset before it is read.
        assert statuses(answer) in ([408], [])
    wait_until(lambda: held(site) == 0)


@pytest.mark.usefixtures("soon")
def test_who_sends_nothing_more_is_told(site: MockSite, address: Address) -> None:
    with contextlib.ExitStack() as stack:
        with asleep(site):
            connection = stack.enter_context(connected(address))
            connection.sendall(b"GET /healthz HTT")
        answer = read_all(connection)
    assert statuses(answer) == [408]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["where"] == "connection"
    with connected(address) as silent:
        assert read_all(silent) == b""
    assert held(site) == 0


@pytest.mark.usefixtures("soon")
def test_a_byte_does_not_keep_an_idle_connection(site: MockSite, address: Address) -> None:
    """uvicorn's own timer ends with the first byte of a next request."""
    with contextlib.ExitStack() as stack:
        with asleep(site):
            connection = stack.enter_context(connected(address))
            connection.sendall(head("/healthz"))
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200")
        connection.sendall(b"G")
        assert statuses(read_all(connection)) == [408]
    wait_until(lambda: held(site) == 0)


@pytest.mark.usefixtures("soon")
def test_half_a_request_behind_a_whole_one_does_not_either(
    site: MockSite, address: Address
) -> None:
    with contextlib.ExitStack() as stack:
        with asleep(site):
            connection = stack.enter_context(connected(address))
            connection.sendall(head("/healthz") + b"GET /hea")
        assert statuses(read_all(connection))[0] == 200


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("reads", [0, 1])
def test_who_does_not_read_holds_nothing_for_long(
    site: MockSite, address: Address, reads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a connection nor an answer, nor a thread; a byte now and then is no reading."""
    unread: set[PeerProtocol] = set()
    pause_writing = PeerProtocol.pause_writing

    def noted(connection: PeerProtocol) -> None:
        unread.add(connection)
        pause_writing(connection)

    monkeypatch.setattr(PeerProtocol, "pause_writing", noted)
    with contextlib.ExitStack() as stack:
        with asleep(site):
            slow = [stack.enter_context(connected(address)) for _ in range(8)]
            for connection in slow:
                connection.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    for _ in range(200):
                        connection.send(head(LARGE) * 10)
        deadline = time.monotonic() + 60
        # What they have not read is theirs no more, though they are still there.
        while len(unread) < len(slow) or held(site):
            assert time.monotonic() < deadline
            for connection in slow:
                with contextlib.suppress(BlockingIOError, ConnectionResetError):
                    connection.recv(reads or 0)
            time.sleep(0.05)
    monkeypatch.undo()  # who reads may take their time
    assert statuses(exchange(address, head("/healthz", "Connection: close"))) == [200]


def test_who_reads_in_time_gets_all(address: Address) -> None:
    """However much of it comes at a time."""
    number = 40
    with connected(address) as connection:
        connection.sendall(head(LARGE) * (number - 1) + head(LARGE, "Connection: close"))
        time.sleep(0.2)
        answer = b""
        while piece := connection.recv(10_000):
            answer += piece
    assert statuses(answer) == [200] * number


def test_an_answer_is_not_cut_by_the_time_for_requests(
    site: MockSite, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the daemon itself takes."""
    monkeypatch.setattr(peer_protocol, "HEAD_S", 0.2)
    with contextlib.ExitStack() as stack:
        with site.daemon.sidecar.lock:
            with asleep(site):
                connection = stack.enter_context(connected(address))
                connection.sendall(head("/v1/accuracy", "Connection: close"))
            wait_until(lambda: len(site.daemon._server.server_state.tasks) == 1)
            connection.settimeout(5 * peer_protocol.HEAD_S)
            with pytest.raises(TimeoutError):
                connection.recv(1)
        connection.settimeout(TIMEOUT_S)
        assert statuses(read_all(connection)) == [200]


def test_who_has_all_places_at_work_is_told(site: MockSite, address: Address) -> None:
    """As what is being answered makes no room."""
    with contextlib.ExitStack() as stack:
        working = [stack.enter_context(connected(address)) for _ in range(OPERATORS.of_one)]
        with site.daemon.sidecar.lock:
            for connection in working:
                connection.sendall(head("/v1/accuracy", "Connection: close"))
            wait_until(lambda: len(site.daemon._server.server_state.tasks) == len(working))
            answer = exchange(address, head("/v1/accuracy"))
            health = exchange(address, head("/healthz", "Connection: close"))
        assert statuses(answer) == [503]
        assert statuses(health) == [200]
        assert b"retry-after: 1" in answer.lower()
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert error["where"] == "connection"
        assert [statuses(read_all(each)) for each in working] == [[200]] * len(working)


def test_the_deadlines_are_those_of_the_documents(repository: Path) -> None:
    text = (repository / "docs/api.md").read_text()
    for value in (
        f"{peer_protocol.HEAD_S:.0f} s",
        f"{peer_protocol.READ_S:.0f} s",
        f"{peer_protocol.LEAST_READ_BYTES_PER_S // 1024} KiB a second",
    ):
        assert value in text, value
