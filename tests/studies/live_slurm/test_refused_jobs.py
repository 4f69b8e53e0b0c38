"""A run of the study ends with the first job that Slurm refuses: it needs all of them."""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
from foretime_studies.live_slurm.arms import ARMS
from foretime_studies.live_slurm.workloads import LiveWorkload

from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.runs.live_arm import ArmRun


class RefusingCluster:
    """Answers every question, and takes no job."""

    def run(self, words: Any, **_: object) -> CompletedProcess[str]:
        return CompletedProcess(words, 0, "", "")

    def try_sbatch(self, *words: str, **_: object) -> CompletedProcess[str]:
        return CompletedProcess(words, 1, "", "sbatch: error: Invalid account\n")


def test_a_refused_job_ends_the_run(tmp_path: Path) -> None:
    release = SlurmRelease("26.05", Path("/"), (26, 5, 5), "")
    run = ArmRun(LiveWorkload.named("short"), ARMS["plain"], release, tmp_path)
    run.cluster = RefusingCluster()  # type: ignore[assignment]

    with pytest.raises(RuntimeError, match="job 0 was refused: sbatch: error: Invalid account"):
        run._submit_all()
