"""A short ``foretime study live-slurm``: two arms, 40 jobs, some three minutes, and its report."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from foretime_studies.live_slurm.runs import LiveRun, kept_runs

from tests.slurm.harness.slurm_releases import SlurmRelease

MOST = 0.6
"""Of plain's mean wait: a replay says 0.26, and a busy machine adds to both."""


def run(release: SlurmRelease) -> tuple[dict[str, LiveRun], dict[str, Any]]:
    """Run the study on a release; give its runs and what it reports."""
    program = Path(sys.executable).with_name("foretime")
    with tempfile.TemporaryDirectory(prefix="foretime-study-") as folder:
        command = [
            *(str(program), "study", "live-slurm", "--workload", "short", "--arm", "plain"),
            *("--arm", "start", "--release", release.name, "--runs", "1", "--copies", "1"),
            *("--workers", "1", "--json", "-o", folder),
        ]
        reply = subprocess.run(command, capture_output=True, text=True, check=False)
        assert reply.returncode == 0, reply.stderr
        said = [path.read_text() for path in Path(folder).rglob("*.log")]
        assert not said, said
        runs = {each.name.arm: each for each in kept_runs(Path(folder) / "runs")}
        return runs, json.loads(reply.stdout)


EXPERIMENT = run


def test_jobs_wait_less_where_they_are_started_at_once(experiment: Any) -> None:
    runs, _ = experiment

    assert len(runs["plain"].wait) == len(runs["start"].wait) == 40
    assert runs["start"].wait.mean() <= MOST * runs["plain"].wait.mean()


def test_jobs_were_raised_and_few_were_missed(experiment: Any) -> None:
    runs, _ = experiment

    assert runs["start"].circumstances.raised >= 19
    assert runs["start"].circumstances.missed <= runs["start"].circumstances.raised / 4
    assert runs["plain"].circumstances.raised == 0


def test_the_replay_says_which_arm_is_better(experiment: Any) -> None:
    _, report = experiment
    waits = next(table for table in report["tables"] if table["key"] == "waits")
    place = next(at for at, each in enumerate(waits["columns"]) if each["title"] == "foretold, s")
    plain, start = (float(row[place]) for row in waits["rows"])

    assert start <= MOST * plain
