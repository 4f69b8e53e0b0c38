"""A live run whose cluster is lost ends at once, and says what became of the cluster."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite

from tests.slurm.harness import cluster_answers
from tests.slurm.harness.cluster_answers import LostClusterError
from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.runs import live_run
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.run_configurations import TEN_BY_TEN, RunConfiguration
from tests.slurm.runs.run_job import RunJob

_LASTS_S = 600


def _kill(cluster: SlurmCluster) -> None:
    daemon = psutil.Process(cluster.slurmctld.pid).children()[0]
    os.kill(daemon.pid, signal.SIGKILL)
    cluster.slurmctld.wait(10)


def _forget(cluster: SlurmCluster) -> None:
    cluster.stop_slurmctld()
    cluster.start_slurmctld("-c")


def _lock_out(cluster: SlurmCluster) -> None:
    """Undo a mount without which no command runs."""
    cluster.checked(["umount", "/etc/slurm"])


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for nothing."""
    monkeypatch.setattr(live_run, "_SETTLE_S", 0)
    monkeypatch.setattr(cluster_answers, "SILENT_S", 1)


def _configuration(*jobs: RunJob) -> RunConfiguration:
    site = SlurmSite(TEN_BY_TEN, priority=SlurmPriority(multifactor=False))
    taken = jobs or tuple(RunJob(0, user, 60, _LASTS_S) for user in ("alice", "bob"))
    return RunConfiguration("harmed", "Some jobs.", site, lambda: list(taken))


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (_kill, ["squeue -h -o %i answered 1", "slurmctld ended with", "Running as primary"]),
        (_forget, ["took jobs ['1', '2'], 2 of 2, and tells of them no more", "is UP"]),
        (_lock_out, ["squeue -h -o %i answered 1: nsenter: cannot open", "has run for "]),
    ],
)
def test_a_run_says_at_once_what_became_of_its_cluster(
    release: SlurmRelease, harm: Callable[[SlurmCluster], None], told: list[str], tmp_path: Path
) -> None:
    class HarmedRun(LiveRun):
        def _submit_all(self) -> None:
            super()._submit_all()
            harm(self.cluster)

    with pytest.raises(LostClusterError) as caught:
        HarmedRun(_configuration(), release, tmp_path).run()

    for words in told:
        assert words in str(caught.value)


def test_a_job_is_not_refused_by_a_cluster_that_is_lost(
    release: SlurmRelease, tmp_path: Path
) -> None:
    class HarmedRun(LiveRun):
        def _submit(self, number: int, job: RunJob) -> None:
            if number == 1:
                _lock_out(self.cluster)
            super()._submit(number, job)

        def _drain(self) -> None:
            raise AssertionError(f"taken for refused: {self._refused}")

    with pytest.raises(LostClusterError, match="squeue -h -o %i answered 1: nsenter"):
        HarmedRun(_configuration(), release, tmp_path).run()


def test_no_job_is_missed_where_some_are_arrays(release: SlurmRelease, tmp_path: Path) -> None:
    array = RunJob(0, "bob", 60, 1, array_tasks=3, array_most_running=2)
    configuration = _configuration(array, RunJob(0, "alice", 60, 1))

    outcome, _ = LiveRun(configuration, release, tmp_path).run()

    assert [job[-1] for job in outcome["jobs"]] == ["COMPLETED"] * 4
