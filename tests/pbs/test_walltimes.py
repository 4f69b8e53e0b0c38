"""A job is killed at its walltime and never before; no soft_walltime brings pbs_sched down."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from foretime_sidecar.table.table import TableRow

from tests.pbs.installed_foretime import InstalledForetime
from tests.pbs.pbs_server import PbsServer

# What the server rounds to 0 s.
ZEROS = ("0", "00", "00:00:00", "0.4", "0:00:00.499")
WALLTIME_S = 30
KILLED_AT_WALLTIME = -29  # JOB_EXEC_KILL_WALLTIME
# A job outlives its soft_walltime by far, and ends long before its walltime.
QUICK_S = 20


def epoch(server: PbsServer, name: str) -> float:
    """Tell a time that a job noted of itself."""
    return float((server.folder / "home/alice" / name).read_text())


@pytest.fixture
def servers(new_server: Callable[..., PbsServer]) -> dict[str, PbsServer]:
    """A server without the hook, and one that plans all with a tenth."""
    hooked = new_server(ncpus=16)
    foretime = InstalledForetime(hooked)
    foretime.install()
    foretime.publish([TableRow("user", "alice", 0, 100_000)])
    return {"plain": new_server(ncpus=16), "hooked": hooked}


def test_jobs_are_killed_at_their_walltime_and_never_before(servers: dict[str, PbsServer]) -> None:
    kinds = {
        "batch": [],
        "array": ["-J1-2"],
        "not rerunnable": ["-rn"],
        "chunks": ["-lselect=2:ncpus=1", "-lplace=pack"],
    }
    begun: dict[tuple[str, str, str], str] = {}
    for name, server in servers.items():
        note = f"date +%s.%N > {server.folder}/home/alice"
        for kind, options in kinds.items():
            words = [f"-lwalltime={WALLTIME_S}", *options]
            began, ended = (f"{note}/$PBS_JOBID.{what}" for what in ("began", "ended"))
            scripts = {"ends": f"{began}; sleep {QUICK_S}; {ended}", "killed": "exec sleep 3600"}
            for fate, script in scripts.items():
                begun[name, kind, fate] = server.qsub(*words, script=script)
    for (name, kind, fate), job_id in begun.items():
        server = servers[name]
        soft = server.resource(job_id, "soft_walltime")
        assert soft == ("00:00:03" if name == "hooked" else None)
        server.wait_for_state(job_id, "F")
        subjobs = [job_id.replace("[]", f"[{index}]") for index in (1, 2)]
        for each in subjobs if "[]" in job_id else [job_id]:
            job = server.job(each)
            ran_s = sum(
                int(part) * unit
                for part, unit in zip(
                    job["resources_used"]["walltime"].split(":"), (3600, 60, 1), strict=True
                )
            )
            if fate == "ends":
                assert job["Exit_status"] == 0, (kind, each)
                lasted = epoch(server, f"{each}.ended") - epoch(server, f"{each}.began")
                assert lasted >= QUICK_S
            else:
                assert job["Exit_status"] == KILLED_AT_WALLTIME, (kind, each)
                # The job may run into the next second while MoM kills it.
                said = rf";{re.escape(each)};walltime (\d+) exceeded limit {WALLTIME_S}\n"
                passed = re.search(said, mom_log(server))
                assert passed, each
                assert WALLTIME_S <= int(passed[1]) <= ran_s, each


def mom_log(server: PbsServer) -> str:
    """Give MoM's log."""
    paths = sorted((server.home / "mom_logs").iterdir())
    return "".join(path.read_text(errors="replace") for path in paths)


def sched_is_well(server: PbsServer) -> None:
    """Look on while a job starts, which needs a cycle."""
    server.cycle()
    job = server.qsub("-lwalltime=100", "-lncpus=0")
    server.wait_for_state(job, "R")
    server.cycle()
    server.wait_for_state(server.qsub("-lwalltime=100", "-lncpus=0"), "R")
    assert server.runs("pbs_sched")


@pytest.mark.parametrize("zero", ZEROS)
def test_pbs_sched_survives_a_walltime_of_0(
    zero: str, foretime_of_module: InstalledForetime
) -> None:
    """An ordinary user's qsub and qalter of jobs that wait, are held, run; of arrays; by qmove."""
    server = foretime_of_module.server
    submitted = server.qsub(f"-lwalltime={zero}", "-h")
    held = server.qsub("-lwalltime=1000", "-h")
    array = server.qsub("-lwalltime=1000", "-h", "-J1-2")
    running = server.qsub("-lwalltime=1000")
    server.wait_for_state(running, "R")
    for job in (held, array, running):
        assert server.resource(job, "soft_walltime") == "00:03:20"
        assert server.run(["qalter", f"-lwalltime={zero}", job], "alice").returncode == 0
        assert server.resource(job, "walltime") == "00:00:00"
    for job in (submitted, held, array, running):
        assert server.resource(job, "soft_walltime") is None
    # By a name that has none of its own, and is given another queue's default.
    if "queue zero" not in server.qmgr("list queue @default"):
        server.qmgr(
            "create queue zero queue_type=e,enabled=true,started=true",
            f"set queue zero resources_default.walltime={zero}",
            "create queue full queue_type=e,enabled=true,started=true",
            "set queue full resources_default.walltime=1000",
        )
    moved = server.qsub("-qfull", "-h")
    assert server.resource(moved, "soft_walltime") == "00:03:20"
    server.checked(["qmove", "zero", moved], "alice")
    for job in (submitted, held, array, moved):
        server.checked(["qrls", job], "alice")
    sched_is_well(server)


def test_a_soft_walltime_of_0_that_a_manager_set_is_taken_away(
    foretime_of_module: InstalledForetime,
) -> None:
    server = foretime_of_module.server
    job = server.qsub("-lwalltime=1000", "-h")
    server.checked(["qalter", "-lsoft_walltime=0", job], "manager")
    assert server.resource(job, "soft_walltime") == "00:00:00"
    server.checked(["qrls", job], "alice")
    server.wait_for_state(job, "R")
    assert server.resource(job, "soft_walltime") is None
    sched_is_well(server)


def test_without_the_hook_a_soft_walltime_of_0_brings_pbs_sched_down(pbs: PbsServer) -> None:
    """What the hook is careful about: if PBS ever mends it, that care may go."""
    job = pbs.qsub("-lwalltime=1000", "-h")
    pbs.checked(["qalter", "-lsoft_walltime=0", job], "manager")
    pbs.checked(["qrls", job], "alice")
    pbs.wait_for_state(job, "R")

    def dead() -> bool:
        if pbs.runs("pbs_sched"):
            pbs.cycle()
        return not pbs.runs("pbs_sched")

    pbs.wait_for(dead, "pbs_sched to die")
