"""The servers that all other tests here stand on: what they can do, and that nothing is left."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer

ROOT = Path(__file__).resolve().parents[2]


def test_a_job_runs_as_its_user_and_is_remembered(pbs: PbsServer) -> None:
    job = pbs.qsub("-lwalltime=60", user="bob", script=f"id -un > {pbs.folder}/home/bob/said")
    ended = pbs.wait_for_state(job, "F")
    assert (ended["Exit_status"], ended["Resource_List"]["walltime"]) == (0, "00:01:00")
    assert (pbs.folder / "home/bob/said").read_text() == "bob\n"


def test_two_servers_know_nothing_of_each_other(new_server: Callable[..., PbsServer]) -> None:
    first, second = new_server(), new_server(ncpus=2)
    job = first.qsub("-lwalltime=60")
    assert (first.wait_for_state(job, "R")["exec_host"], second.jobs()) == ("pbs01/0", {})
    second.wait_for_state(second.qsub("-lselect=1:ncpus=2"), "R")
    assert second.job(second.qsub())["job_state"] == "Q"


def test_the_hook_plans_a_job(foretime: InstalledForetime) -> None:
    job = foretime.server.qsub("-lwalltime=1000")
    assert foretime.server.resource(job, "soft_walltime") == "00:03:20"
    foretime.server.wait_for_state(job, "R")


def test_nothing_is_left_when_the_tests_are_killed(openpbs: None) -> None:
    script = (
        "import time; from tests.pbs.pbs_server import PbsServer; pbs = PbsServer();"
        "pbs.wait_for_state(pbs.qsub('-lwalltime=60'), 'R');"
        "print(pbs.folder, pbs.namespaces.pid, flush=True); time.sleep(1000)"
    )
    tests = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert tests.stdout is not None
    with tests:
        folder, pid = tests.stdout.readline().split()
        tests.send_signal(signal.SIGKILL)
    until = time.monotonic() + 120
    while Path(folder).exists() or Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "something of the server is left"
        time.sleep(0.1)
    assert not [line for line in Path("/proc/mounts").read_text().splitlines() if folder in line]
