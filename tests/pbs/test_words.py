"""What users and administrators of a live PBS are told, by a daemon that looks at it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_sidecar.answers.daemon_client import SiteDaemon

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.openpbs import ENVIRONMENT
from tests.pbs.pbs_server import PbsServer

OF_SLURM = re.compile(r"sbatch|slurm|squeue|scontrol|partition|QOS|[(:] ?None\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def foretime(foretime_of_module: InstalledForetime) -> Iterator[InstalledForetime]:
    """Give Foretime with its daemon, and a full host."""
    installed = foretime_of_module
    server = installed.server
    server.wait_for_state(server.qsub("-lselect=1:ncpus=6", "-lwalltime=7200"), "R")
    foretime = Path(sys.executable).with_name("foretime")
    serve = f"echo $$; exec {foretime} serve 2>{server.folder}/serve.log"
    with subprocess.Popen(
        server.namespaces.command(["sh", "-c", serve]),
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as daemon:
        assert daemon.stdout is not None
        pid = daemon.stdout.readline().strip()
        yield installed
        server.run(["kill", pid])
        daemon.wait(60)


@pytest.fixture
def server(foretime: InstalledForetime) -> PbsServer:
    return foretime.server


def told(foretime: InstalledForetime, *words: str) -> str:
    """Run a command, as root, until it succeeds: the daemon looks each second."""
    said: list[str] = []

    def succeeds() -> bool:
        reply = foretime.run(*words)
        said.append(reply.stdout + reply.stderr)
        return not reply.returncode

    try:
        foretime.server.wait_for(succeeds, f"foretime {' '.join(words)}", 60)
    except TimeoutError:
        log = (foretime.server.folder / "serve.log").read_text()
        raise AssertionError(f"{said[-1]}\n{log}") from None
    return said[-1]


def test_short_ids_are_found(foretime: InstalledForetime, server: PbsServer) -> None:
    job = server.qsub("-lselect=1:ncpus=8", "-lwalltime=1000", user="bob")
    array = server.qsub("-lselect=1:ncpus=8", "-lwalltime=1000", "-J1-3", user="bob")
    number, of_array = job.partition(".")[0], array.partition("[")[0]
    assert told(foretime, "explain", number).startswith(f"Job {job} of bob asks for 00:16:40")
    for task in (f"{of_array}[]", f"{of_array}[2]", f"{of_array}[2].pbs01"):
        assert told(foretime, "explain", task).startswith(f"Job {array} of bob")
        assert "8 processors, walltime 00:16:40" in told(foretime, "wait", task)
    assert told(foretime, "wait", number) != ""


def test_nothing_speaks_of_slurm(foretime: InstalledForetime, server: PbsServer) -> None:
    job = server.qsub("-lselect=1:ncpus=8", "-lwalltime=1000", user="carol")
    number = job.partition(".")[0]
    told(foretime, "wait", number)
    socket = f"unix:{foretime.folder}/socket"
    advised = SiteDaemon(socket).ask("/v1/advice", {"ntasks": "4", "time": "60", "scales": "1"})[
        "alternatives"
    ]
    assert len(advised) == 3
    for each in advised:
        assert re.match(r"qsub -l select=\d:ncpus=1 -l walltime=0\d:\d0:00$", each["command"])
    for words in (
        ("wait", number),
        ("wait", "-n", "8", "-t", "30"),
        ("explain", number),
        ("status",),
    ):
        said = told(foretime, *words)
        assert not OF_SLURM.search(said), said
    doctor = foretime.run("doctor")
    assert not OF_SLURM.search(doctor.stdout), doctor.stdout


def test_no_reason_is_missing(foretime: InstalledForetime) -> None:
    log = (foretime.server.folder / "serve.log").read_text()
    assert "None" not in log, log
