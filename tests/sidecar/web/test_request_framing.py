"""What is not exactly one request without a body: refused, and the connection closed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from foretime_sidecar.web.connections.request_guard import MOST_HEAD_BYTES
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy

from tests.support.processes.raw_http import Address, exchange, head, statuses
from tests.support.slurm.mock_site import MockSite

NOW = 1_700_000_000
SECOND = head("/v1/me/forget", method="POST")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Address]]:
    """A daemon on a unix socket, and one on a port."""
    slurm = MockSlurm(SlurmSetup(64), Policy(), None, NOW)
    folders = tmp_path_factory.mktemp("socket"), tmp_path_factory.mktemp("port")
    with (
        MockSite(folders[0], slurm) as site,
        MockSite(folders[1], slurm, api={"listen": "127.0.0.1:0"}) as port_site,
    ):
        host, _, port = port_site.listen.rpartition(":")
        yield {"socket": site.socket_path, "port": (host, int(port))}


@pytest.mark.parametrize("where", ["socket", "port"])
@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param((["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\n"), 400),
        pytest.param((["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n"), 400),
        pytest.param((["Content-Length: 0", "Transfer-Encoding: chunked"], b"0\r\n\r\n"), 400),
        pytest.param((["Content-Length: 5", "Content-Length: 6"], b"hello"), 400),
        pytest.param((["Content-Length: 5, 6"], b"hello"), 400),
        pytest.param((["Content-Length: 0", "Content-Length: 5"], b"hello"), 400),
        pytest.param((["Content-Length: 5", "Content-Length: 5"], b"hello"), 413),
        pytest.param((["Content-Length: 5, 5"], b"hello"), 413),
        pytest.param((["Content-Length: -5"], b""), 400),
        pytest.param((["Content-Length: +5"], b"hello"), 400),
        pytest.param((["Content-Length: 0x5"], b"hello"), 400),
        pytest.param((["Content-Length: 5"], b"hello"), 413),
        pytest.param((["Content-Length: 99999999999"], b""), 413),
        pytest.param((["Transfer-Encoding: chunked"], b"0\r\n\r\n"), 413),
        pytest.param((["Transfer-Encoding: chunked"], b"zz\r\nhello\r\n0\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding: chunked"], b"5\r\nhelloX0\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding: chunked"], b"-1\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding: chunked"], b"5" * 30 + b"\r\n"), 400),
        pytest.param((["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding: xchunked"], b"0\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding : chunked"], b"0\r\n\r\n"), 400),
        pytest.param((["Transfer-Encoding: chunked", "Transfer-Encoding: x"], b"0\r\n\r\n"), 400),
        pytest.param((["Content-Length: 5", "Expect: 100-continue"], b""), 413),
    ],
    ids=str,
)
def test_a_body_ends_the_connection(
    addresses: dict[str, Address], where: str, sent: tuple[list[str], bytes], status: int
) -> None:
    """What comes after it is never taken for a request."""
    headers, body = sent
    for method in ("GET", "POST"):
        answer = exchange(
            addresses[where], head("/healthz", *headers, method=method) + body + SECOND
        )
        assert statuses(answer) == [status]
        error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
        assert list(error) == ["what", "where", "remedy"]
        assert b"connection: close" in answer.lower()


def test_no_body_is_a_body_of_no_length(addresses: dict[str, Address]) -> None:
    for headers in (["Content-Length: 0"], ["Content-Length: 00"], ["Content-Length: 0"] * 2):
        two = head("/healthz", *headers) + head("/healthz", "Connection: close")
        for address in addresses.values():
            assert statuses(exchange(address, two)) == [200, 200]


@pytest.mark.parametrize("kind", ["one header", "many headers", "address", "dribbled", "no end"])
def test_long_heads_are_refused(addresses: dict[str, Address], kind: str) -> None:
    long = "x" * MOST_HEAD_BYTES
    sent = {
        "one header": head("/healthz", f"X: {long}"),
        "many headers": head("/healthz", *(f"X{number}: {'x' * 100}" for number in range(400))),
        "address": head(f"/healthz?{long}"),
        "dribbled": head("/healthz", f"X: {long * 20}"),
        "no end": b"GET /" + long.encode() * 2,
    }[kind]
    for address in addresses.values():
        answer = exchange(address, sent)
        assert statuses(answer) in ([431], [400])
        assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])


def test_a_long_token_fits(addresses: dict[str, Address]) -> None:
    long = head("/healthz", f"Authorization: Bearer {'x' * 16_384}", "Connection: close")
    for address in addresses.values():
        assert statuses(exchange(address, long)) == [200]


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
        b"rubbish\r\n\r\n",
    ],
)
def test_what_is_no_http_is_refused(addresses: dict[str, Address], sent: bytes) -> None:
    for address in addresses.values():
        assert statuses(exchange(address, sent)) == [400]


def test_there_is_one_host(addresses: dict[str, Address]) -> None:
    for address in addresses.values():
        old = exchange(address, b"GET /healthz HTTP/1.0\r\n\r\n")
        assert statuses(old) == [421]
        assert statuses(exchange(address, b"GET /healthz HTTP/1.1\r\n\r\n")) == [400]
        two = head("/healthz", "Host: localhost", "Host: evil.example")
        assert statuses(exchange(address, two)) == [400]
        elsewhere = head("http://evil.example/healthz", "Connection: close")
        assert statuses(exchange(address, elsewhere)) == [404]
