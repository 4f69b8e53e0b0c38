"""When the scheduler itself plans to start a waiting job, as each client reads it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.clients.pbs.json import parse_queue as parse_qstat
from foretime_sidecar.clients.slurm.queue_json import parse_queue as parse_squeue

NOW = 1_700_000_000


@pytest.mark.parametrize(
    ("told", "planned"),
    [
        (NOW, NOW),
        ({"set": True, "infinite": False, "number": NOW}, NOW),
        (0, None),
        ({"set": False, "infinite": False, "number": 0}, None),
    ],
)
@pytest.mark.parametrize("release", ["22.05", "26.05"])
def test_slurms_plan_of_a_waiting_job_is_read(
    release: str, told: object, planned: int | None, repository: Path
) -> None:
    reply = json.loads((repository / f"tests/assets/slurm/{release}/squeue.json").read_text())
    waiting = next(job for job in reply["jobs"] if "PENDING" in job["job_state"])
    waiting["start_time"] = told
    read = parse_squeue({"jobs": [waiting]})
    assert [(job.state, job.start_time) for job in read] == [(QueueState.PENDING, planned)]


@pytest.mark.parametrize(
    ("told", "planned"),
    [({"start_time": "Tue Nov 14 22:13:20 2023"}, NOW), ({"exec_vnode": "(n1:ncpus=1)"}, None)],
)
def test_pbss_estimate_of_a_waiting_job_is_read(
    told: dict[str, str], planned: int | None, repository: Path
) -> None:
    reply = json.loads((repository / "tests/assets/pbs/openpbs/qstat.json").read_text())
    job_id, waiting = next(pair for pair in reply["Jobs"].items() if pair[1]["job_state"] == "Q")
    reply["Jobs"] = {job_id: {**waiting, "estimated": told}}
    (read,) = parse_qstat(json.dumps(reply))
    assert (read.state, read.start_time) == (QueueState.PENDING, planned)
