"""What Foretime mends on a live PBS that its hook alone can't: job classes, plans that must go."""

from __future__ import annotations

import stat
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from foretime_sidecar.clients.pbs.server import parse_hooks
from foretime_sidecar.table.table import TableRow

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer

WORD = "soft_walltime"


def soft(pbs: PbsServer, job: str) -> str | None:
    return pbs.resource(job, WORD)


def sched_config(pbs: PbsServer) -> Path:
    return pbs.home / "sched_priv/sched_config"


# Job classes


@dataclass
class Race:
    """A full machine, a head job, an unplanned job, and after it a planned one of its shape.

    Until the head job starts there is room for the planned one as it is planned, for none as it was
    asked for.
    """

    pbs: PbsServer
    unplanned: str
    planned: str

    @classmethod
    def run(cls, foretime: InstalledForetime) -> Race:
        pbs = foretime.server
        foretime.publish([TableRow("user", "bob", 0, 100_000)])
        pbs.set_sched_config(strict_ordering="True ALL")
        pbs.qmgr("set server backfill_depth = 1", "set server scheduling = false")
        pbs.qsub("-lwalltime=300", "-lselect=1:ncpus=7")
        pbs.qmgr("set server scheduling = true")
        pbs.wait_for(lambda: "R" in states(pbs), "the first to start")
        pbs.qmgr("set server scheduling = false")
        pbs.qsub("-lwalltime=300", "-lselect=1:ncpus=8")
        unplanned = pbs.qsub("-lwalltime=1000", "-lselect=1:ncpus=1", user="alice")
        planned = pbs.qsub("-lwalltime=1000", "-lselect=1:ncpus=1", user="bob")
        assert (soft(pbs, unplanned), soft(pbs, planned)) == (None, "00:01:40")
        pbs.qmgr("set server scheduling = true")
        # pbs_sched has looked at the queue once it has said of the unplanned job why it waits.
        pbs.wait_for(lambda: "comment" in pbs.job(unplanned), "a look at the queue")
        return cls(pbs, unplanned, planned)


def states(pbs: PbsServer) -> list[str]:
    return [job["job_state"] for job in pbs.jobs().values()]


def test_a_planned_job_is_backfilled_after_an_unplanned_one_of_its_shape(
    foretime: InstalledForetime,
) -> None:
    race = Race.run(foretime)
    race.pbs.wait_for_state(race.planned, "R")
    assert race.pbs.job(race.unplanned)["job_state"] == "Q"


def test_without_the_line_it_is_not(foretime: InstalledForetime) -> None:
    config = sched_config(foretime.server)
    config.write_text(config.read_text().replace(f", {WORD}", ""))
    race = Race.run(foretime)
    race.pbs.wait_for(lambda: "comment" in race.pbs.job(race.planned), "its verdict")
    assert race.pbs.job(race.planned)["job_state"] == "Q"


def test_install_edits_sched_config_and_uninstall_puts_it_back(pbs: PbsServer) -> None:
    config = sched_config(pbs)
    config.chmod(0o640)
    before, status = config.read_bytes(), config.stat()
    foretime = InstalledForetime(pbs)
    shown = foretime.checked("install", "pbs")
    assert (
        '#   should be  resources: "ncpus, mem, arch, host, vnode, aoe, eoe, soft_walltime"'
        in shown
    )
    assert config.read_bytes() == before
    foretime.install()
    after = config.stat()
    assert f'resources: "ncpus, mem, arch, host, vnode, aoe, eoe, {WORD}"\n' in config.read_text()
    assert (after.st_uid, stat.S_IMODE(after.st_mode)) == (status.st_uid, 0o640)
    assert (config.with_name("sched_config.before-foretime")).read_bytes() == before
    assert "reconfigure" in read_logs(pbs, "sched_logs").lower()
    assert "soft_walltime is in the line resources:" in foretime.run("doctor").stdout
    foretime.uninstall()
    assert config.read_bytes() == before
    assert sorted(path.name for path in config.parent.glob("sched_config*")) == [config.name]
    assert pbs.runs("pbs_sched")


def read_logs(pbs: PbsServer, folder: str) -> str:
    return "".join(path.read_text(errors="replace") for path in (pbs.home / folder).iterdir())


# Switching off


