"""The site of a live PBS is that of its saved output, and says what was set up."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from foretime_sim.reference.pbs.fair_share import FairShare
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsReservation, PbsSite, ShareGroup
from foretime_sim.sites.site_file import format_site, parse_site, read_site

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer
from tests.pbs.site_runs import bring_up

HOUR_S = 3600
SHARES = "staff 60 root 40\nalice 61 staff 30\nbob 62 staff 10\n"
QMGR = (
    "create queue high queue_type=execution, enabled=true, started=true, priority=100",
    "create queue stopped queue_type=execution, enabled=true, started=false",
    "create queue route queue_type=route, enabled=true, started=true, route_destinations=high",
    'set queue high max_run = "[u:PBS_GENERIC=2],[o:PBS_ALL=5]"',
    'set queue high max_run_res.mem = "[u:alice=16gb]"',
    "set queue high resources_max.walltime = 01:30:00",
    "set queue high backfill_depth = 2",
    'set server max_queued = "[u:PBS_GENERIC=100]"',
    "set server default_queue = route",
    "set server backfill_depth = 3",
    "set server resources_default.walltime = 00:10:00",
    'set server job_sort_formula = "10 * ncpus - walltime / 60"',
    "set server scheduler_iteration = 300",
    "set sched preempt_queue_prio = 200",
    "set node vn3 queue = high",
    "set node vn2 state = offline",
    "create hook limits event = 'queuejob,modifyjob'",
)


@pytest.fixture(scope="module")
def configured(openpbs: None) -> Iterator[PbsServer]:
    """A server of four hosts with something of everything, and a reservation."""
    configuration = {
        "qmgr": QMGR,
        "resource_group": SHARES,
        "sched_config": {
            "strict_ordering": "True ALL",
            "fair_share": "True ALL",
            "fairshare_usage_res": "ncpus*walltime",
            "fairshare_decay_time": "12:00:00",
            "job_sort_key": '"ncpus HIGH" ALL',
        },
    }
    with bring_up(configuration) as server:
        from_, to = (time.gmtime(server_time(server) + hours * HOUR_S) for hours in (24, 26))
        words = [time.strftime("%m/%d/%Y %H:%M", each) for each in (from_, to)]
        path = server.home / "sched_priv/dedicated_time"
        path.write_text(path.read_text() + f"{' '.join(words)}\n")
        words = [time.strftime("%Y%m%d%H%M.%S", each) for each in (from_, to)]
        asked = ["-R", words[0], "-E", words[1], "-l", "select=2:ncpus=3"]
        name = server.checked(["pbs_rsub", *asked], "manager").split()[0]
        server.wait_for(
            lambda: "RESV_CONFIRMED" in server.checked(["pbs_rstat", "-f", name]), "a reservation"
        )
        yield server


def server_time(server: PbsServer) -> int:
    return int(server.checked(["date", "+%s"])) // 60 * 60


@pytest.fixture(scope="module")
def foretime(configured: PbsServer) -> InstalledForetime:
    return InstalledForetime(configured)


def imported(foretime: InstalledForetime, name: str, *options: str) -> PbsSite:
    output = foretime.folder / name
    foretime.checked("site", "import", *options, "--output", str(output))
    site = read_site(output)
    assert isinstance(site, PbsSite)
    return site


@pytest.fixture(scope="module")
def live(foretime: InstalledForetime) -> PbsSite:
    return imported(foretime, "live.toml")


def test_live_and_saved_as_documented_are_one(
    foretime: InstalledForetime, live: PbsSite, repository: Path
) -> None:
    documented = (repository / "docs/site.md").read_text()
    block = re.search(r"```\n(mkdir saved\nqmgr .*?)foretime site import", documented, re.DOTALL)
    assert block is not None
    folder = foretime.folder / "by-hand"
    folder.mkdir()
    foretime.server.checked(["bash", "-e"], stdin=f"cd {folder}\n{block[1]}")
    assert imported(foretime, "saved.toml", "--from", str(folder / "saved")) == live


def test_server_and_queues_are_as_they_were_set(live: PbsSite) -> None:
    assert [queue.name for queue in live.queues] == ["workq", "high", "stopped"]
    high = live.queue("high")
    assert (high.priority, high.backfill_depth) == (100, 2)
    assert high.resources_max == {"walltime": 5400}
    assert high.limits == PbsLimits(
        max_run={"u:PBS_GENERIC": 2, "o:PBS_ALL": 5}, max_run_res={"mem": {"u:alice": 16 * 2**30}}
    )
    assert [queue.started for queue in live.queues] == [True, True, False]
    server = live.server
    assert (server.default_queue, server.backfill_depth) == ("high", 3)
    assert server.limits == PbsLimits(max_queued={"u:PBS_GENERIC": 100})
    assert server.resources_default == {"ncpus": 1, "walltime": 600}
    assert server.job_sort_formula == "10 * ncpus - walltime / 60"
    assert server.scheduler_iteration_s == 300


def test_the_scheduler_is_as_its_files_say(live: PbsSite) -> None:
    assert live.scheduler == PbsScheduler(
        strict_ordering=True,
        fair_share=True,
        fairshare_usage_res="ncpus*walltime",
        fairshare_decay_time_s=43_200,
        job_sort_key=(("ncpus", True),),
        preempt_queue_prio=200,
    )
    assert live.share_groups == (
        ShareGroup("staff", "root", 40),
        ShareGroup("alice", "staff", 30),
        ShareGroup("bob", "staff", 10),
    )


def test_hosts_and_what_is_set_aside_are_there(configured: PbsServer, live: PbsSite) -> None:
    assert [host.name for host in live.hosts] == ["pbs01", "vn0", "vn1", "vn2", "vn3"]
    assert [host.resources["ncpus"] for host in live.hosts] == [0, 4, 4, 4, 4]
    assert [host.queue for host in live.hosts] == [None] * 4 + ["high"]
    assert live.machine.nodes == 4
    [(begins, ends)] = live.dedicated_time
    assert ends - begins == 2 * HOUR_S
    assert begins % 60 == 0
    [reservation] = live.reservations
    has = {"vn0": {"ncpus": 3}, "vn1": {"ncpus": 3}}
    assert reservation == PbsReservation(reservation.name, begins, ends, has)


def test_what_is_not_modelled_is_named(live: PbsSite) -> None:
    assert live.not_modelled == (
        "Hosts that take no jobs now are counted as if they did: vn2.",
        "Queue route is a routing queue; jobs must name the one they end in.",
        "Jobs that name no queue go to route, a routing queue; here to high.",
        "Hook limits (modifyjob, queuejob): what it changes in jobs or refuses.",
    )


def test_the_file_is_written_as_it_is_read(live: PbsSite) -> None:
    assert parse_site(format_site(live), source="made") == live


def test_usage_is_that_of_the_fair_share_tree(foretime: InstalledForetime, live: PbsSite) -> None:
    server = foretime.server
    server.checked(["pbsfs", "-s", "alice", "5000"])
    after = imported(foretime, "used.toml")
    assert {group.name: group.usage for group in after.share_groups} == {
        "staff": 5001.0,
        "alice": 5000.0,
        "bob": 1.0,
    }
    assert after.usage_at is not None
    assert abs(after.usage_at - time.time()) < HOUR_S
    untimed = replace(after, usage_at=live.usage_at, decayed_at=live.decayed_at)
    assert replace(untimed, share_groups=live.share_groups) == live


def test_usage_decays_as_the_site_says(foretime: InstalledForetime) -> None:
    """What the specification makes of a site that was read is what is read later."""
    server = foretime.server
    server.set_sched_config(fairshare_decay_time="00:00:08")
    server.checked(["pbsfs", "-s", "alice", "80000"])
    for _ in range(2):  # it is read once more, as pbsfs has changed it
        server.cycle()
        time.sleep(10)
    before = imported(foretime, "before.toml")
    time.sleep(20)
    server.cycle()
    server.wait_for(
        lambda: imported(foretime, "after.toml", "--force").usage_at != before.usage_at,
        "a cycle that decays",
    )
    after = imported(foretime, "after.toml", "--force")
    assert before.decayed_at is not None
    assert after.usage_at is not None
    shares = FairShare(before.share_groups, before.scheduler, before.decayed_at)
    shares.begin_cycle([], after.usage_at)
    assert after.decayed_at == shares.decayed_at > before.decayed_at
    used, first = (
        {group.name: group.usage for group in site.share_groups}["alice"]
        for site in (after, before)
    )
    assert used == pytest.approx(shares.by_name["alice"].usage, abs=1)
    assert used < first < 80_000


def test_who_may_not_read_the_files_is_told_what_to_do(foretime: InstalledForetime) -> None:
    reply = foretime.run("site", "import", user="alice")
    assert (reply.returncode, reply.stdout) == (1, "")
    assert "sched_priv/sched_config: can't be read: Permission denied; do this as root" in (
        reply.stderr
    )
