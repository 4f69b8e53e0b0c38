"""The prolog under a fake squeue and scontrol."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from foretime_sim.mocks.plugin_files import plugin_file

NOTE = "foretime:treq=90,tsched=30"


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.comment, self.limit, self.update_fails = f"{NOTE} other", "30:00", 0
        self.longest: dict[str, str] = {}  # MaxTime by slurm_partition
        self.partition = "main"
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
            f' *admin_comment*|*AdminComment*) cut -c 1-4096 "{folder}/comment";;'
            f' *Partition*) echo "{self.partition}   ";;'
            f' *) echo "{self.limit}";; esac',
        )
        shown = "".join(
            f' "--oneliner show partition {name}")'
            f' echo "PartitionName={name} MaxTime={time} MinNodes=0"; exit;;'
            for name, time in ({"main": "UNLIMITED"} | self.longest).items()
        )
        self._program(
            "scontrol",
            f'case "$*" in {shown} *show*) exit 1;; esac\n'
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


def test_the_newer_name_of_the_field_does_as_well(cluster: Cluster) -> None:
    cluster.unknown = "admin_comment"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])


@pytest.mark.parametrize("more", [",generation=7", ",generation=7,own=4"])
def test_what_else_is_noted(cluster: Cluster, more: str) -> None:
    cluster.comment = f"{NOTE}{more} other"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])


def test_a_limit_of_days_is_raised(cluster: Cluster) -> None:
    cluster.comment, cluster.limit = "foretime:treq=9000,tsched=1568", "1-02:08:00"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=9000"])


def test_an_array_task_is_raised_by_its_own_id(cluster: Cluster) -> None:
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
        (NOTE + ",x", "30:00"),
        ("foretime:treq=90,tmin=30,generation=7", "30:00"),
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


def test_note_is_read_before_the_long_comment_of_another(cluster: Cluster) -> None:
    cluster.comment = f"{NOTE} {'x y' * 3000} foretime:treq=900,tsched=30"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])
    cluster.comment = f"{NOTE} {'foretime:treq=60,tsched=30 ' * 300}"
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])


@pytest.mark.parametrize(
    ("partition", "longest", "limit"),
    [
        ("short", "01:00:00", "60"),
        ("short", "1-00:00:00", "90"),
        ("short", "01:30:00", "90"),
        ("main,short", "45:00", "45"),
        ("short,main", "00:31:00", "31"),
        ("short", "30:00", None),
        ("short", "20:00", None),
    ],
)
def test_limit_is_not_raised_above_that_of_the_partition(
    cluster: Cluster, partition: str, longest: str, limit: str | None
) -> None:
    cluster.longest = {"short": longest}
    expected = [f"update JobId=12 TimeLimit={limit}"] if limit else []
    assert cluster.run(SLURM_JOB_PARTITION=partition) == (0, expected)
    cluster.partition = partition
    assert cluster.run() == (0, expected)


def test_limit_is_raised_if_the_partition_cannot_be_told(cluster: Cluster) -> None:
    assert cluster.run(SLURM_JOB_PARTITION="gone") == (0, ["update JobId=12 TimeLimit=90"])
    cluster.partition = ""
    assert cluster.run() == (0, ["update JobId=12 TimeLimit=90"])
    cluster.longest = {"odd": "soon"}
    assert cluster.run(SLURM_JOB_PARTITION="odd") == (0, ["update JobId=12 TimeLimit=90"])


def test_the_exit_code_of_the_sites_own_script_stays(cluster: Cluster) -> None:
    cluster.site_code = 5
    assert cluster.run() == (5, ["update JobId=12 TimeLimit=90"])
