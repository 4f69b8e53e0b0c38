"""Jobs that the daemon starts at once on a live PBS, and all that it gives back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.store import Store

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_folder import FORETIME_UID, HOST
from tests.pbs.pbs_server import WAIT_S, PbsServer
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
    """Three of eight CPUs are idle for two hours, until the job in front can start."""
    pbs.set_sched_config(strict_ordering="True ALL")
    foretime = InstalledForetime(pbs)
    text = foretime.settings_file.read_text().replace(
        "publish_interval_s = 1\n", "publish_interval_s = 1\nwatchdog_after_s = 30\n"
    )
    foretime.settings_file.write_text(text + _STARTS_NOW)
    foretime.checked("install", "pbs", "--yes")
    for command in documented_rights():
        pbs.checked(command)
    pbs.wait_for_state(pbs.qsub("-lselect=5:ncpus=1", "-lwalltime=2:00:00", user="bob"), "R")
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
        daemon.wait(WAIT_S)


def _end(server: PbsServer, name: str) -> None:
    server.run(["pkill", f"-{name}", "--exact", "foretime"])


def _ranks(server: PbsServer) -> dict[str, int]:
    """Give the ranks of all jobs that wait, are held or are a begun array, as qstat -f has them."""
    return {
        name: int(rank)
        for name, job in server.jobs().items()
        if job["job_state"] in "QHWTB" and (rank := job["Resource_List"].get("ft_rank", 0))
    }


def test_a_job_that_is_expected_to_end_in_time_starts_and_no_other(
    starting: InstalledForetime, serve: Callable[[], Daemon]
) -> None:
    server = starting.server
    two, short = server.qsub("-lselect=2:ncpus=1", _HOURS, user="bob"), server.qsub(_HOURS)
    serve()
    job = server.wait_for_state(short, "R")
    assert job["Resource_List"]["walltime"] == "05:00:00"
    assert "soft_walltime" not in job["Resource_List"]
    log = (server.folder / "home/foretime/log").read_text()
    assert server.job(two)["job_state"] == "Q"
    assert "Traceback" not in log, log
    status = json.loads(starting.checked("doctor", "--json"))
    assert {"jobs started at once": "ok"}.items() <= _health(status).items()


def _health(status: object) -> dict[str, str]:
    checks = status["checks"] if isinstance(status, dict) else status
    assert isinstance(checks, list)
    return {check["check"]: check["health"] for check in checks}


@dataclass(frozen=True)
class Raised:
    """A daemon that has raised jobs: one that runs since, and some that wait with a rank."""

    foretime: InstalledForetime
    serve: Callable[[], Daemon]
    daemon: Daemon
    ran: str
    waits: str

    @property
    def server(self) -> PbsServer:
        return self.foretime.server

    def kill(self) -> None:
        """End the daemon as a crash does."""
        _end(self.server, "KILL")
        self.daemon.wait(WAIT_S)

    def watchdog(self) -> str:
        """Run it once the daemon has been silent for long enough."""
        told: list[str] = []

        def silent() -> bool:
            told.append(self.foretime.checked("watchdog"))
            return "silent" in told[-1]

        self.server.wait_for(silent, "the watchdog to find the daemon silent")
        return told[-1]

    def wait_until_given_back(self) -> None:
        self.server.wait_for(lambda: not _ranks(self.server), "no job to have a rank")

    def wait_for_looks(self) -> None:
        """Wait until the daemon has looked twice more."""
        sign = self.foretime.table.with_name(f"{self.foretime.table.name}.alive")
        for _ in range(2):
            before = sign.stat().st_mtime_ns
            self.server.wait_for(lambda old=before: sign.stat().st_mtime_ns > old, "a look")

    def log(self) -> str:
        return (self.server.folder / "home/foretime/log").read_text()


@pytest.fixture
def raised(starting: InstalledForetime, serve: Callable[[], Daemon]) -> Raised:
    server = starting.server
    array = server.qsub("-J1-2", "-lselect=2:ncpus=1", "-lwalltime=1:00:00")
    server.wait_for_state(array, "B")
    waits = server.qsub("-lselect=3:ncpus=1", _HOURS, user="bob")
    ran = server.qsub("-ry", _HOURS)
    daemon = serve()
    assert server.wait_for_state(ran, "R")["Resource_List"]["ft_rank"] > 1_000_000_000
    server.wait_for(lambda: {array, waits} <= _ranks(server).keys(), "ranks")
    return Raised(starting, serve, daemon, ran, waits)


def test_given_back_at_the_daemons_end(raised: Raised) -> None:
    _end(raised.server, "TERM")
    assert raised.daemon.wait(WAIT_S) == 0
    assert not _ranks(raised.server)
    assert "Traceback" not in raised.log()


def test_given_back_when_it_is_disabled_and_not_raised_again(raised: Raised) -> None:
    raised.foretime.checked("disable")
    raised.wait_until_given_back()
    raised.wait_for_looks()
    assert not _ranks(raised.server)
    raised.foretime.checked("enable")
    raised.server.wait_for(lambda: raised.waits in _ranks(raised.server), "ranks again")


def test_given_back_by_disable_itself_where_the_daemon_is_dead(raised: Raised) -> None:
    raised.kill()
    assert raised.waits in _ranks(raised.server)
    assert raised.waits in json.loads(raised.foretime.checked("disable", "--json"))["cleared"]
    assert not _ranks(raised.server)


def test_given_back_while_the_circuit_breaker_is_open(raised: Raised) -> None:
    store = Store(raised.foretime.folder / "store")
    BreakerEvents(store).add(BreakerEvent(int(time.time()), "tripped", "of a test"))
    store.close()
    raised.wait_until_given_back()
    raised.wait_for_looks()
    assert not _ranks(raised.server)
    assert "of a test" in raised.log()


def test_given_back_by_the_next_start_after_a_crash(raised: Raised) -> None:
    """What was requeued and held since is, too; and nothing is raised while scheduling is off."""
    raised.kill()
    _requeue(raised)
    raised.serve()
    raised.wait_until_given_back()


def test_given_back_by_a_next_start_that_raises_none(raised: Raised) -> None:
    raised.kill()
    settings = raised.foretime.settings_file
    settings.write_text(settings.read_text().replace('order = "start-now"', 'order = "none"'))
    raised.serve()
    raised.wait_until_given_back()


def test_given_back_by_the_watchdog_after_a_crash(raised: Raised) -> None:
    assert "alive" in raised.foretime.checked("watchdog")
    assert raised.waits in _ranks(raised.server)
    raised.kill()
    _requeue(raised)
    assert "lost the ft_rank" in raised.watchdog()
    assert not _ranks(raised.server)


def _requeue(raised: Raised) -> None:
    """Put what was raised and runs back into the queue, where it stays, and hold another."""
    server = raised.server
    server.qmgr("set server scheduling = false")
    server.checked(["qrerun", raised.ran])
    server.wait_for_state(raised.ran, "Q")
    server.checked(["qhold", raised.waits])
    assert {raised.ran, raised.waits} <= _ranks(server).keys()


def test_given_back_once_a_server_that_was_away_is_there_again(raised: Raised) -> None:
    raised.server.stop_daemon("pbs_server")
    _end(raised.server, "TERM")
    raised.daemon.wait(WAIT_S)
    assert "given back at the next start" in raised.log()
    raised.server.start("pbs_server")
    assert raised.waits in _ranks(raised.server)
    raised.watchdog()
    assert not _ranks(raised.server)


def test_given_back_by_the_watchdog_where_the_daemon_may_no_more(raised: Raised) -> None:
    raised.server.qmgr(f"set server managers -= foretime@{HOST}")
    _end(raised.server, "TERM")
    raised.daemon.wait(WAIT_S)
    assert "given back at the next start" in raised.log()
    assert raised.waits in _ranks(raised.server)
    raised.watchdog()
    assert not _ranks(raised.server)


def test_uninstalled_beside_a_daemon_pbs_sorts_as_before(raised: Raised) -> None:
    server = raised.server
    assert "job_sort_formula = ft_rank" in server.qmgr("print server")
    assert "insufficient permission" in server.try_qsub("-lft_rank=5").stderr
    raised.foretime.uninstall()
    assert "job_sort_formula" not in server.qmgr("print server")
    raised.wait_until_given_back()
    server.wait_for(lambda: "job_sort_formula is not ft_rank" in raised.log(), "the daemon to see")
    raised.wait_for_looks()
    assert not _ranks(server)
