"""Changes of jobs as the daemon makes them: its own user, over one connection of PBS's library."""

from __future__ import annotations

import json
import sys

import pytest

from tests.pbs.openpbs import PREFIX
from tests.pbs.pbs_server import PbsServer

_CHANGE = """
import json, logging, sys
from pathlib import Path
from foretime_sidecar.clients.pbs.job_changes import ConnectedChanges, pbs_library
logging.basicConfig(level=logging.WARNING)
changes = json.load(sys.stdin)
refused = ConnectedChanges(pbs_library(""), lambda changes: [f"qalter for {len(changes)}"])(changes)
print(json.dumps(refused))
"""


def change(server: PbsServer, changes: dict[str, dict[str, str]], user: str) -> list[str]:
    """Change jobs as a user of the server's host; gives what was refused."""
    said: list[str] = json.loads(
        server.checked([sys.executable, "-c", _CHANGE], user, stdin=json.dumps(changes))
    )
    return said


@pytest.fixture(scope="module")
def server(pbs_of_module: PbsServer) -> PbsServer:
    # Nothing starts; the daemon's user is a manager, as docs/sidecar.md says.
    pbs_of_module.qmgr("set server scheduling = false", "set server managers += foretime@*")
    return pbs_of_module


def soft_walltimes(server: PbsServer, *job_ids: str) -> list[str | None]:
    jobs = server.jobs()
    return [jobs[each]["Resource_List"].get("soft_walltime") for each in job_ids]


def test_many_jobs_are_changed_over_one_connection(server: PbsServer) -> None:
    jobs = [server.qsub("-lwalltime=1000") for _ in range(6)]
    connected = server.log().count("Type 0 request received from foretime@pbs01")
    wanted = {job: {"soft_walltime": str(60 + number)} for number, job in enumerate(jobs)}
    assert change(server, wanted, "foretime") == []
    assert soft_walltimes(server, *jobs) == [f"00:01:0{number}" for number in range(6)]
    by = [line for line in server.log().splitlines() if "Job Modified at request of" in line]
    assert [line.rsplit(" ", 1)[1] for line in by[-6:]] == ["foretime@pbs01"] * 6
    assert server.log().count("Type 0 request received from foretime@pbs01") == connected + 1


def test_a_value_is_taken_away_and_several_are_set_at_once(server: PbsServer) -> None:
    first, second = (server.qsub("-lwalltime=1000") for _ in range(2))
    assert change(server, {first: {"soft_walltime": "60"}}, "foretime") == []
    again = {first: {"soft_walltime": ""}, second: {"walltime": "500", "soft_walltime": "70"}}
    assert change(server, again, "foretime") == []
    assert soft_walltimes(server, first, second) == [None, "00:01:10"]
    assert server.resource(second, "walltime") == "00:08:20"


def test_tasks_of_arrays_are_changed(server: PbsServer) -> None:
    array = server.qsub("-lwalltime=1000", "-J0-3")
    assert change(server, {array: {"soft_walltime": "60"}}, "foretime") == []
    assert soft_walltimes(server, array) == ["00:01:00"]


def test_what_is_refused_is_told_of_each_job_and_the_others_are_changed(server: PbsServer) -> None:
    job = server.qsub("-lwalltime=1000")
    asked = {
        "987654.pbs01": {"soft_walltime": "60"},
        "no job": {"soft_walltime": "60"},
        job: {"soft_walltime": "60"},
    }
    unknown, malformed = change(server, asked, "foretime")
    assert unknown == "987654.pbs01: Unknown Job Id (15001)"
    assert malformed.startswith("no job: ")
    assert soft_walltimes(server, job) == ["00:01:00"]
    (said,) = change(server, {job: {"soft_walltime": "soon"}}, "foretime")
    assert said.startswith(f"{job}: Illegal attribute or resource value")


def test_an_ordinary_user_changes_nobody_elses_job(server: PbsServer) -> None:
    job = server.qsub("-lwalltime=1000")
    assert change(server, {job: {"soft_walltime": "60"}}, "bob") == [
        f"{job}: Unauthorized Request  (15007)"
    ]
    assert soft_walltimes(server, job) == [None]


def test_a_restart_of_the_server_is_survived(server: PbsServer) -> None:
    job = server.qsub("-lwalltime=1000")
    server.stop_daemon("pbs_server")
    (said,) = change(server, {job: {"soft_walltime": "60"}, "1.pbs01": {}}, "foretime")
    assert said.startswith("pbs_server does not change jobs: can't connect: ")
    server.start("pbs_server")
    assert change(server, {job: {"soft_walltime": "60"}}, "foretime") == []
    assert soft_walltimes(server, job) == ["00:01:00"]


def test_the_library_is_the_one_of_pbs_conf(server: PbsServer) -> None:
    script = "from foretime_sidecar.clients.pbs.job_changes import pbs_library as p; print(p(''))"
    said = server.checked([sys.executable, "-c", script], "foretime")
    assert said == f"{PREFIX}/lib/libpbs.so.0\n"
