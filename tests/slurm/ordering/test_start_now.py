"""Jobs started at once on a live Slurm: raised, started by Slurm, and given back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, JobChange
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_releases import SlurmRelease

LIMIT_MIN = 120
_HOURS_AGO = 8 * 3600


class WithoutAccounting(SlurmCommands):
    """A client of a Slurm whose past is in the store already.

    Attributes
    ----------
    before_update
        What is done before the next change, once.
    """

    def __init__(self, runner: SubprocessRunner) -> None:
        super().__init__(runner, 0)
        self.before_update: list[Callable[[], None]] = []

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes, after what is to be done before."""
        while self.before_update:
            self.before_update.pop()()
        super().update(changes)

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Nothing has finished since."""
        del until
        return [], cursor


def _learned(store: Store) -> None:
    """Let alice's jobs of two hours have taken a minute, and bob's two hours."""
    now = int(time.time())
    records = []
    for number in range(80):
        user, runtime = (("alice", 60), ("bob", LIMIT_MIN * 60))[number % 2]
        submitted = now - _HOURS_AGO + 60 * number
        asked = JobRequest(
            f"{10_000_000 + number}", user, None, 1, LIMIT_MIN * 60, submitted, "main"
        )
        done = FinishedJob(asked, submitted, submitted + runtime, runtime, Ending.COMPLETED)
        records.append(FinishedRecord(done, submitted, "COMPLETED"))
    store.add_finished(records, Cursor(now - 60))


@pytest.fixture
def slurm(release: SlurmRelease, new_cluster: Callable[..., SlurmCluster]) -> SlurmCluster:
    """Two of eight CPUs are idle for an hour, until the job at the head can start."""
    cluster = new_cluster(release, nodes=2, conf={"PriorityType": "priority/multifactor"})
    cluster.wait_for_state(cluster.sbatch("-n6", "-t60", user="bob"), "RUNNING")
    cluster.sbatch("-n8", "-t10", user="bob")
    return cluster


@pytest.fixture
def start(slurm: SlurmCluster, tmp_path: Path) -> Iterator[Callable[[], Sidecar]]:
    """Start a daemon that starts jobs at once, and knows alice's and bob's."""
    stores: list[Store] = []

    def start() -> Sidecar:
        settings = Settings.model_validate(
            {
                "table": {"path": str(tmp_path / "table")},
                "hook": {"mode": "enforce", "disable_file": str(tmp_path / "off")},
            }
        )
        new = not stores
        stores.append(Store(tmp_path / "store"))
        if new:
            _learned(stores[0])
        runner = SubprocessRunner(str(slurm.commands), attempts=1)
        sidecar = Sidecar(settings, WithoutAccounting(runner), stores[-1])
        _look(sidecar)  # it learns with its first poll
        return sidecar

    yield start
    for store in stores:
        store.close()


def _look(sidecar: Sidecar) -> None:
    sidecar.look(int(time.time()))
    sidecar.poll(int(time.time()))


def _factors(sidecar: Sidecar) -> Mapping[str, int]:
    return sidecar.client.site_factors()


def _weighed(slurm: SlurmCluster, jobs: int) -> None:
    client = SlurmCommands(SubprocessRunner(str(slurm.commands), attempts=1), 0)
    slurm.wait_for(lambda: len(client.site_factors()) == jobs, "priorities")


def test_slurm_starts_what_is_expected_to_end_in_time(
    slurm: SlurmCluster, start: Callable[[], Sidecar]
) -> None:
    """Two hours are asked for, a minute is expected; bob's job takes all of its five hours."""
    sidecar = start()
    other = slurm.sbatch("-n1", "-t300", user="bob")
    job = slurm.sbatch("-n1", f"-t{LIMIT_MIN}", user="alice")
    _weighed(slurm, 3)
    time.sleep(5)  # backfill has looked at them
    states = {slurm.job(each)["JobState"] for each in (job, other)}
    assert states == {"PENDING"}, "by itself Slurm starts neither"
    _look(sidecar)
    slurm.wait_for_state(job, "RUNNING")
    shown = slurm.job(job)
    assert shown["TimeLimit"] == "02:00:00"
    assert slurm.job(other)["JobState"] == "PENDING"
    _look(sidecar)
    starts = sidecar.scheduler.starts
    assert starts is not None
    assert (starts.raised, starts.missed, starts.refused) == (1, 0, "")
    assert _factors(sidecar) == dict.fromkeys(_factors(sidecar), 0), job


def test_of_an_array_a_task_is_started_at_each_look(
    slurm: SlurmCluster, start: Callable[[], Sidecar]
) -> None:
    sidecar = start()
    array = slurm.sbatch("-n1", f"-t{LIMIT_MIN}", "--array=1-4", user="alice")
    _weighed(slurm, 2)

    def running() -> list[str]:
        shown = slurm.checked(["squeue", "-h", "-r", "-t", "R", "-u", "alice", "-o", "%i"])
        return sorted(shown.split())

    _look(sidecar)
    slurm.wait_for(lambda: running() == [f"{array}_1"], "the first task to run")
    _look(sidecar)
    slurm.wait_for(lambda: running() == [f"{array}_1", f"{array}_2"], "two tasks to run")
    _look(sidecar)
    time.sleep(3)
    assert len(running()) == 2, "no CPU is left"
    assert set(_factors(sidecar).values()) == {0}
    starts = sidecar.scheduler.starts
    assert starts is not None
    assert (starts.raised, starts.missed) == (2, 0)


def test_what_is_raised_is_given_back_at_the_end_after_a_crash_and_when_disabled(
    slurm: SlurmCluster, start: Callable[[], Sidecar], tmp_path: Path
) -> None:
    """The partition goes down just as the job is raised, so it does not start."""
    job = slurm.sbatch("-n1", f"-t{LIMIT_MIN}", user="alice")
    theirs = slurm.sbatch("-n1", f"-t{LIMIT_MIN}", user="alice")
    slurm.checked(["scontrol", "update", f"JobId={theirs}", "SiteFactor=-7"])
    _weighed(slurm, 3)

    def partition(state: str) -> None:
        slurm.checked(["scontrol", "update", "PartitionName=main", f"State={state}"])

    def raised() -> Sidecar:
        partition("UP")
        partition_down = [lambda: partition("DOWN")]
        sidecar = start()
        client = sidecar.client
        assert isinstance(client, WithoutAccounting)
        client.before_update = partition_down
        _look(sidecar)
        assert _factors(sidecar)[job] > 0
        assert not partition_down, "it went down before"
        return sidecar

    sidecar = raised()
    sidecar.end()
    assert _factors(sidecar)[job] == 0, "at the end"
    raised()
    after = start()
    assert _factors(after)[job] == 0, "by the next daemon"
    sidecar = raised()
    (tmp_path / "off").touch()
    _look(sidecar)
    assert _factors(sidecar)[job] == 0, "disabled"
    assert sidecar.scheduler.starts is not None
    assert "off exists" in sidecar.scheduler.starts.refused
    assert _factors(sidecar)[theirs] == -7, "what somebody else set stays"
    assert slurm.job(job)["JobState"] == "PENDING"
