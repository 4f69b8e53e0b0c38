"""The client reads what tests/pbs/record_replies.py recorded from a live OpenPBS."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending
from foretime_sidecar.clients.client import Cursor, QueueState
from foretime_sidecar.clients.pbs.commands import PbsCommands
from foretime_sidecar.clients.pbs.server import parse_hooks

from tests.support.client_checks import READING, Check

ENDED = {
    "0": (Ending.COMPLETED, 5, 100, "alice", "physics"),
    "1": (Ending.FAILED, 0, 100, "bob", None),
    "2": (Ending.TIMED_OUT, 6, 5, "carol", None),
    "3[1]": (Ending.COMPLETED, 2, 100, "bob", None),
    "3[2]": (Ending.COMPLETED, 2, 100, "bob", None),
    "3[3]": (Ending.COMPLETED, 2, 100, "bob", None),
    "5": (Ending.CANCELLED, None, 100, "alice", None),
}


@pytest.fixture
def recorded(repository: Path) -> Path:
    return repository / "tests/assets/pbs/recorded"


@pytest.fixture(params=["logs", "history"])
def client(request: pytest.FixtureRequest, recorded: Path) -> PbsCommands:
    """Both ways to learn of jobs that ended."""

    def run(argv: Sequence[str]) -> str:
        option = "" if argv[1] in ("-t", "-a", "-f") else argv[1]
        ending = "txt" if argv[0] == "pbs_rstat" else "json"
        return (recorded / f"{argv[0]}{option}.{ending}").read_text()

    accounting = recorded / "accounting" if request.param == "logs" else None
    (log,) = (recorded / "server_logs").iterdir()
    noon = datetime.strptime(log.name, "%Y%m%d").replace(hour=12, tzinfo=UTC).timestamp()
    return PbsCommands(run, accounting, log.parent, overlap_s=0, clock=lambda: noon)


@pytest.mark.parametrize("check", READING, ids=lambda check: check.__name__)
def test_reading(check: Check, client: PbsCommands) -> None:
    check(client)


def test_finished_jobs(client: PbsCommands) -> None:
    records = {
        record.job.request.job_id.removesuffix(".pbs01"): record.job
        for record in client.finished_since(Cursor())[0]
    }
    assert set(records) == set(ENDED), "job 4 had no limit, job 7 never started"
    for name, (ending, runtime, requested, user, project) in ENDED.items():
        job = records[name]
        assert job.ending is ending
        assert runtime is None or abs(job.actual_runtime - runtime) <= 2, "MoM's seconds"
        request = job.request
        assert (request.requested_time, request.user, request.project) == (requested, user, project)


def test_what_the_hook_decided_is_found(client: PbsCommands, recorded: Path) -> None:
    notes = {
        record.job.request.job_id: record.admin_comment
        for record in client.finished_since(Cursor())[0]
    }
    decided = "user=alice project=physics queue=workq t_req=100 t_sched=20 decision=queued"
    logged = any(decided in note for job, note in notes.items() if job == "0.pbs01")
    assert logged is (client._accounting is not None), "only where the logs are read"


def test_the_queue(client: PbsCommands) -> None:
    queue = client.queue()
    jobs = {job.request.job_id.removesuffix(".pbs01"): job for job in queue.jobs}
    assert queue.processors == 8
    states = {name: job.state for name, job in jobs.items() if job.state is not QueueState.PENDING}
    assert states == {
        "6": QueueState.RUNNING,
        "8": QueueState.RUNNING,
        "9": QueueState.SUSPENDED,
    }
    planned = {name: job.time_min for name, job in jobs.items()}
    assert planned == {
        **dict.fromkeys(("11", "12[]", "13", "14", "15"), 200),
        "6": 20,
        "8": 400,
        "9": 400,
        "16": None,
        "17": None,
    }
    assert jobs["11"].request.project == 'say"so'
    assert [name for name, job in jobs.items() if job.held] == ["13"]
    assert [name for name, job in jobs.items() if job.dependent] == ["14"]
    assert [name for name, job in jobs.items() if job.shrinks_to_fit] == ["16"]
    assert (jobs["12[]"].tasks, jobs["12[]"].request.array_id) == (5, "12[].pbs01")
    assert jobs["11"].reason.startswith("Not Running: Insufficient amount of resource: ncpus")
    later = jobs["15"]
    assert later.eligible_time is not None
    assert later.eligible_time > later.request.submit_time + 86_400


def test_reservations_and_configuration(client: PbsCommands) -> None:
    (reservation,) = client.reservations()
    assert (reservation.name, reservation.processors) == ("R10.pbs01", 8)
    assert reservation.end_time - reservation.start_time == 3600
    configuration = client.configuration()
    assert (configuration.cluster, configuration.version) == ("pbs01", "23.06.06")
    assert configuration.soft_limit


def test_the_hooks_that_qmgr_lists(recorded: Path) -> None:
    hooks = parse_hooks((recorded / "qmgr-list-hook.txt").read_text())
    ours = hooks["foretime"]
    assert ours.events == {"queuejob", "modifyjob", "runjob", "postqueuejob"}
    assert (ours.enabled, ours.number("order")) == (True, 900)
    assert not hooks["pbs_cgroups"].enabled
