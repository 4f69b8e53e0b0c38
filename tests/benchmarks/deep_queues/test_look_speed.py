"""What a look costs the daemon that starts jobs now: 10,000 waiting jobs on 5,000 nodes.

Slurm's commands are small scripts that print files, in the words of a recorded 26.05. What they
take themselves is not counted; what the daemon takes to start them, to decode and to read what
they print, to plan and to write down, is. Goal: 2 s of CPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store

from tests.benchmarks.deep_queues.printed_slurm import PrintedSlurm

NODES, CPUS, WAITING, RUNNING = 5_000, 32, 10_000, 1_000
NOW = 1_800_000_000
GOAL_S = 2.0


@pytest.fixture
def site(tmp_path: Path) -> PrintedSlurm:
    return PrintedSlurm(tmp_path, NOW, nodes=NODES, cpus=CPUS, waiting=WAITING, running=RUNNING)


@pytest.fixture
def sidecar(site: PrintedSlurm) -> Iterator[Sidecar]:
    settings = Settings.model_validate(
        {
            "hook": {"mode": "enforce", "disable_file": str(site.folder / "disabled")},
            "queue_order": {"order": "start-now"},
            "table": {"path": str(site.folder / "table")},
        }
    )
    store = Store(":memory:")
    records = [
        FinishedRecord(
            FinishedJob(
                JobRequest(f"h{at}", f"user{at % 200}", None, 32, 14_400, NOW - 90_000, "main"),
                NOW - 90_000,
                NOW - 90_000 + 600 + at,
                600 + at,
                Ending.COMPLETED,
            ),
            NOW - 90_000,
            "COMPLETED",
        )
        for at in range(5_000)
    ]
    store.add_finished(records, Cursor(NOW - 80_000), "slurm")
    client = SlurmCommands(SubprocessRunner(str(site.folder)))
    sidecar = Sidecar(settings, client, store, estimating_s=120.0)
    sidecar.start(NOW)
    site.publish()
    yield sidecar
    store.close()


@pytest.mark.benchmark(group="a look with 10,000 waiting jobs")
@pytest.mark.parametrize("when", ["first", "next", "all priorities anew"])
def test_a_look_at_a_deep_queue(
    benchmark: Any, site: PrintedSlurm, sidecar: Sidecar, when: str
) -> None:
    starts = sidecar.scheduler.starts
    assert starts is not None
    if when != "first":
        sidecar.poll(NOW)
        sidecar.look(NOW)
        site.pass_time()
        if when == "all priorities anew":
            site.weigh()
        site.publish()
    site.forget()
    sidecar.poll(NOW + 30)
    changes = site.folder / "changes"
    changes.touch()
    before = changes.read_text(encoding="utf-8").count("quit")
    began = time.process_time()
    benchmark.pedantic(sidecar.look, args=(NOW + 30,), rounds=1)
    benchmark.extra_info["cpu_s"] = time.process_time() - began
    benchmark.extra_info["goal_cpu_s"] = GOAL_S
    assert not starts.refused
    assert sidecar.snapshot is not None
    assert len(sidecar.snapshot.queue.jobs) == WAITING + RUNNING
    assert changes.read_text(encoding="utf-8").count("quit") <= before + 1, "one scontrol a look"
