"""The daemon reads the site of a live PBS, keeps it fresh, and forecasts by it.

It runs as its own user, with the rights that contrib/systemd/foretime.service.d/pbs.conf tells to
give, and no more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.pbs.installed_foretime import InstalledForetime, daemon_on
from tests.pbs.pbs_server import PbsServer
from tests.pbs.site_runs import bring_up
from tests.pbs.test_daemon import documented_rights

SHARES = "alice 61 root 50\nbob 62 root 50\n"
_SETTINGS = "\n[forecast]\nsite_interval_s = 60\ncpu_percent = 100\n"


@pytest.fixture(scope="module")
def server(openpbs: None) -> Iterator[PbsServer]:
    """Four hosts of four CPUs: nobody passes who waits first, and shares decide who does."""
    configuration = {
        "resource_group": SHARES,
        "qmgr": ["set server backfill_depth = 0"],
        "sched_config": {
            "strict_ordering": "True ALL",
            "fair_share": "True ALL",
            "fairshare_usage_res": "ncpus*walltime",
        },
    }
    with bring_up(configuration) as server:
        # More than bob's jobs can use meanwhile.
        server.checked(["pbsfs", "-s", "alice", "500000"])
        yield server


@pytest.fixture(scope="module")
def foretime(server: PbsServer) -> Iterator[InstalledForetime]:
    """The daemon, on three hosts taken for an hour, with a job that waits for all four."""
    taken = server.qsub("-lselect=3:ncpus=4", "-lwalltime=3600", "-lplace=scatter")
    server.wait_for_state(taken, "R")
    server.qsub("-lselect=4:ncpus=4", "-lwalltime=3600", "-lplace=scatter", user="bob")
    installed = InstalledForetime(server)
    installed.settings_file.write_text(installed.settings_file.read_text() + _SETTINGS)
    for command in documented_rights():
        server.checked(command)
    daemon = daemon_on(server, server.folder / "home/foretime/log")
    yield installed
    server.run(["pkill", "--exact", "foretime"])
    daemon.wait(60)


def answered(
    foretime: InstalledForetime, until: Callable[[Any], object], *words: str, user: str = "root"
) -> Any:
    """Ask until the answer is the one that is waited for; gives the last."""
    answer: Any = None

    def is_so() -> object:
        nonlocal answer
        reply = foretime.run(*words, "--json", user=user)
        if reply.returncode:
            return False
        answer = json.loads(reply.stdout)
        return until(answer)

    try:
        foretime.server.wait_for(is_so, " ".join(words), 120)
    except TimeoutError as error:
        log = (foretime.server.folder / "home/foretime/log").read_text()
        raise AssertionError(f"{error}\n{answer}\n{log}") from None
    return answer


def is_by_site(answer: Any) -> bool:
    return any("this site's PBS" in text for text in answer["assumptions"])


# For two CPUs for ten minutes, of which there are four.
SMALL = ("wait", "-n", "2", "-t", "10")


def test_it_is_read_and_forecast_by(foretime: InstalledForetime) -> None:
    status = answered(foretime, lambda told: told["daemon"]["site"]["read_at"], "status")
    site = status["daemon"]["site"]
    assert (site["source"], site["problem"], site["queues"]) == ("PBS", "", 1)
    answer = answered(foretime, is_by_site, *SMALL, user="alice")
    assert answer["assumptions"][0].startswith("the queue is simulated as this site's PBS ")
    assert answer["assumptions"][0].endswith("by its order, fair share and limits")
    # A generic backfilling would start it at once; this PBS lets nobody pass.
    assert answer["likely_wait_s"] > 60
    job = foretime.server.qsub("-lselect=1:ncpus=2", "-lwalltime=600")
    foretime.server.cycle()
    assert foretime.server.job(job)["job_state"] == "Q"
    # Bob has used less, and goes before alice, who came before him.
    bobs = foretime.server.qsub("-lselect=4:ncpus=4", "-lwalltime=600", user="bob")

    def both(told: Any) -> bool:
        return is_by_site(told) and told["likely_wait_s"] is not None

    first = answered(foretime, both, "wait", bobs, user="bob")["likely_wait_s"]
    last = answered(foretime, both, "wait", job, user="alice")["likely_wait_s"]
    assert first < last
    shown = foretime.checked("status")
    assert "\nsite     PBS: release " in shown
    assert ", 1 queue, read " in shown
    foretime.server.run(["qdel", job, bobs])


def test_a_change_of_the_server_is_seen(foretime: InstalledForetime) -> None:
    answered(foretime, is_by_site, *SMALL, user="alice")
    foretime.server.qmgr("set server backfill_depth = 2")
    answer = answered(
        foretime,
        lambda told: is_by_site(told) and told["likely_wait_s"] == 0,
        *SMALL,
        user="alice",
    )
    assert answer["likely_wait_s"] == 0
    job = foretime.server.qsub("-lselect=1:ncpus=2", "-lwalltime=600")
    foretime.server.wait_for_state(job, "R")


def test_a_host_that_is_offline_takes_no_jobs(foretime: InstalledForetime) -> None:
    """It is away at the next look, whenever the site was read."""
    foretime.server.qmgr("set node vn3 state = offline")
    answered(
        foretime,
        lambda told: is_by_site(told) and told["likely_wait_s"] > 60,
        *SMALL,
        user="alice",
    )
    foretime.server.qmgr("set node vn3 state = free")