def test_disable_gives_waiting_jobs_their_plan_back(foretime: InstalledForetime) -> None:
    pbs = foretime.server
    running = pbs.qsub("-lwalltime=1000")
    pbs.wait_for_state(running, "R")
    waiting = [
        pbs.qsub("-lwalltime=1000", "-h"),
        pbs.qsub("-lwalltime=2000", "-lselect=1:ncpus=8"),
        pbs.qsub("-lwalltime=3000", "-h", "-J1-3"),
    ]
    assert [soft(pbs, job) for job in waiting] == ["00:03:20", "00:06:40", "00:10:00"]
    said = foretime.checked("disable")
    assert "3 waiting jobs got back what was asked for." in said
    assert [soft(pbs, job) for job in waiting] == ["00:16:40", "00:33:20", "00:50:00"]
    assert soft(pbs, running) == "00:03:20"
    # Their users may change them as before.
    pbs.checked(["qalter", "-lwalltime=500", waiting[0]], user="alice")
    assert soft(pbs, waiting[0]) == "00:08:20"


def test_uninstall_takes_it_from_running_jobs_too(foretime: InstalledForetime) -> None:
    pbs = foretime.server
    running, held = pbs.qsub("-lwalltime=1000"), pbs.qsub("-lwalltime=1000", "-h")
    array = pbs.qsub("-lwalltime=1000", "-J1-9")
    pbs.wait_for_state(running, "R")
    subjob, later = (array.replace("[]", f"[{number}]") for number in (1, 9))
    pbs.wait_for_state(subjob, "R")
    said = foretime.checked("uninstall", "pbs", "--settings", str(foretime.settings_file), "--yes")
    assert [soft(pbs, job) for job in (running, held, array, later)] == [None] * 4
    assert pbs.job(running)["job_state"] == "R"
    # PBS refuses each change of a subjob, and the command says which it is.
    assert soft(pbs, subjob) == "00:03:20"
    assert f"{subjob} (PBS changes no subjob)" in said
    assert "foretime" not in parse_hooks(pbs.checked(["qmgr", "-c", "list hook"]))


# What comes later


@pytest.fixture
def daemon(foretime: InstalledForetime) -> Daemon:
    """Give Foretime's daemon beside a server; it runs from `Daemon.start` on."""
    return Daemon(foretime)


class Daemon:
    """``foretime serve`` as its own user, a manager of PBS, who may read dedicated_time."""

    def __init__(self, foretime: InstalledForetime) -> None:
        self.foretime, self.pbs = foretime, foretime.server
        self.pbs.qmgr("set server managers += foretime@*")
        (self.pbs.home / "sched_priv").chmod(0o751)
        self._log = foretime.folder / "log"
        settings = foretime.settings_file.read_text()
        logs = 'kind = "pbs"\npbs_accounting_dir = ""\npbs_server_logs_dir = ""'
        foretime.settings_file.write_text(settings.replace('kind = "pbs"', logs))

    def start(self, *planned: str) -> None:
        """Start it, and wait until it has seen these jobs planned."""
        program = Path(sys.executable).with_name("foretime")
        serve = f"{program} serve --settings {self.foretime.settings_file} >{self._log} 2>&1 &"
        self.pbs.checked(["sh", "-c", serve], user="foretime")
        for job in planned:
            self.wait_for(job, lambda job: "is planned with" in self.explain(job))

    def wait_for(self, job: str, condition: Callable[[str], bool]) -> None:
        self.pbs.wait_for(lambda: condition(job), f"{job}; the daemon says: {self.log()}")

    def explain(self, job: str) -> str:
        return self.foretime.run("explain", job).stdout

    def log(self) -> str:
        return self._log.read_text()

    def waits_for_whole(self, *jobs: str) -> None:
        """Wait until jobs are planned with all of their walltime, and the daemon has said why."""
        for job in jobs:
            self.wait_for(
                job, lambda job: soft(self.pbs, job) == self.pbs.resource(job, "walltime")
            )
            self.wait_for(job, lambda job: "planned with all of it again" in self.explain(job))
            assert "it could reach a reservation or dedicated time" in self.explain(job)
            assert job in self.log().partition("before a reservation: ")[2]


def announce_dedicated_time(pbs: PbsServer, in_s: int) -> int:
    """Write one of an hour that begins so soon, to the minute; gives when."""
    begin = int(time.time() + in_s) // 60 * 60
    words = [
        time.strftime("%m/%d/%Y %H:%M", time.localtime(when)) for when in (begin, begin + 3600)
    ]
    with (pbs.home / "sched_priv/dedicated_time").open("a") as file:
        file.write(" ".join(words) + "\n")
    pbs.run(["pkill", "-HUP", "--exact", "pbs_sched"])
    return begin


