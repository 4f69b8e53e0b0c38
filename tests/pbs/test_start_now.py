"""Jobs that the daemon starts at once on a live PBS, and all that it gives back."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.store.breaker_events import BreakerEvent, BreakerEvents
from foretime_sidecar.store.store import Store

from tests.pbs.installed_foretime import InstalledForetime, daemon_on
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


Daemon = subprocess.Popen[bytes]


class Site:
    """A live PBS with jobs that wait, and Foretime installed; `serve` begins a daemon.

    Three of eight CPUs are idle for two hours, until the job in front can start. An array that asks
    for one hour has two of them.

    Attributes
    ----------
    array
        The array, which has begun.
    ran
        Expected to end within half a minute, and asks for five hours.
    waits, small
        Expected to take all of their five hours; ``small`` would fit, and ``waits`` is held at
        times.
    """

    def __init__(self, server: PbsServer) -> None:
        self.server = server
        server.set_sched_config(strict_ordering="True ALL")
        self.foretime = InstalledForetime(server)
        self.settings = self.foretime.settings_file.read_text().replace(
            "publish_interval_s = 1\n", "publish_interval_s = 1\nwatchdog_after_s = 60\n"
        )
        self.settings += _STARTS_NOW
        self.foretime.settings_file.write_text(self.settings)
        self.foretime.checked("install", "pbs", "--yes")
        for command in documented_rights():
            server.checked(command)
        server.wait_for_state(
            server.qsub("-lselect=5:ncpus=1", "-lwalltime=2:00:00", user="bob"), "R"
        )
        server.qsub("-lselect=8:ncpus=1", "-lwalltime=1:00:00", user="bob")
        self.array = server.qsub("-J1-2", "-lselect=2:ncpus=1", "-lwalltime=1:00:00")
        server.wait_for_state(self.array, "B")
        self.waits = server.qsub("-lselect=3:ncpus=1", _HOURS, user="bob")
        self.small = server.qsub(_HOURS, user="bob")
        self.ran = server.qsub("-ry", _HOURS)
        _learned(self.foretime.folder / "store")
        for path in self.foretime.folder.glob("store*"):
            path.chmod(0o666)
        server.run(["chown", "-R", str(FORETIME_UID), str(self.foretime.folder)])
        self._daemons: list[Daemon] = []
        self.log_file = server.folder / "home/foretime/log"

    def serve(self) -> None:
        """Start the daemon, as its own user."""
        self._daemons.append(daemon_on(self.server, self.log_file))

    def end(self, signal: str) -> int:
        """End the daemon, if there is one; SIGKILL is as a crash. Give its exit code."""
        self.server.run(["pkill", f"-{signal}", "--exact", "foretime"])
        return [daemon.wait(WAIT_S) for daemon in self._daemons][-1] if self._daemons else 0

    def begin(self) -> None:
        """Set all right again after another test, and have a new daemon raise jobs."""
        server = self.server
        self.end("KILL")
        self.foretime.settings_file.write_text(self.settings)
        self.foretime.disable_file.unlink(missing_ok=True)
        server.run(["qmgr", "-c", f"set server managers += foretime@{HOST}"])
        server.run(["qrls", self.waits])
        server.qmgr("set server scheduling = true")
        for job in _ranks(server):
            server.run(["qalter", "-l", "ft_rank=0", job])  # refused of a subjob: its array's
        assert not _ranks(server)
        self.log_file.write_text("")
        self.serve()
        server.wait_for(lambda: {self.array, self.waits} <= _ranks(server).keys(), "ranks")
        assert server.wait_for_state(self.ran, "R")["Resource_List"]["ft_rank"] > 1_000_000_000

    def requeue(self) -> None:
        """Put what was raised and runs back into the queue, where it stays, and hold another."""
        self.server.qmgr("set server scheduling = false")
        self.server.checked(["qrerun", self.ran])
        self.server.wait_for_state(self.ran, "Q")
        self.server.checked(["qhold", self.waits])
        assert {self.ran, self.waits} <= _ranks(self.server).keys()

    def watchdog(self) -> str:
        """Run it until it finds that the daemon has been silent for long enough."""
        told = [""]

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
        beats = {sign.stat().st_mtime_ns}

        def twice_more() -> bool:
            beats.add(sign.stat().st_mtime_ns)
            return len(beats) > 2

        self.server.wait_for(twice_more, "two looks")

    def log(self) -> str:
        return self.log_file.read_text()


def _ranks(server: PbsServer) -> dict[str, int]:
    """Give the ranks of all jobs that wait, are held or are a begun array, as qstat -f has them."""
    return {
        name: int(rank)
        for name, job in server.jobs().items()
        if job["job_state"] in "QHWTB" and (rank := job["Resource_List"].get("ft_rank", 0))
    }


@pytest.fixture(scope="module")
def site(pbs_of_module: PbsServer) -> Iterator[Site]:
    site = Site(pbs_of_module)
    yield site
    site.end("KILL")


@pytest.fixture
def raised(site: Site) -> Site:
    site.begin()
    return site


def test_a_job_that_is_expected_to_end_in_time_starts_and_no_other(raised: Site) -> None:
    job = raised.server.job(raised.ran)
    assert job["Resource_List"]["walltime"] == "05:00:00"
    assert "soft_walltime" not in job["Resource_List"]
    raised.server.qmgr("set server scheduling = true")
    raised.wait_for_looks()
    assert raised.server.job(raised.small)["job_state"] == "Q"
    assert "Traceback" not in raised.log()
    checks = json.loads(raised.foretime.run("doctor", "--json").stdout)
    health = {check["check"]: check["health"] for check in checks}
    assert health["jobs started at once"] == "ok"


def test_given_back_at_the_daemons_end(raised: Site) -> None:
    assert raised.end("TERM") == 0
    assert not _ranks(raised.server)
    assert "Traceback" not in raised.log()


def test_given_back_when_it_is_disabled_and_not_raised_again(raised: Site) -> None:
    raised.foretime.checked("disable")
    raised.wait_until_given_back()
    raised.wait_for_looks()
    assert not _ranks(raised.server)
    raised.foretime.checked("enable")
    raised.server.wait_for(lambda: raised.waits in _ranks(raised.server), "ranks again")


def test_given_back_by_disable_itself_where_the_daemon_is_dead(raised: Site) -> None:
    raised.end("KILL")
    assert raised.waits in _ranks(raised.server)
    assert raised.waits in json.loads(raised.foretime.checked("disable", "--json"))["cleared"]
    assert not _ranks(raised.server)


def test_given_back_while_the_circuit_breaker_is_open(raised: Site) -> None:
    store = Store(raised.foretime.folder / "store")
    BreakerEvents(store).add(BreakerEvent(int(time.time()), "tripped", "of a test"))
    store.close()
    raised.wait_until_given_back()
    raised.wait_for_looks()
    assert not _ranks(raised.server)
    assert "of a test" in raised.log()
    raised.foretime.checked("enable")
    raised.server.wait_for(lambda: raised.waits in _ranks(raised.server), "ranks again")


def test_given_back_by_the_next_start_after_a_crash(raised: Site) -> None:
    """What was requeued and held since is, too; and nothing is raised while scheduling is off."""
    raised.end("KILL")
    raised.requeue()
    raised.serve()
    raised.wait_until_given_back()


def test_given_back_by_a_next_start_that_raises_none(raised: Site) -> None:
    raised.end("KILL")
    settings = raised.foretime.settings_file
    settings.write_text(settings.read_text().replace('order = "start-now"', 'order = "none"'))
    raised.serve()
    raised.wait_until_given_back()


def test_given_back_by_the_watchdog_after_a_crash(raised: Site) -> None:
    assert "alive" in raised.foretime.checked("watchdog")
    assert raised.waits in _ranks(raised.server)
    raised.end("KILL")
    raised.requeue()
    assert "lost the ft_rank" in raised.watchdog()
    assert not _ranks(raised.server)


def test_given_back_once_a_server_that_was_away_is_there_again(raised: Site) -> None:
    raised.server.stop_daemon("pbs_server")
    raised.end("TERM")
    raised.server.start("pbs_server")
    assert raised.waits in _ranks(raised.server)
    raised.watchdog()
    assert not _ranks(raised.server)


def test_given_back_by_the_watchdog_where_the_daemon_may_no_more(raised: Site) -> None:
    raised.server.qmgr(f"set server managers -= foretime@{HOST}")
    raised.end("TERM")
    assert "given back at the next start" in raised.log()
    assert raised.waits in _ranks(raised.server)
    raised.watchdog()
    assert not _ranks(raised.server)


def test_uninstalled_beside_a_daemon_pbs_sorts_as_before(raised: Site) -> None:
    server = raised.server
    assert "job_sort_formula = ft_rank" in server.qmgr("print server")
    assert "insufficient permission" in server.try_qsub("-lft_rank=5").stderr
    raised.foretime.uninstall()
    assert "job_sort_formula" not in server.qmgr("print server")
    raised.wait_until_given_back()
    server.wait_for(lambda: "job_sort_formula is not ft_rank" in raised.log(), "the daemon to see")
    raised.wait_for_looks()
    assert not _ranks(server)
