"""Dask gives what local processes give; batch jobs ask for what the file says."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from distributed import LocalCluster
from foretime_estimators.jobs.errors import ForetimeError, InputError
from foretime_sim.campaigns.campaign import Campaign, JobQueue
from foretime_sim.campaigns.cells import plan
from foretime_sim.campaigns.execution import LocalProcesses, execute
from foretime_sim.campaigns.on_dask import DaskWorkers, submitted_cluster
from foretime_sim.campaigns.results import results_frame
from foretime_sim.campaigns.store import CampaignStore

Make = Callable[[str], Campaign]

GRID = """
[grid]
order = ["fcfs", "wfp"]
estimator = ["requested", "last-two"]
seeds = 2
"""
NOT_THE_RESULT = ["simulation_s", "wall_clock_s", "host", "finished_at"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Give a Dask cluster in this process: its workers are threads."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as running:
        yield running


def test_dask_gives_the_same_rows(campaign_of: Make, tmp_path: Path, cluster: Any) -> None:
    (tmp_path / "broken.swf").write_text("; MaxProcs: 8\n1 2 3\n")
    planned = plan(campaign_of('[[logs]]\npath = "broken.swf"\n' + GRID))
    with DaskWorkers(cluster.scheduler_address) as dask:
        there = execute(planned, CampaignStore(tmp_path / "there"), dask)
    here = execute(planned, CampaignStore(tmp_path / "here"), LocalProcesses(2))
    assert len(there.records) == 16
    tables = [
        results_frame(planned, outcome.records).drop(columns=NOT_THE_RESULT)
        for outcome in (here, there)
    ]
    assert len(tables[0]) == 8
    assert tables[0].equals(tables[1])
    assert {r["id"]: r["error"] for r in here.failed} == {r["id"]: r["error"] for r in there.failed}
    assert len(there.failed) == 8


def test_a_run_on_dask_goes_on_where_it_was(
    campaign_of: Make, tmp_path: Path, cluster: Any
) -> None:
    planned, store = plan(campaign_of(GRID)), CampaignStore(tmp_path / "out")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with DaskWorkers(cluster.scheduler_address) as dask:
        with pytest.raises(KeyboardInterrupt):
            execute(planned, store, dask, progress=stop)
        assert len(store.records()) == 1
        outcome = execute(planned, store, dask)
    assert outcome.executed == 7
    assert len(outcome.records) == 8


def test_no_scheduler_is_told() -> None:
    with pytest.raises(ForetimeError, match=r"no Dask scheduler answers at tcp://127.0.0.1:1"):
        DaskWorkers("tcp://127.0.0.1:1", connect_s=1)
    for address in ("nonsense://x", "foo", "tcp://foo", "tcp://foo:bar", ""):
        with pytest.raises(InputError, match=f"'{address}' is no address of Dask's; give it as"):
            DaskWorkers(address, connect_s=1)


SETTINGS = JobQueue(
    queue="batch",
    account="physics",
    cores=4,
    memory="8 GB",
    walltime="02:00:00",
    prologue=("module load python",),
    directives=("--qos=long",),
)


@pytest.mark.parametrize(
    ("batch", "lines"),
    [
        (
            "slurm",
            [
                "#SBATCH -J foretime-campaign",
                "#SBATCH -p batch",
                "#SBATCH -A physics",
                "#SBATCH --cpus-per-task=4",
                "#SBATCH --mem=8G",
                "#SBATCH -t 02:00:00",
                "#SBATCH --qos=long",
            ],
        ),
        (
            "pbs",
            [
                "#PBS -N foretime-campaign",
                "#PBS -q batch",
                "#PBS -A physics",
                "#PBS -l select=1:ncpus=4:mem=7630MB",
                "#PBS -l walltime=02:00:00",
                "#PBS --qos=long",
            ],
        ),
    ],
)
def test_batch_jobs_ask_for_what_the_file_says(batch: Any, lines: list[str]) -> None:
    with submitted_cluster(batch, SETTINGS, workers=0) as cluster:
        script = cluster.job_script().splitlines()
        assert [line for line in lines if line not in script] == []
        assert "module load python" in script
        assert "--nworkers 4 " in script[-1]
        assert "--nthreads 1 " in script[-1]
        assert cluster.plan == set()


@pytest.fixture
def sbatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put an ``sbatch`` on the path that runs a job at once, here; give the list of its jobs."""
    programs, jobs = tmp_path / "bin", tmp_path / "jobs"
    programs.mkdir()
    for name, text in (
        (
            "sbatch",
            # As the real one, it keeps the script: its file may be gone when the job starts.
            (
                f'cp "$1" {tmp_path}/job.sh\nsh {tmp_path}/job.sh >/dev/null 2>&1 &\n'
                f'echo $! >> {jobs}\necho "Submitted batch job $!"\n'
            ),
        ),
        ("scancel", 'kill "$@" 2>/dev/null\nexit 0\n'),
    ):
        (programs / name).write_text(f"#!/bin/sh\n{text}")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    return jobs


def test_workers_that_a_batch_system_starts_run_the_cells(
    campaign_of: Make, tmp_path: Path, sbatch: Path
) -> None:
    planned = plan(campaign_of(GRID))
    settings = JobQueue(interface="lo", memory="1 GB", local_directory=str(tmp_path))
    with DaskWorkers(submitted_cluster("slurm", settings, workers=1)) as dask:
        outcome = execute(planned, CampaignStore(tmp_path / "out"), dask)
    assert [r["status"] for r in outcome.records.values()] == ["done"] * 8
    assert len(sbatch.read_text().split()) == 1


def test_settings_that_make_no_job_are_refused() -> None:
    with pytest.raises(InputError, match=r"\[jobqueue\]: "):
        submitted_cluster("slurm", JobQueue(interface="no-such-interface"), workers=0)


def test_a_cluster_without_workers_is_told(campaign_of: Make, tmp_path: Path) -> None:
    planned = plan(campaign_of(GRID))
    told: list[float] = []
    with LocalCluster(
        n_workers=0, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as empty:

        def idle(waited_s: float) -> None:
            told.append(waited_s)
            if len(told) == 2:
                empty.scale(1)

        with DaskWorkers(empty.scheduler_address, idle=idle, idle_every_s=0.05) as dask:
            outcome = execute(planned, CampaignStore(tmp_path / "out"), dask)
    assert [r["status"] for r in outcome.records.values()] == ["done"] * 8
    assert len(told) >= 2
    assert 0 < told[0] < told[1]