def test_dedicated_time_announced_later_takes_plans_back(daemon: Daemon) -> None:
    pbs = daemon.pbs
    running = pbs.qsub("-lwalltime=10000", "-lselect=1:ncpus=8")
    pbs.wait_for_state(running, "R")
    waiting, short = pbs.qsub("-lwalltime=9000"), pbs.qsub("-lwalltime=500")
    daemon.start(running, waiting, short)
    announce_dedicated_time(pbs, 7200)
    daemon.waits_for_whole(running, waiting)
    assert soft(pbs, short) == "00:01:40"


def test_a_job_planned_before_dedicated_time_was_announced_does_not_start_into_it(
    daemon: Daemon,
) -> None:
    pbs = daemon.pbs
    waiting = pbs.qsub("-lwalltime=9000", "-h")
    daemon.start(waiting)
    announce_dedicated_time(pbs, 7200)
    daemon.waits_for_whole(waiting)
    pbs.checked(["qrls", waiting])
    pbs.wait_for(lambda: "comment" in pbs.job(waiting), "a look at the queue")
    assert "dedicated time" in pbs.job(waiting)["comment"].lower()
    assert pbs.job(waiting)["job_state"] == "Q"


def test_a_reservation_made_later_takes_plans_back(daemon: Daemon) -> None:
    pbs = daemon.pbs
    running = pbs.qsub("-lwalltime=10000")
    pbs.wait_for_state(running, "R")
    waiting = pbs.qsub("-lwalltime=9000", "-h")
    daemon.start(running, waiting)
    begin = time.strftime("%Y%m%d%H%M.%S", time.localtime(time.time() + 7200))
    asked = ["pbs_rsub", f"-R{begin}", "-D600", "-lselect=1:ncpus=4", "-I120"]
    assert "CONFIRMED" in pbs.checked(asked, user="manager")
    daemon.waits_for_whole(running, waiting)


def test_a_job_moved_away_from_its_walltime_loses_soft_walltime(daemon: Daemon) -> None:
    pbs = daemon.pbs
    for name in ("with", "without"):
        pbs.qmgr(f"create queue {name} queue_type=e,started=t,enabled=t")
    pbs.qmgr("set queue with resources_default.walltime = 1000")
    held, running = pbs.qsub("-qwith", "-h"), pbs.qsub("-qwith", "-h")
    daemon.start(held, running)
    pbs.checked(["qmove", "without", held, running])
    pbs.checked(["qrls", running])
    pbs.wait_for_state(running, "R")
    for job in (held, running):
        daemon.wait_for(job, lambda job: soft(pbs, job) is None)
        assert pbs.resource(job, "walltime") is None


def test_a_job_that_starts_without_a_walltime_has_lost_soft_walltime(
    foretime: InstalledForetime,
) -> None:
    """The hook's part, where no daemon has looked in between."""
    pbs = foretime.server
    for name in ("with", "without"):
        pbs.qmgr(f"create queue {name} queue_type=e,started=t,enabled=t")
    pbs.qmgr("set queue with resources_default.walltime = 1000")
    job = pbs.qsub("-qwith", "-h")
    pbs.checked(["qmove", "without", job])
    assert soft(pbs, job) == "00:03:20"
    pbs.checked(["qrls", job])
    pbs.wait_for_state(job, "R")
    assert soft(pbs, job) is None


def test_a_user_who_takes_the_walltime_away_takes_soft_walltime_too(
    foretime: InstalledForetime,
) -> None:
    pbs = foretime.server
    job = pbs.qsub("-lwalltime=1000", "-h")
    pbs.checked(["qalter", "-lwalltime=", job], user="alice")
    assert (soft(pbs, job), pbs.resource(job, "walltime")) == (None, None)


# qmgr's own words


def test_wrapped_lists_of_events_are_read_whole(pbs: PbsServer) -> None:
    listed = parse_hooks(pbs.checked(["qmgr", "-c", "list hook"]))["pbs_cgroups"]
    assert len(listed.events) == 11
    assert {"execjob_begin", "execjob_preresume", "exechost_startup"} < listed.events
    assert listed.number("order") == 100
