"""The specification decides as live Slurm did, run by run of its loops (recorded)."""

from __future__ import annotations

import os

import pytest

from tests.slurm.runs.decisions import LoopReplay, events_of_run
from tests.slurm.runs.recorded_runs import RecordedRun, recorded_runs
from tests.slurm.runs.run_configurations import CONFIGURATIONS, MICRO_FOLDER

pytest.importorskip("foretime_sim.reference.slurm.cluster")

# One run of each small configuration and release; all of them where there is time.
ALL = "FORETIME_LIVE_MODEL" in os.environ

RUNS = [
    (name, run)
    for name in CONFIGURATIONS
    if name != "ubccr-micro" or (ALL and MICRO_FOLDER.exists())
    for release in ("26.05", "22.05")
    for run in recorded_runs(name, release)[: None if ALL else 1]
]


# Shares of runs and plans where something is known not to be modelled.
LEAST = {
    # Weights that a test for GPUs leaves on nodes count for the jobs after it (22.05).
    ("unlike-nodes", "22.05"): (0.95, 0.94),
    # In some cycles 22.05 takes nodes of tasks that have just started for full too long.
    ("size-and-nice", "22.05"): (0.97, 0.94),
    # As for unlike-nodes; light nodes are all needed, so a marked one draws jobs to its switch.
    ("ubccr-micro", "22.05"): (0.91, 0.85),
}


@pytest.mark.parametrize(("name", "run"), RUNS, ids=[f"{n} {run.name}" for n, run in RUNS])
def test_loops_start_and_plan_what_they_did_live(name: str, run: RecordedRun) -> None:
    main, backfill = LoopReplay(name, run, events_of_run(name, run.name)).replay()
    runs, plans = LEAST.get((name, run.name[:5]), (0.98, 0.995))
    assert main.same_runs >= runs * main.runs, main.differences
    assert backfill.same_runs >= runs * backfill.runs, backfill.differences
    assert backfill.same_plans >= plans * backfill.plans, backfill.differences
