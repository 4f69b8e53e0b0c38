"""The prolog under a fake squeue and scontrol."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from foretime_sim.plugin_files import plugin_file

NOTE = "foretime:treq=90,tsched=30"


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.comment, self.limit, self.update_fails = f"other {NOTE}", "30:00", 0
        self.site_code: int | None = None
        self.unknown = "AdminComment"  # as in 22.05

    def run(self, **environment: str) -> tuple[int, list[str]]:
        """Give the prolog's exit code and the scontrol calls."""
        folder = self.folder
        calls = folder / "calls"
        calls.unlink(missing_ok=True)
        (folder / "comment").write_text(self.comment + "\n")
        self._program(
            "squeue",
            f'case "$*" in *{self.unknown}*) exit 1;;'
            f' *admin_comment*|*AdminComment*) cat "{folder}/comment";;'
            f' *) echo "{self.limit}";; esac',
        )
        self._program(
            "scontrol",
            f'echo "$*" >> "{calls}"; [ "$(wc -l < "{calls}")" -gt {self.update_fails} ]',
        )
        self._program("logger", ":")
        self._program("sleep", ":")
        if self.site_code is not None:
            self._program("prolog_slurmctld.site", f"exit {self.site_code}")
        prolog = folder / "prolog_slurmctld"
        prolog.write_bytes(plugin_file("slurm/prolog_slurmctld").read_bytes())
        done = subprocess.run(
            ["/bin/sh", prolog],
            env={
                "PATH": f"{folder}:{os.environ['PATH']}",
                **({"SLURM_JOB_ID": "12"} | environment),
            },
            check=False,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        return done.returncode, calls.read_text().splitlines() if calls.exists() else []

    def _program(self, name: str, body: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


@pytest.mark.parametrize("limit", ["30:00", "00:30:00", "0-00:30:00", "  30:00  "])
def test_limit_is_raised(cluster: Cluster, limit: str) -> None:
    cluster.limit = limit
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])


def test_newer_name_of_the_field(cluster: Cluster) -> None:
    cluster.unknown = "admin_comment"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])


def test_days(cluster: Cluster) -> None:
    cluster.comment, cluster.limit = "foretime:treq=9000,tsched=1568", "1-02:08:00"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=9000"])


def test_array_task(cluster: Cluster) -> None:
    code, calls = cluster.run(SLURM_ARRAY_JOB_ID="7", SLURM_ARRAY_TASK_ID="3")
    assert (code, calls) == (0, ["update JobId=7_3 TimeLimit=90"])


@pytest.mark.parametrize(
    ("comment", "limit"),
    [
        (NOTE, "20:00"),  # lowered by its user since
        (NOTE, "01:00:00"),  # changed by an administrator since
        (NOTE, "UNLIMITED"),
        (NOTE, ""),
        ("", "30:00"),
        ("x" + NOTE, "30:00"),
        (NOTE + "x", "30:00"),
        ("foretime:treq=10,tsched=30", "30:00"),
    ],
)
def test_other_jobs_are_left_alone(cluster: Cluster, comment: str, limit: str) -> None:
    cluster.comment, cluster.limit = comment, limit
    assert cluster.run() == (0, [])


def test_retries_are_bounded_and_failure_harms_no_job(cluster: Cluster) -> None:
    cluster.update_fails = 2
    code, calls = cluster.run()
    assert (code, len(calls)) == (0, 3)
    cluster.update_fails = 99
    code, calls = cluster.run()
    assert (code, len(calls)) == (0, 3)
    assert cluster.run(SLURM_JOB_ID="") == (0, [])


def test_site_script_answers(cluster: Cluster) -> None:
    cluster.site_code = 5
    assert cluster.run() == (5, ["update JobId=12 TimeLimit=90"])
