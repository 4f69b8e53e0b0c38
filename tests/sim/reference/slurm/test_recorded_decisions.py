"""The specification decides as live Slurm did, run by run of its loops (recorded)."""

from __future__ import annotations

import pytest

from tests.slurm.runs.decisions import LoopReplay, events_of_run
from tests.slurm.runs.recorded_runs import RecordedRun, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS, MICRO_FOLDER

pytest.importorskip("foretime_sim.reference.slurm.cluster")

RUNS = [
    (name, run)
    for name in CONFIGURATIONS
    if name != "ubccr-micro" or MICRO_FOLDER.exists()
    for release in ("26.05", "22.05")
    for run in recorded_runs(name, release)
]


@pytest.mark.parametrize(("name", "run"), RUNS, ids=[f"{n} {run.name}" for n, run in RUNS])
def test_loops_start_and_plan_what_they_did_live(name: str, run: RecordedRun) -> None:
    if CONFIGURATIONS[name].site.priority.multifactor or CONFIGURATIONS[name].site.enforced:
        pytest.skip("needs priorities and limits")
    main, backfill = LoopReplay(name, run, events_of_run(name, run.name)).replay()
    assert main.same_runs >= 0.99 * main.runs, main.differences
    assert backfill.same_runs >= 0.99 * backfill.runs, backfill.differences
    assert backfill.same_plans >= 0.99 * backfill.plans, backfill.differences
