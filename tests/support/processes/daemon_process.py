"""The daemon as a process of its own beside a recorded Slurm, and clients of several users."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SERVE = """
import sys, typer
from foretime_estimators.jobs.errors import ForetimeError
from foretime_sidecar.cli.site_commands.serve import serve
try:
    typer.run(serve)
except ForetimeError as error:
    sys.exit(f"foretime: {error}")
"""
# Becomes another user once everything is imported, as that one may not be able to read it.
ASK = """
import encodings.idna, http.client, os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[3]))
os.setuid(int(sys.argv[3]))
connection = http.client.HTTPConnection("localhost")
connection.sock = socket.socket(socket.AF_UNIX)
connection.sock.connect(sys.argv[1])
connection.request("GET", sys.argv[2], headers={"X-User": "root", "Authorization": "root"})
reply = connection.getresponse()
print(reply.status, reply.read().decode())
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Make a folder that other users can look into, with a path short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="foretime-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def write_settings(folder: Path, **api: str | list[str]) -> Path:
    commands = folder / "commands"
    api = {"listen": f"unix:{folder}/foretime.sock", **api}
    lines = [
        "[scheduler]",
        f'commands_dir = "{commands}"',
        "poll_interval_s = 1",
        "history_days = 1",
        "attempts = 1",
        "[store]",
        f'path = "{folder}/foretime.sqlite"',
        "[table]",
        f'path = "{folder}/foretime.table"',
        "[api]",
        *(f"{key} = {json.dumps(value)}" for key, value in api.items()),
    ]
    path = folder / "foretime.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


def fake_slurm(folder: Path, repository: Path) -> None:
    """Commands that print what a live Slurm 22.05.8 has printed."""
    recorded = repository / "tests/assets/slurm/22.05"
    commands = folder / "commands"
    commands.mkdir()
    scripts = {
        "squeue": f"cat {recorded}/squeue.json",
        # As the live one does.
        "sacct": f"""if [ "$SLURM_TIME_FORMAT" ]; then
echo '{{"meta": {{}}, "errors": [{{"description": "Unable to parse time format"}}]}}'
else cat {recorded}/sacct.json; fi""",
        "sinfo": f"cat {recorded}/sinfo.txt",
        "sdiag": f"cat {recorded}/sdiag.txt",
        "scontrol": f"cat {recorded}/scontrol-$2.txt",
        "sacctmgr": "true",
    }
    for name, script in scripts.items():
        (commands / name).write_text(f"#!/bin/sh\n{script}\n")
        (commands / name).chmod(0o755)


def wait_until_it_listens(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except OSError:
                time.sleep(0.05)
            else:
                return
    raise AssertionError("it does not listen")


def wait_for_poll(path: Path) -> dict[str, Any]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer: dict[str, Any] = get(path, "/healthz")[1]
        if answer.get("poll_age_s") is not None:
            return answer
        time.sleep(0.05)
    raise AssertionError("no poll goes through")


def get(path: Path, target: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("localhost")
    with socket.socket(socket.AF_UNIX) as connection.sock:
        connection.sock.connect(str(path))
        connection.request("GET", target)
        reply = connection.getresponse()
        return reply.status, json.loads(reply.read())


def ask_as(uid: int, path: Path, target: str) -> tuple[int, Any]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", ASK, str(path), target, str(uid)],
        capture_output=True,
        text=True,
        check=True,
    )
    status, _, body = done.stdout.partition(" ")
    return int(status), json.loads(body)
