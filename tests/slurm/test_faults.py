"""Whatever becomes of the table, the sidecar or slurmctld: submissions go on, jobs as written.

Each fault is made on a cluster where the hook plans jobs, which is shown before and after it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from foretime_sidecar.table.table import TableRow

from tests.slurm.harness.slurm_cluster import SlurmCluster

ROWS = [TableRow("user", "alice", 0, 200_000)]
# A submission takes some 20 ms; a client of a hung controller waits for 10 s at least.
PROMPT_S = 5.0


@pytest.fixture(scope="module")
def cluster(slurm_of_module: SlurmCluster) -> SlurmCluster:
    slurm_of_module.install_hook(ROWS)
    return slurm_of_module


def submit(cluster: SlurmCluster) -> dict[str, str]:
    """Submit an hour; it must be accepted at once. Gives the job."""
    began = time.monotonic()
    job = cluster.job(cluster.sbatch("-t", "60", "--hold"))
    assert time.monotonic() - began < PROMPT_S
    return job


def is_as_written(job: dict[str, str]) -> bool:
    return (
        job["TimeLimit"] == "01:00:00"
        and job["TimeMin"] == "N/A"
        and "foretime" not in job.get("AdminComment", "")
    )


def is_planned(cluster: SlurmCluster, job: dict[str, str]) -> bool:
    return job["TimeMin" if cluster.release.soft_limit else "TimeLimit"] == "00:12:00"


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def as_slurm(path: Path) -> None:
    os.chown(path, 64030, 64030, follow_symlinks=False)


def write(table: Path, content: bytes) -> None:
    remove(table)
    table.write_bytes(content)
    as_slurm(table)


def truncated(cluster: SlurmCluster) -> None:
    write(cluster.table, cluster.table.read_bytes()[:-40])


def cut_after_first_line(cluster: SlurmCluster) -> None:
    write(cluster.table, cluster.table.read_bytes().partition(b"\n")[0] + b"\n")


def changed_in_one_byte(cluster: SlurmCluster) -> None:
    cluster.publish(ROWS)  # so that slurmctld has nothing of it in memory
    write(cluster.table, cluster.table.read_bytes().replace(b"0.200000", b"0.100000"))


def stale(cluster: SlurmCluster) -> None:
    now = int(time.time())
    cluster.publish(ROWS, written_at=now - 7200, valid_until=now - 1)


def clock_set_back(cluster: SlurmCluster) -> None:
    """To slurmctld the table is then from two hours ahead."""
    now = int(time.time()) + 7200
    cluster.publish(ROWS, written_at=now, valid_until=now + 3600)


def clock_set_ahead(cluster: SlurmCluster) -> None:
    """By ten years: the table was valid for a day."""
    now = int(time.time()) - 10 * 365 * 86_400
    cluster.publish(ROWS, written_at=now, valid_until=now + 86_400)


def unreadable(cluster: SlurmCluster) -> None:
    os.chown(cluster.table, 0, 0)
    cluster.table.chmod(0o000)


def directory(cluster: SlurmCluster) -> None:
    remove(cluster.table)
    cluster.table.mkdir()
    as_slurm(cluster.table)


def fifo(cluster: SlurmCluster) -> None:
    remove(cluster.table)
    os.mkfifo(cluster.table, 0o660)
    as_slurm(cluster.table)


def noise(cluster: SlurmCluster) -> None:
    """100 MB of it, more than a table may have."""
    remove(cluster.table)
    block = os.urandom(1 << 20)
    with cluster.table.open("wb") as file:
        for _ in range(100):
            file.write(block)
    as_slurm(cluster.table)


def little_noise(cluster: SlurmCluster) -> None:
    write(cluster.table, os.urandom(60_000))


def empty(cluster: SlurmCluster) -> None:
    write(cluster.table, b"")


def link_to_itself(cluster: SlurmCluster) -> None:
    remove(cluster.table)
    cluster.table.symlink_to(cluster.table)


def folder_gone(cluster: SlurmCluster) -> None:
    shutil.rmtree(cluster.table.parent)


def switched_off(cluster: SlurmCluster) -> None:
    cluster.disable_file.touch()


FAULTS: list[Callable[[SlurmCluster], None]] = [
    truncated,
    cut_after_first_line,
    changed_in_one_byte,
    stale,
    clock_set_back,
    clock_set_ahead,
    unreadable,
    directory,
    fifo,
    noise,
    little_noise,
    empty,
    link_to_itself,
    folder_gone,
    switched_off,
    lambda cluster: remove(cluster.table),
]


def repair(cluster: SlurmCluster) -> None:
    remove(cluster.disable_file)
    if not cluster.table.parent.exists():
        cluster.table.parent.mkdir()
        as_slurm(cluster.table.parent)
    remove(cluster.table)
    cluster.publish(ROWS)


@contextlib.contextmanager
def fault(cluster: SlurmCluster, make: Callable[[SlurmCluster], None]) -> Iterator[None]:
    make(cluster)
    try:
        yield
    finally:
        repair(cluster)


@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__.replace("<lambda>", "gone"))
def test_jobs_go_through_as_written(
    make: Callable[[SlurmCluster], None], cluster: SlurmCluster
) -> None:
    assert is_planned(cluster, submit(cluster))
    with fault(cluster, make):
        for _ in range(3):
            assert is_as_written(submit(cluster))
        assert cluster.answers()
    assert is_planned(cluster, submit(cluster))


def test_slurmctld_starts_without_the_hook_s_file(cluster: SlurmCluster) -> None:
    hook = cluster.folder / "etc/foretime.lua"
    text = hook.read_bytes()
    for broken in (None, b"this is no Lua\n", b"error('no')\n"):
        cluster.stop_slurmctld()
        hook.unlink(missing_ok=True)
        if broken is not None:
            hook.write_bytes(broken)
        cluster.start_slurmctld()
        assert is_as_written(submit(cluster))
    hook.write_bytes(text)
    cluster.restart_slurmctld()
    assert is_planned(cluster, submit(cluster))


@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_jobs_survive_slurmctld(signal: str, cluster: SlurmCluster) -> None:
    waiting = submit(cluster)
    running = cluster.sbatch("-t", "60")
    cluster.wait_for(
        lambda: (
            cluster.job(running)["TimeLimit"] == "01:00:00"
            and cluster.job(running)["JobState"] == "RUNNING"
        ),
        "a job to run with its whole limit",
    )
    time.sleep(6)  # slurmctld writes its state every five seconds
    cluster.stop_slurmctld(signal)
    cluster.start_slurmctld()
    assert is_planned(cluster, cluster.job(waiting["JobId"]))
    after = cluster.job(running)
    assert (after["JobState"], after["TimeLimit"]) == ("RUNNING", "01:00:00")
    assert is_planned(cluster, submit(cluster))
    cluster.checked(["scancel", running])
