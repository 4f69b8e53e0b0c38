"""What it costs until a command that people wait for has asked its question.

Processor time of the whole process, the interpreter's start among it, when its first question
arrives.
"""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

GOAL_S = 0.25
ROUNDS = 10

pytestmark = pytest.mark.benchmark(group="commands, to the first question")


@pytest.fixture(scope="module")
def listener() -> Iterator[socket.socket]:
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(f"{folder}/s")
        listening.listen()
        (Path(folder) / "site.toml").write_text(f'[api]\nlisten = "unix:{folder}/s"\n')
        yield listening


def cpu_s(process_id: int) -> float:
    """Processor time that a process has used, as the kernel's scheduler counts it."""
    nanoseconds = Path(f"/proc/{process_id}/schedstat").read_text().split()[0]
    return int(nanoseconds) / 1e9


def to_question_s(listener: socket.socket, arguments: list[str]) -> float:
    """Run a command until it asks; give its processor time by then."""
    settings = Path(listener.getsockname()).with_name("site.toml")
    command = [str(Path(sys.executable).with_name("foretime")), *arguments]
    with subprocess.Popen(
        [*command, "--settings", str(settings)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "80"},
    ) as process:
        connection, _ = listener.accept()
        with connection:
            peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            assert struct.unpack("3i", peer)[0] == process.pid
            assert connection.recv(4096)
            used_s = cpu_s(process.pid)
        process.kill()
    return used_s


@pytest.mark.parametrize(
    "arguments",
    [
        ["wait", "4711"],
        ["wait", "-n", "64", "-t", "2:00:00", "-A", "physics"],
        ["status"],
        ["explain", "4711"],
        ["decisions"],
    ],
    ids=" ".join,
)
def test_cpu_to_the_question(listener: socket.socket, benchmark: Any, arguments: list[str]) -> None:
    used: list[float] = []
    benchmark.pedantic(
        lambda: used.append(to_question_s(listener, arguments)), rounds=ROUNDS, warmup_rounds=1
    )
    least_s = min(used)
    benchmark.extra_info |= {"cpu_s": least_s, "goal_cpu_s": GOAL_S}
