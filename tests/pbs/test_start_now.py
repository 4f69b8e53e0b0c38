"""Jobs that the daemon starts at once on a live PBS, and all that it gives back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.store import Store

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_folder import FORETIME_UID
from tests.pbs.pbs_server import PbsServer
from tests.pbs.test_daemon import documented_rights

_STARTS_NOW = """
[accuracy]
scheme = "learned"
[queue_order]
order = "start-now"
"""
_HOURS = "-lwalltime=5:00:00"


def _learned(path: Path) -> None:
    """Leave a history: alice's jobs end soon, bob's take all that they ask for."""
    now, records = int(time.time()), []
    for number in range(60):
        user, runtime = ("alice", 30) if number % 2 else ("bob", 17_990)
        submitted = now - 200_000 + 600 * number
        asked = JobRequest(f"{900 + number}.pbs01", user, None, 1, 18_000, submitted, "workq")
        done = FinishedJob(asked, submitted, submitted + runtime, runtime, Ending.COMPLETED)
        records.append(FinishedRecord(done, submitted, "0"))
    store = Store(path)
    store.add_finished(records, Cursor(now - 60), "pbs")
    store.close()


@pytest.fixture
def starting(pbs: PbsServer) -> InstalledForetime:
    """Two of eight CPUs are idle for two hours, until the job in front can start."""
    pbs.set_sched_config(strict_ordering="True ALL")
    foretime = InstalledForetime(pbs)
    text = foretime.settings_file.read_text().replace(
        "publish_interval_s = 1\n", "publish_interval_s = 1\nwatchdog_after_s = 10\n"
    )
    foretime.settings_file.write_text(text + _STARTS_NOW)
    foretime.checked("install", "pbs", "--yes")
    for command in documented_rights():
        pbs.checked(command)
    pbs.checked(["setfacl", "-R", "-m", "u:foretime:rX", "/var/spool/pbs/sched_priv"])
    pbs.wait_for_state(pbs.qsub("-lselect=6:ncpus=1", "-lwalltime=2:00:00", user="bob"), "R")
    pbs.qsub("-lselect=8:ncpus=1", "-lwalltime=1:00:00", user="bob")
    _learned(foretime.folder / "store")
    for path in foretime.folder.glob("store*"):
        path.chmod(0o666)
    foretime.server.run(["chown", "-R", str(FORETIME_UID), str(foretime.folder)])
    return foretime


Daemon = subprocess.Popen[bytes]


@pytest.fixture
def serve(starting: InstalledForetime) -> Iterator[Callable[[], Daemon]]:
    """Start the daemon, as its own user."""
    server, daemons = starting.server, []

    def start() -> Daemon:
        program = str(Path(sys.executable).with_name("foretime"))
        with (server.folder / "home/foretime/log").open("ab") as log:
            daemons.append(
                subprocess.Popen(
                    server.namespaces.command([program, "serve"], "foretime"),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=server.namespaces.environment,
                )
            )
        return daemons[-1]

    yield start
    _end(server, "KILL")
    for daemon in daemons:
        daemon.wait(60)


def _end(server: PbsServer, name: str) -> None:
    server.run(["pkill", f"-{name}", "--exact", "foretime"])


def _ranks(server: PbsServer) -> dict[str, float]:
    return {
        name: float(job["Resource_List"].get("ft_rank", 0))
        for name, job in server.jobs().items()
        if job["job_state"] == "Q"
    }


def test_a_job_that_is_expected_to_end_in_time_starts_and_no_other(
    starting: InstalledForetime, serve: Callable[[], Daemon]
) -> None:
    server = starting.server
    long, short = server.qsub(_HOURS, user="bob"), server.qsub(_HOURS)
    serve()
    job = server.wait_for_state(short, "R")
    assert job["Resource_List"]["walltime"] == "05:00:00"
    assert "soft_walltime" not in job["Resource_List"]
    log = (server.folder / "home/foretime/log").read_text()
    assert server.job(long)["job_state"] in ("Q", "R")
    assert "Traceback" not in log, log
    status = json.loads(starting.checked("doctor", "--json"))
    assert {"jobs started at once": "ok"}.items() <= _health(status).items()


def _health(status: object) -> dict[str, str]:
    checks = status["checks"] if isinstance(status, dict) else status
    assert isinstance(checks, list)
    return {check["check"]: check["health"] for check in checks}


@pytest.mark.parametrize("how", ["ended", "disabled", "killed"])
def test_all_ranks_are_given_back(
    starting: InstalledForetime, serve: Callable[[], Daemon], how: str
) -> None:
    server = starting.server
    daemon = serve()
    waits = server.qsub("-lselect=3:ncpus=1", _HOURS, user="bob")
    server.wait_for(lambda: _ranks(server).get(waits, 0) > 0, "ranks")
    if how == "ended":
        _end(server, "TERM")
        daemon.wait(60)
    elif how == "disabled":
        starting.checked("disable")
    else:
        _end(server, signal.Signals.SIGKILL.name.removeprefix("SIG"))
        time.sleep(12)
        starting.checked("watchdog")
    server.wait_for(lambda: not any(_ranks(server).values()), "the ranks to be given back", 60)


def test_uninstalled_pbs_sorts_as_before(starting: InstalledForetime) -> None:
    server = starting.server
    assert "job_sort_formula = ft_rank" in server.qmgr("print server")
    waits = server.qsub("-lselect=3:ncpus=1", _HOURS)
    server.checked(["qalter", "-l", "ft_rank=7", waits])
    for options in ("-lft_rank=5",):
        assert "insufficient permission" in server.try_qsub(options).stderr
    starting.uninstall()
    assert "job_sort_formula" not in server.qmgr("print server")
    assert not _ranks(server)[waits]
