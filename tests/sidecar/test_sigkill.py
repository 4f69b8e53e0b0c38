"""Killed with SIGKILL at any moment: no stored job is lost or counted twice, no table is half."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from foretime_sidecar.learner import Learner
from foretime_sidecar.settings import AccuracySection, Settings
from foretime_sidecar.store import Store
from foretime_sidecar.table import Table, read_table, table_bytes

KILLS = 40
FIRST_END, STEP_S = 1_000_000, 10


def _a_life(folder: Path, polls: int, moment_s: float) -> tuple[int, int]:
    """Start a sidecar and kill it; the last time and generation that it said it had polled.

    It is left alive for that many polls, however slow the machine, and then a moment longer. The
    table is read meanwhile: `read_table` raises if it is ever anything but whole.
    """
    program, table = Path(__file__).with_name("polling_child.py"), folder / "table"
    with subprocess.Popen(
        [sys.executable, str(program), str(folder)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        lines = [child.stdout.readline() for _ in range(polls)]
        kill_at = time.monotonic() + moment_s
        while time.monotonic() < kill_at:
            if table.exists():
                read_table(table)
        child.kill()
        lines += child.stdout.read().splitlines()
    assert child.returncode == -signal.SIGKILL, lines
    polled = [line.split() for line in lines if line.startswith("polled")]
    return (int(polled[-1][1]), int(polled[-1][2])) if polled else (0, 0)


def _relearned(store: Store, table: Table) -> bytes:
    """The table that follows from the jobs that were stored when ``table`` was written."""
    learner = Learner(Settings(accuracy=AccuracySection(threshold=2)))
    for job in store.finished_jobs():
        if job.end_time <= table.written_at:
            learner.learn_one(job)
    learner.refresh(table.written_at)
    return table_bytes(
        learner.table(
            table.generation, table.written_at, table.valid_until, table.settings.mode, []
        )
    )


def test_killed_at_random_moments(tmp_path: Path) -> None:
    randomly = random.Random(7)
    acknowledged, generation = FIRST_END, 0
    for _ in range(KILLS):
        polls, longest_s = randomly.choice([(0, 0.01), (0, 0.1), (1, 0.01), (3, 0.01), (3, 0.3)])
        polled_at, published = _a_life(tmp_path, polls, longest_s * randomly.random())
        acknowledged = max(acknowledged, polled_at)
        assert not published or published > generation, "a generation was used twice"
        generation = max(generation, published)

        store = Store(tmp_path / "store")
        numbers = [int(job.request.job_id) for job in store.finished_jobs()]
        assert numbers == list(range(len(numbers))), "a job is missing, or there twice"
        if acknowledged > FIRST_END:
            assert len(numbers) > (acknowledged - FIRST_END) // STEP_S
        assert all(
            store.decision(job.request.job_id, job.request.submit_time)
            for job in store.finished_jobs()
        )
        begun = store.latest_generation()
        assert (begun.generation if begun else 0) >= generation
        if (tmp_path / "table").exists():
            table = read_table(tmp_path / "table")
            assert begun is not None
            assert generation <= table.generation <= begun.generation
            generation = table.generation
        store.close()

    # After all these lives the table is what one undisturbed sidecar would have written.
    store, content = Store(tmp_path / "store"), (tmp_path / "table").read_bytes()
    assert read_table(tmp_path / "table").rows
    assert _relearned(store, read_table(tmp_path / "table")) == content
    store.close()
