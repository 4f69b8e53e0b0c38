"""A short live run: every job comes through, and the model decides as the live loops did."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.runs.decisions import LoopReplay
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.loop_events import LoopEvent, events_of
from tests.slurm.runs.record import write_outcome
from tests.slurm.runs.recorded_runs import RecordedRun, read_run
from tests.slurm.runs.run_configurations import CONFIGURATIONS

pytest.importorskip("foretime_sim.reference.slurm.cluster")
NAME = "short-selection"


def run_live(release: SlurmRelease) -> tuple[RecordedRun, list[LoopEvent]]:
    with tempfile.TemporaryDirectory() as folder:
        outcome, _ = LiveRun(CONFIGURATIONS[NAME], release, Path(folder)).run()
        path = Path(folder) / "run.json"
        write_outcome(path, outcome)
        log = (Path(folder) / "slurmctld.log").read_text(errors="replace")
        return read_run(path), events_of(log, outcome["zero"])


EXPERIMENT = run_live


def test_the_model_decides_as_the_live_loops_did(
    experiment: tuple[RecordedRun, list[LoopEvent]],
) -> None:
    run, events = experiment
    assert set(run.state) == {"COMPLETED"}
    assert {"Main", "Backfill"} <= set(run.scheduler)
    main, backfill = LoopReplay(NAME, run, events).replay()
    # A job that completes on a slow machine keeps nodes that the model takes for free.
    assert main.same_runs >= 0.9 * main.runs, main.differences
    assert backfill.same_runs >= 0.9 * backfill.runs, backfill.differences
    assert backfill.same_plans >= 0.95 * backfill.plans, backfill.differences
