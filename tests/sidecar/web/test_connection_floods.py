"""Many slow connections to the daemon as a process of its own: others are answered all the same."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from foretime_sidecar.web.auth.identity import name_of
from foretime_sidecar.web.connections.connection_places import PROXIES, USERS

from tests.support.processes.daemon_process import (
    SERVE,
    fake_slurm,
    needs_root,
    open_folder,
    wait_for_poll,
    wait_until_it_listens,
    write_settings,
)
from tests.support.processes.raw_http import Address, exchange, head, statuses

pytestmark = needs_root
FLOODER, OTHER, NOBODY = 2001, 2002, 65534
IN_BETWEEN = 64  # connections accepted or closed just now
# Becomes another user once everything is imported, as that one may not be able to read it.
WAIT = """
import os, sys, encodings.idna, encodings.utf_8_sig
import typer
from foretime_sidecar.cli.site_commands.wait import wait
import foretime_sidecar.forecast_answer.advice, rich.console, rich.table, tenacity
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
typer.run(wait)
"""
GET = """
import contextlib, encodings.idna, os, socket, sys
os.setgroups([]); os.setgid({uid}); os.setuid({uid})
where = sys.argv[1]
connection = socket.socket(socket.AF_INET if where.isdigit() else socket.AF_UNIX)
connection.connect(("127.0.0.1", int(where)) if where.isdigit() else where)
head = b"GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n"
with contextlib.suppress(BrokenPipeError, ConnectionResetError):
    connection.sendall(head)
    sys.stdout.write(connection.recv(100).decode()[9:12])
"""


class Served:
    """A daemon that answers on a socket or on a port."""

    def __init__(self, process: subprocess.Popen[str], settings: Path, where: str) -> None:
        self.process = process
        self.settings = settings
        self.where = where  # a socket's path, or a port
        self.address: Address = ("127.0.0.1", int(where)) if where.isdigit() else Path(where)
        self.seen = psutil.Process(process.pid)

    def health(self) -> list[int]:
        """Ask as the daemon's own user."""
        return statuses(exchange(self.address, head("/healthz", "Connection: close")))

    def wait_for_health_by(self, uid: int) -> None:
        """Ask as somebody whose own flood may close the connection before they have asked."""
        deadline = time.monotonic() + 60
        while run_as(uid, GET, self.where) != "200":
            assert time.monotonic() < deadline

    def health_by(self, uid: int) -> str:
        """Ask as somebody; give the status."""
        return run_as(uid, GET, self.where)

    @contextlib.contextmanager
    def flooded(self, uid: int, number: int) -> Iterator[None]:
        """Have a user hold slow connections."""
        child = Path(__file__).parents[2] / "support" / "processes" / "flooding_child.py"
        command = [sys.executable, "-I", str(child), str(uid), str(number), self.where]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as flood:
            assert flood.stdout is not None
            assert flood.stdout.readline() == "ready\n"
            yield
            flood.communicate()

    def sockets(self) -> int:
        """Count its open sockets."""
        return len(self.seen.net_connections("all"))

    def wait_for_sockets(self, least: int, most: int) -> None:
        """Wait until at least and at most so many are open."""
        deadline = time.monotonic() + 60
        while not least <= (found := self.sockets()) <= most:
            assert time.monotonic() < deadline, found
            time.sleep(0.1)


def run_as(uid: int, program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program.format(uid=uid), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextlib.contextmanager
def served(
    folder: Path, repository: Path, listen: str = "", **api: str | list[str]
) -> Iterator[Served]:
    fake_slurm(folder, repository)
    listen = listen or f"unix:{folder}/foretime.sock"
    settings = write_settings(folder, listen=listen, **api)
    settings.chmod(0o644)
    command = [sys.executable, "-c", SERVE, "--settings", str(settings)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        if listen.startswith("unix:"):
            path = Path(listen.removeprefix("unix:"))
            wait_until_it_listens(path, process)
            wait_for_poll(path)
            yield Served(process, settings, str(path))
        else:
            yield Served(process, settings, listen.rpartition(":")[2])
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
        assert "Traceback" not in said
        # Nobody can fill the log. It tells of an answer that the recorded Slurm lacks, and of a
        # busy machine's slow ones, as often as it looks at most.
        expected = (
            "WARNING forecasts do without the nodes ",
            "WARNING the site of Slurm was not read, ",
            "WARNING looks at the scheduler are ",
            "WARNING finished jobs are read ",
        )
        assert all(line.startswith(expected) for line in said.splitlines()), said
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@pytest.fixture(scope="module", params=["socket", "port"])
def daemon(request: pytest.FixtureRequest, repository: Path) -> Iterator[Served]:
    listen = f"127.0.0.1:{free_port()}" if request.param == "port" else ""
    with open_folder() as folder, served(folder, repository, listen) as daemon:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(ConnectionRefusedError):
                if daemon.health() == [200]:
                    break
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield daemon


@pytest.mark.parametrize("number", [32, 64, 500])
def test_a_users_slow_connections_shut_nobody_out(daemon: Served, number: int) -> None:
    before = daemon.sockets()
    with daemon.flooded(FLOODER, number):
        assert daemon.health_by(OTHER) == "200"
        assert daemon.health() == [200]  # by the daemon's own user
        where = ["--socket", daemon.where]
        if daemon.where.isdigit():
            where = ["--settings", str(daemon.settings)]
        said = run_as(OTHER, WAIT, "-n", "1", "-t", "60", "--json", *where)
        assert json.loads(said)["requested_time_s"] == 3600
        assert daemon.sockets() <= before + USERS.of_one + IN_BETWEEN
    daemon.wait_for_sockets(1, before)
    assert daemon.health() == [200]


def test_many_users_slow_connections_shut_nobody_out(daemon: Served) -> None:
    before = daemon.sockets()
    with contextlib.ExitStack() as floods:
        for index in range(12):
            floods.enter_context(daemon.flooded(3000 + index, 2 * USERS.of_one))
        assert daemon.sockets() <= before + USERS.of_all + IN_BETWEEN
        assert daemon.health_by(OTHER) == "200"
        assert daemon.health() == [200]
    daemon.wait_for_sockets(1, before)


def test_a_proxy_is_many_callers(folder: Path, repository: Path) -> None:
    with served(folder, repository, proxy_users=[str(name_of(NOBODY))]) as daemon:
        before = daemon.sockets()
        with daemon.flooded(NOBODY, PROXIES.of_one):
            daemon.wait_for_sockets(2 * USERS.of_one, before + PROXIES.of_one)
            assert daemon.health_by(OTHER) == "200"
        with daemon.flooded(NOBODY, 2 * PROXIES.of_one):
            assert daemon.sockets() <= before + PROXIES.of_one + IN_BETWEEN
            for uid in (OTHER, 0):
                assert daemon.health_by(uid) == "200"
            daemon.wait_for_health_by(NOBODY)
