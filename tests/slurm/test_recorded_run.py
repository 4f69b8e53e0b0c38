"""A short live run: every job comes through, and is started in the model's order."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.runs.compare import agreement, specification
from tests.slurm.runs.live_run import LiveRun
from tests.slurm.runs.record import write_outcome
from tests.slurm.runs.recorded_runs import model_input, read_run
from tests.slurm.runs.run_configurations import CONFIGURATIONS

CONFIGURATION = CONFIGURATIONS["short-selection"]


def run_live(release: SlurmRelease) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as logs:
        outcome, _ = LiveRun(CONFIGURATION, release, Path(logs)).run()
    return outcome


EXPERIMENT = run_live


def test_jobs_are_started_in_the_order_of_the_model(
    experiment: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    write_outcome(path, experiment)
    run = read_run(path)
    assert set(run.state) == {"COMPLETED"}
    assert {name for name in run.scheduler if name} == {"Main", "Backfill"}
    workload, site, site_jobs = model_input(CONFIGURATION, [run])
    began = run.slurmctld_started(site.parameters.bf_interval)
    found = agreement([run], specification(workload, site, site_jobs, began))
    # One run alone has pairs that another would start in another order.
    assert found.share >= 0.9, str(found)
    assert np.isclose(found.model_wait, found.live_waits[0], rtol=0.15), str(found)
