"""Killed with SIGKILL at any moment: no stored job is lost or counted twice, no table is half."""

from __future__ import annotations

import contextlib
import multiprocessing
import random
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from foretime_sidecar.learning.exclusions import Exclusions
from foretime_sidecar.learning.learner import Learner
from foretime_sidecar.settings.settings import AccuracySection, Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Table, read_table, table_bytes

from tests.support.processes.polling_child import FIRST_END, STEP_S, poll

KILLS = 40


@dataclass
class Lives:
    """Sidecars, one after the other on the same store; ``poll_s`` is how long a poll takes here."""

    folder: Path
    poll_s: float = 0.0

    def live(self, polls: int, moment: float) -> tuple[int, int]:
        """Start a sidecar and kill it; the last time and generation that it said it had polled.

        It is left alive for that many polls, however slow the machine, and then for a moment,
        counted in polls. The table is read meanwhile: `read_table` raises if it is ever anything
        but whole.
        """
        table, context = self.folder / "table", multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["pytest", "foretime_sidecar.replays.replay"])
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=poll, args=(self.folder, there))
        child.start()
        there.close()
        assert here.recv() is None
        said = []
        for _ in range(polls):
            began = time.monotonic()
            said.append(here.recv())
            self.poll_s = time.monotonic() - began
        kill_at = time.monotonic() + moment * self.poll_s
        while time.monotonic() < kill_at:
            if table.exists():
                read_table(table)
        child.kill()
        child.join()
        with contextlib.suppress(EOFError):
            while True:
                said.append(here.recv())
        here.close()
        assert child.exitcode == -signal.SIGKILL
        return said[-1] if said else (0, 0)


def _relearned(store: Store, table: Table) -> bytes:
    """The table that follows from the jobs that were stored when ``table`` was written."""
    learner = Learner(Settings(accuracy=AccuracySection(threshold=2)))
    for job in store.finished_jobs():
        if job.end_time <= table.written_at:
            learner.learn_one(job)
    learner.refresh(table.written_at)
    relearned = learner.table(
        table.generation, table.written_at, table.valid_until, table.settings.mode, Exclusions()
    )
    since = store.unplanned_since(table.written_at)
    return table_bytes(replace(relearned, unplanned_since=since))


def test_killed_at_random_moments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[3])  # children must find `tests`, too
    randomly, lives = random.Random(7), Lives(tmp_path)
    lives.live(1, 0)
    acknowledged, generation = FIRST_END, 0
    for _ in range(KILLS):
        polls, longest = randomly.choice([(0, 1), (0, 5), (1, 1), (3, 1), (3, 10)])
        polled_at, published = lives.live(polls, longest * randomly.random())
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
