"""Slurm's own plan beside our forecasts on a live cluster: as squeue tells it, and less near."""

from __future__ import annotations

import time
from pathlib import Path

from fastapi.testclient import TestClient
from foretime_sidecar.clients.client import Cursor
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.self_metrics import Health
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.web.application import create_app
from foretime_sidecar.web.auth.callers import Caller, caller_of
from foretime_sidecar.web.auth.identity import Identity
from foretime_sidecar.web.auth.peer import Peer

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.test_served_forecasts import USED_S, WHOLE_MACHINE, past_jobs, started_at

_ROOT = Caller(Identity.of_peer(Peer(1, 0, 0)))


def told_by_squeue(slurm: SlurmCluster) -> dict[str, str]:
    """Say when Slurm plans to start each job, by ``squeue --start``."""
    lines = slurm.run(["squeue", "--start", "--noheader", "--format=%i %S"]).stdout.splitlines()
    return dict(line.split() for line in lines)


def test_slurms_own_plan_is_told_and_our_likely_start_is_nearer(
    slurm: SlurmCluster, tmp_path: Path
) -> None:
    settings = Settings.model_validate({"table": {"path": str(tmp_path / "table")}})
    client = SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1))
    store, now = Store(tmp_path / "store"), int(time.time())
    store.add_finished(list(past_jobs(now)), Cursor(now))
    sidecar = Sidecar(settings, client, store, forecasts=True)
    assert sidecar.forecasting is not None
    app = create_app(sidecar, Health(now), time.time)
    app.dependency_overrides[caller_of] = lambda: _ROOT
    api = TestClient(app, base_url="http://localhost")
    script = f"sleep {USED_S}"
    slurm.wait_for_state(slurm.sbatch(*WHOLE_MACHINE, script=script), "RUNNING")
    waiting = [slurm.sbatch(*WHOLE_MACHINE, script=script) for _ in range(2)]
    later = slurm.sbatch(*WHOLE_MACHINE, "--begin=now+1hour")
    held = slurm.sbatch(*WHOLE_MACHINE, "--hold")

    deadline = time.monotonic() + 60
    while "N/A" in (said := {each: told_by_squeue(slurm)[each] for each in waiting}).values():
        assert time.monotonic() < deadline, "backfill plans the jobs within a minute"
        time.sleep(0.5)
    sidecar.look(int(time.time()))
    sidecar.forecasting.refresh()
    jobs = {job["job_id"]: job for job in api.get("/v1/jobs/forecasts").json()["jobs"]}
    again = {each: told_by_squeue(slurm)[each] for each in waiting}

    def on_the_clock(job_id: str) -> str:
        planned = jobs[job_id]["scheduler_start_time"]
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(planned))

    for job_id in waiting:
        assert on_the_clock(job_id) in (said[job_id], again[job_id])
    # Of these Slurm tells no plan: when the one begins, and nothing of the other.
    assert jobs[later]["scheduler_start_time"] is jobs[held]["scheduler_start_time"] is None

    slurm.wait_for_state(waiting[-1], "RUNNING", timeout_s=180)
    starts = [started_at(slurm, job_id) for job_id in waiting]
    planned = [jobs[job_id]["scheduler_start_time"] for job_id in waiting]
    likely = [jobs[job_id]["start_time"]["0.5"] for job_id in waiting]
    errors = [
        sum(abs(a - b) for a, b in zip(starts, each, strict=True)) for each in (likely, planned)
    ]
    # Slurm counts on five minutes for each job, alice's jobs take half a minute.
    assert errors[0] < errors[1] / 3
    assert all(start < plan for start, plan in zip(starts, planned, strict=True))
