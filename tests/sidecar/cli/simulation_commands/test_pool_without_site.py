"""Without a site a replay has one pool: nodes and GPUs that jobs ask for are left out, and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]
FIELDS = (
    "JobIDRaw|User|Account|Partition|Submit|ElapsedRaw|ReqCPUS|NNodes|AllocTRES|TimelimitRaw|State"
)
TOLD = "What jobs ask for besides processors (nodes, GPUs, ...) does not count."


@pytest.mark.parametrize("scheduler", ["slurm", "pbs"])
def test_nodes_and_gpus_of_sacct_refuse_no_job(run: Run, tmp_path: Path, scheduler: str) -> None:
    asked = ["2|billing=8,cpu=8,gres/gpu=2,node=2", "1|billing=8,cpu=8,node=1"]
    rows = [
        f"{number}|ann|physics|gpu|2026-01-01T00:0{number}:00|600|8|{of_nodes}|20|COMPLETED"
        for number, of_nodes in enumerate(3 * asked, start=1)
    ]
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join([FIELDS, *rows, ""]))
    options = ("--processors", "16", "--warm-up", "0", "--scheduler", scheduler)
    code, out, err = run("replay", str(path), *options)
    assert (code, err) == (0, "")
    assert "6 jobs, 16 processors" in out
    assert TOLD in " ".join(out.split())


def test_nothing_is_told_of_jobs_that_ask_for_processors_alone(run: Run) -> None:
    code, out, _ = run("replay", "--generate", "lublin2003", "--jobs", "30", "--warm-up", "0")
    assert code == 0
    assert TOLD not in " ".join(out.split())
