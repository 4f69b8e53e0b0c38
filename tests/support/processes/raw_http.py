"""HTTP byte for byte over a socket, as no client library would send it."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

TIMEOUT_S = 30
Address = Path | tuple[str, int]


def connected(address: Address) -> socket.socket:
    """Open a connection to a unix socket or a port."""
    family = socket.AF_UNIX if isinstance(address, Path) else socket.AF_INET
    connection = socket.socket(family)
    connection.settimeout(TIMEOUT_S)
    try:
        connection.connect(str(address) if isinstance(address, Path) else address)
    except OSError:
        connection.close()
        raise
    return connection


def head(target: str, *headers: str, method: str = "GET", version: str = "1.1") -> bytes:
    """Give a request's head, with ``Host: localhost`` unless a host is among the headers."""
    lines = [f"{method} {target} HTTP/{version}", *headers]
    if not any(line.lower().startswith("host:") for line in headers):
        lines.insert(1, "Host: localhost")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def exchange(address: Address, sent: bytes) -> bytes:
    """Send all and give all that comes back until the daemon closes."""
    with connected(address) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(sent)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """Read until the other end closes."""
    answer = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(65_536):
            answer += piece
    return answer


def statuses(answer: bytes) -> list[int]:
    """Give the status of every answer in what was read."""
    return [int(part[:3]) for part in answer.split(b"HTTP/1.1 ")[1:]]
