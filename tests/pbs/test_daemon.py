"""foretime install, doctor and uninstall, and foretime serve as its own user, on a live server.

The daemon has the rights that contrib/systemd/foretime.service.d/pbs.conf tells to give, no more.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_sidecar.table.table import read_table

from tests.pbs.installed_foretime import InstalledForetime, daemon_on
from tests.pbs.pbs_folder import FORETIME_UID, HOST
from tests.pbs.pbs_server import PbsServer

ROOT = Path(__file__).resolve().parents[2]
RIGHTS = ROOT / "contrib/systemd/foretime.service.d/pbs.conf"
LEARNS_QUICKLY = """
[accuracy]
scheme = "user"
percentile = 0.5
threshold = 5
minimum_adjustment = 0.0
minimum_scheduled_time_s = 1
class_bounds_s = []
imagined_job = false
within_largest_job = false
"""


def documented_rights() -> list[list[str]]:
    """Give the commands that the unit's drop-in tells to run."""
    commands = re.findall(r"^#   (\S.*)$", RIGHTS.read_text(), flags=re.MULTILINE)
    return [shlex.split(command.replace("@HOST", f"@{HOST}")) for command in commands]


def hook_of(server: PbsServer) -> str:
    return server.run(["qmgr", "-c", "list hook foretime"]).stdout


def test_install_and_uninstall(pbs: PbsServer) -> None:
    foretime = InstalledForetime(pbs)
    before = pbs.qmgr("print server", "list hook")
    foretime.publish()
    shown = foretime.checked("install", "pbs")
    assert "create hook foretime" in shown
    assert pbs.qmgr("print server", "list hook") == before, "without --yes it only shows"

    foretime.checked("install", "pbs", "--yes")
    assert "enabled = true" in hook_of(pbs)
    waits, runs = pbs.qsub("-lwalltime=1000", "-h"), pbs.qsub("-lwalltime=1000")
    array = pbs.qsub("-lwalltime=1000", "-h", "-J1-3")
    pbs.wait_for_state(runs, "R")
    assert all(pbs.resource(job, "soft_walltime") == "00:03:20" for job in (waits, runs, array))
    again = hook_of(pbs)
    foretime.checked("install", "pbs", "--yes")
    assert hook_of(pbs) == again

    foretime.checked("disable")
    assert pbs.resource(pbs.qsub("-lwalltime=1000", "-h"), "soft_walltime") is None
    foretime.checked("enable")
    assert pbs.resource(pbs.qsub("-lwalltime=1000", "-h"), "soft_walltime") == "00:03:20"

    foretime.uninstall()
    assert hook_of(pbs) == ""
    assert pbs.qmgr("print server", "list hook") == before
    assert not any(pbs.resource(job, "soft_walltime") for job in (waits, array, runs))
    pbs.checked(["qalter", "-lwalltime=100", waits], "alice")
    assert "nothing to do" in foretime.checked("uninstall", "pbs", "--yes")


def test_who_may_not_manage_pbs_may_not_install(pbs: PbsServer) -> None:
    foretime = InstalledForetime(pbs)
    before = pbs.qmgr("print server", "list hook")
    for user in ("alice", "foretime"):
        reply = foretime.run("install", "pbs", "--yes", user=user)
        assert reply.returncode != 0
        assert "be root" in reply.stderr
    assert pbs.qmgr("print server", "list hook") == before


@pytest.fixture
def daemon(foretime: InstalledForetime) -> Iterator[subprocess.Popen[bytes]]:
    """The daemon, as the user foretime, with a history of alice's behind it."""
    server = foretime.server
    foretime.settings_file.write_text(foretime.settings_file.read_text() + LEARNS_QUICKLY)
    # Of 100 s that were asked for 4 are used.
    for job in [server.qsub("-lwalltime=100", script="sleep 4") for _ in range(6)]:
        server.wait_for_state(job, "F")
    foretime.table.unlink()
    for command in documented_rights():
        server.checked(command)
    daemon = daemon_on(server, server.folder / "home/foretime/log")
    yield daemon
    server.run(["pkill", "--exact", "foretime"])
    daemon.wait(60)


def test_the_daemon_learns_publishes_and_answers_as_its_own_user(
    foretime: InstalledForetime, daemon: subprocess.Popen[bytes]
) -> None:
    server = foretime.server
    log = server.folder / "home/foretime/log"

    def published() -> bool:
        assert daemon.poll() is None, log.read_text()
        return foretime.table.exists() and bool(read_table(foretime.table).rows)

    server.wait_for(published, "the daemon to publish a table")
    assert foretime.table.stat().st_uid == FORETIME_UID
    job = server.qsub("-lwalltime=1000")
    soft = server.resource(job, "soft_walltime")
    assert soft is not None
    minutes, seconds = (int(part) for part in soft.split(":")[1:])
    assert 30 <= minutes * 60 + seconds <= 100, (
        "a 25th of the walltime, but for MoM's second or two"
    )
    server.wait_for_state(job, "R")
    # Somebody else's job, which only a manager sees if query_other_jobs is off.
    server.qmgr("set server query_other_jobs = false")
    blocked = server.qsub("-lselect=1:ncpus=8", "-lwalltime=1000", user="bob")
    server.wait_for(
        lambda: foretime.run("wait", blocked, "--json", user="bob").returncode == 0,
        "the daemon to know of the job",
    )
    doctor = foretime.run("doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    errors = [line for line in log.read_text().splitlines() if "ERROR" in line or "Trace" in line]
    assert errors == []
