"""Only what a request waits for its answer counts, not what this machine needs for it."""

from __future__ import annotations

import contextlib
import http.server
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.pbs.commands import PbsProcesses
from foretime_sidecar.clients.request_time import RequestTime
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.pyslurm_client import PySlurm
from foretime_sidecar.clients.slurm.rest_connection import RestConnection

_WAIT_S = 1.0  # much longer than a busy machine lets both sides of a request queue at once
BURNS = """
import time
while time.process_time() < 0.5:
    pass
"""
Command = Callable[[str, str], Path]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Make a command of a shell script."""

    def make(name: str, script: str) -> Path:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return tmp_path

    return make


@pytest.fixture
def needs_schedstat() -> None:
    if not Path("/proc/thread-self/schedstat").exists():
        pytest.skip("this kernel does not tell how long tasks queue for a processor")


@contextlib.contextmanager
def busy_processor() -> Iterator[int]:
    """Keep one processor busy with others; gives its number."""
    number = min(os.sched_getaffinity(0))
    spin = f"import os\nos.sched_setaffinity(0, [{number}])\nwhile True: pass"
    others = [subprocess.Popen([sys.executable, "-c", spin]) for _ in range(3)]
    try:
        yield number
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_waiting_for_the_controller_counts(command: Command) -> None:
    asked = RequestTime()
    folder = command("squeue", f"sleep {_WAIT_S}")
    SubprocessRunner(str(folder), request_time=asked)(["squeue"])
    assert asked.controller_s > 0.8 * _WAIT_S
    assert asked.accounting_s == 0


def test_slurmdbd_is_not_slurmctld(command: Command) -> None:
    asked = RequestTime()
    command("sacct", f"sleep {_WAIT_S}")
    run = SubprocessRunner(str(command("sacctmgr", f"sleep {_WAIT_S}")), request_time=asked)
    for name in ("sacct", "sacctmgr"):
        run([name])
    assert asked.accounting_s > 1.6 * _WAIT_S
    assert asked.controller_s == 0


@pytest.mark.usefixtures("needs_schedstat")
def test_what_a_busy_machine_needs_for_a_command_does_not_count(command: Command) -> None:
    """squeue is quick and the service node slow: that is not the scheduler's time."""
    asked = RequestTime()
    with busy_processor() as number:
        pinned = f"import os\nos.sched_setaffinity(0, [{number}])\n{BURNS}"
        folder = command("squeue", f'exec "{sys.executable}" -c "{pinned}"')
        began = time.monotonic()
        SubprocessRunner(str(folder), request_time=asked)(["squeue"])
        took_s = time.monotonic() - began
    assert asked.controller_s < took_s / 4


def test_where_the_kernel_does_not_tell_all_of_it_counts(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(path: Path) -> bytes:
        raise FileNotFoundError(path)

    monkeypatch.setattr(Path, "read_bytes", closed)
    asked = RequestTime()
    folder = command("squeue", f"exec {sys.executable} -c '{BURNS}'")
    SubprocessRunner(str(folder), request_time=asked)(["squeue"])
    assert asked.controller_s > 0.5


def test_failures_and_every_attempt_count(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenacity.nap.time", SimpleNamespace(sleep=lambda seconds: None))
    asked = RequestTime()
    command("qstat", f"sleep {_WAIT_S}; exit 1")
    folder = command("pbsnodes", "exec sleep 60")
    with pytest.raises(SchedulerError, match="exit code 1"):
        PbsProcesses(str(folder), timeout_s=60, attempts=2, request_time=asked)(["qstat"])
    assert asked.controller_s > 1.6 * _WAIT_S
    before_s = asked.controller_s
    with pytest.raises(SchedulerError, match="did not answer"):
        PbsProcesses(str(folder), timeout_s=2, attempts=2, request_time=asked)(["pbsnodes"])
    assert asked.controller_s - before_s > 3.2


class _Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        time.sleep(_WAIT_S)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def test_requests_to_slurmrestd_count_by_whom_they_are_for() -> None:
    asked = RequestTime()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        threading.Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        connection = RestConnection(url, attempts=1, request_time=asked)
        connection.get("slurm/v0.0.45/jobs")
        assert (asked.controller_s > 0.8 * _WAIT_S, asked.accounting_s) == (True, 0)
        connection.get("slurmdb/v0.0.45/jobs")
        assert asked.accounting_s > 0.8 * _WAIT_S
        server.shutdown()


def test_questions_by_pyslurm_count() -> None:
    def slow(**_: bool) -> dict[str, object]:
        time.sleep(_WAIT_S)
        return {}

    asked = RequestTime()
    pyslurm = SimpleNamespace(
        __version__="25.11.2",
        PyslurmError=RuntimeError,
        Jobs=SimpleNamespace(load=slow),
        Nodes=SimpleNamespace(load=dict),
    )
    client = PySlurm(pyslurm, SlurmCommands(lambda argv, stdin=None: ""), asked)
    client._fits = True
    client.queue()
    assert asked.controller_s > 0.8 * _WAIT_S
