"""Whose a TCP connection is, by sock_diag: of a real one, its ends open and closed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from typing import NoReturn

import pytest
from foretime_sidecar.web.connections.tcp_owner import tcp_owner

from tests.support.processes.daemon_process import needs_root

NOBODY = 65534
# Connects as another user, and closes when told.
CONNECT = """
import encodings.idna, os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[3])); os.setuid(int(sys.argv[3]))
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
sys.stdin.read()
"""


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_a_connection_of_our_own_is_ours(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"no {host} here")
    with listener, socket.create_connection(listener.getsockname()[:2]) as client:
        accepted, address = listener.accept()
        with accepted:
            server = accepted.getsockname()[:2]
            assert tcp_owner(address[:2], server) == os.geteuid()
            client.shutdown(socket.SHUT_WR)
            assert tcp_owner(address[:2], server) == os.geteuid()
            assert tcp_owner((host, 1), server) is None


@needs_root
def test_a_closed_connection_is_its_users_and_never_roots() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(60)
        host, port = listener.getsockname()
        arguments = [sys.executable, "-I", "-c", CONNECT, host, str(port), str(NOBODY)]
        with subprocess.Popen(arguments, stdin=subprocess.PIPE) as child:
            accepted, client = listener.accept()
            assert tcp_owner(client, (host, port)) == NOBODY
            child.communicate()
        with accepted:
            deadline = time.monotonic() + 60
            # The kernel says 0 of a socket without a process.
            while (owner := tcp_owner(client, (host, port))) is not None:
                assert owner == NOBODY
                assert time.monotonic() < deadline
                time.sleep(0.01)


def test_without_netlink_nobody_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: int) -> NoReturn:
        raise OSError(97, "Address family not supported by protocol")

    with monkeypatch.context() as patch:
        patch.setattr("socket.socket", refused)
        assert tcp_owner(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
