"""The scheduler keeps its rules with planned jobs as it does without the hook."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.pbs.answers import SETTINGS
from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer


@pytest.fixture(params=["plain", "hooked"])
def server(request: pytest.FixtureRequest, new_server: Callable[..., PbsServer]) -> PbsServer:
    """A server with queues of every kind, without the hook and with it."""
    server = new_server(settings=SETTINGS)
    if request.param == "hooked":
        InstalledForetime(server).install()
    return server


def looked_at(server: PbsServer, job_id: str) -> str:
    """Wait until the scheduler has said why a job does not run; give its words."""

    def said() -> object:
        server.cycle()
        return str(server.job(job_id).get("comment", "")).startswith("Not Running")

    server.wait_for(said, f"the scheduler to look at {job_id}")
    return str(server.job(job_id)["comment"])


def test_limits_preemption_and_dedicated_time_hold_for_planned_jobs(server: PbsServer) -> None:
    # A queue that runs one job of a user's.
    first, second = server.qsub("-qone", "-lwalltime=1000"), server.qsub("-qone", "-lwalltime=1000")
    server.wait_for_state(first, "R")
    said = "Not Running: User has reached queue one running job limit."
    assert looked_at(server, second) == said
    server.checked(["qdel", "-Wforce", first, second])

    # A queue whose jobs go first takes the host from a job that runs; it goes on afterwards.
    whole = ["-lselect=1:ncpus=8", "-lwalltime=1000"]
    slow = server.qsub(*whole)
    server.wait_for_state(slow, "R")
    urgent = server.qsub(*whole, "-qexpress", user="bob", script="sleep 3")
    server.wait_for_state(slow, "S")
    server.wait_for_state(urgent, "F")
    assert server.job(urgent)["Exit_status"] == 0
    server.wait_for_state(slow, "R")
    server.checked(["qdel", "-Wforce", slow])

    # A job that would run on into dedicated time waits for its end, however it is planned: with a
    # fifth it would end before. One that fits starts.
    begins, ends = (
        time.strftime("%m/%d/%Y %H:%M", time.localtime(time.time() + later))
        for later in (600, 6000)
    )
    (server.home / "sched_priv/dedicated_time").write_text(f"{begins} {ends}\n")
    server.run(["pkill", "-HUP", "--exact", "pbs_sched"])
    crosses = server.qsub("-lwalltime=1000")
    assert "dedicated time" in looked_at(server, crosses)
    server.wait_for_state(server.qsub("-lwalltime=100"), "R")
    assert server.job(crosses)["job_state"] == "Q"


def test_a_job_that_would_run_out_of_primetime_waits(server: PbsServer) -> None:
    """A job that would run on out of primetime waits, though with a fifth it would end before."""
    hour = time.localtime().tm_hour
    first = 3 if hour % 12 in range(4, 10) else 9  # more than two hours away
    days = "".join(
        f"{day} {first:02}00 {first + 12}00\n" for day in ("weekday", "saturday", "sunday")
    )
    year = time.localtime().tm_year
    (server.home / "sched_priv/holidays").write_text(f"YEAR {year}\n{days}")
    server.set_sched_config(backfill_prime="True ALL")
    crosses = server.qsub("-lwalltime=50000")
    assert "prime" in looked_at(server, crosses)
    server.wait_for_state(server.qsub("-lwalltime=1000"), "R")
    assert server.job(crosses)["job_state"] == "Q"
    server.set_sched_config(backfill_prime="False ALL")
    server.cycle()
    server.wait_for_state(crosses, "R")
