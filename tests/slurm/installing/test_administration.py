"""Users and administrators of a live cluster ask what Foretime did, and are told."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.settings.settings_file import read_settings
from foretime_sidecar.table.table import Advice, Mode
from foretime_sidecar.web.server import Daemon

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import SLURM_UID
from tests.slurm.installing.test_install import Administrator


class WithoutAccounting(SlurmCommands):
    """A client whose cluster has no accounting: no job is ever known to have ended."""

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        return [], Cursor(max(cursor.end_time, until or 0))


@contextmanager
def daemon_of(admin: Administrator) -> Iterator[Daemon]:
    """The daemon beside the cluster; a test polls it."""
    settings = read_settings(admin.settings_file)
    client = WithoutAccounting(SubprocessRunner(str(admin.cluster.commands), attempts=1))
    daemon = Daemon(settings, client)
    daemon._poll_until_told = lambda: None  # type: ignore[method-assign]
    thread = threading.Thread(target=daemon.run)
    thread.start()
    try:
        admin.cluster.wait_for(lambda: daemon.answers, "the daemon to answer")
        yield daemon
    finally:
        daemon.end()
        thread.join(30)


def test_what_was_done_is_told(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm)
    admin.table()
    admin.checked("install", "slurm", "--yes")
    with daemon_of(admin) as daemon:
        job = admin.submit()
        other = slurm.sbatch("-t", "60", "--hold", user="dave")
        daemon.sidecar.look(int(time.time()))
        found = json.loads(admin.checked("decisions", "--json", "--since", "1:00:00"))
        by_job = {one["job_id"]: one for one in found}
        planned = by_job[job]
        assert (planned["action"], planned["requested_time_s"]) == ("planned", 3600)
        assert (planned["scheduled_time_s"], planned["generation"]) == (720, 1)
        assert by_job[other]["action"] == "left"
        assert [
            one["job_id"]
            for one in json.loads(admin.checked("decisions", "--json", "--user", "alice"))
        ] == [job]
        line = admin.checked("decisions", "--job", job).splitlines()[1]
        assert line.split()[2:] == [
            *(job, "alice", "-", "main", "planned", "01:00:00", "00:12:00", "-", "1")
        ]
        told = admin.checked("explain", job)
        assert "asks for 01:00:00, and is planned with 00:12:00" in told
        assert "It may run for 01:00:00 in any case" in told
        reply = admin.run("explain", "999")
        assert (reply.returncode, "nothing is known of job 999" in reply.stderr) == (2, True)

        admin.checked("disable")
        daemon.sidecar.look(int(time.time()))
        if admin.native:
            found = json.loads(admin.checked("decisions", "--json", "--job", job))
            assert [one["action"] for one in found] == ["planned", "cleared"]
        assert "mode     disabled" in admin.checked("status")
        report = {one["check"]: one for one in json.loads(admin.run("doctor", "--json").stdout)}
        bad = {name for name, one in report.items() if one["health"] == "problem"}
        assert bad <= {"table's permissions", "daemon", "commands"}, report
        assert report["disable file"]["health"] == "warning"
        for name in ("job_submit.lua", "clock", "PrologSlurmctld"):
            assert report[name]["health"] == "ok", report
        admin.checked("enable")
        empty = admin.checked("report", "ab")
        assert "One of the groups is empty" in empty
    own = slurm.sbatch("-t", "50", "--time-min", "20", "--hold", user="carol")
    report = {one["check"]: one for one in json.loads(admin.run("doctor", "--json").stdout)}
    assert report["daemon"]["health"] == "problem"
    assert (own in report["users' own --time-min"]["message"]) is admin.native


def test_users_are_told_once_and_nothing_changes(slurm: SlurmCluster) -> None:
    admin = Administrator(slurm, mode="advise")
    admin.checked("install", "slurm", "--yes")

    def publish(*told: tuple[str, int]) -> None:
        slurm.publish(
            admin.rows, admin.table_settings(Mode.ADVISE), advice=Advice(int(time.time()), told)
        )
        os.chown(slurm.table, SLURM_UID, SLURM_UID)

    def submit(user: str) -> bool:
        reply = slurm.try_sbatch("-t", "60", "--hold", user=user)
        assert not admin.planned(reply.stdout.strip())
        return "foretime: jobs like this one mostly ended within 00:12:00" in reply.stderr

    slurm.wait_for(lambda: slurm.answers(), "slurmctld")
    slurm.sbatch("-t", "1", "--hold", user="carol")  # the script is loaded by now
    time.sleep(1.1)
    publish()
    assert [submit("alice"), submit("alice"), submit("bob")] == [True, False, True]
    # The script is loaded anew and forgets; the daemon's table remembers.
    time.sleep(1.1)  # times are whole seconds: a state of the table's own second believes it
    told_at = int(time.time())
    os.utime(admin.etc / "job_submit.lua", (told_at + 5, told_at + 5))
    assert not submit("alice")
    time.sleep(1.1)
    publish(("alice", told_at), ("bob", told_at))
    assert [submit("alice"), submit("bob")] == [False, False]
