"""A study whose runs are a campaign's cells, kept in its output folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from foretime_sidecar.cli.frame.campaign_progress import run_cells
from foretime_sim.campaigns.cells import Plan
from foretime_sim.campaigns.execution import LocalProcesses, Outcome
from foretime_sim.campaigns.store import CampaignStore


def kept_runs(output_dir: Path, workers: int) -> Callable[[Plan], Outcome]:
    """Give what runs a plan in so many processes, but for what the folder has already."""
    store = CampaignStore(output_dir)
    executor = LocalProcesses(workers)

    def execute(plan: Plan) -> Outcome:
        return run_cells(plan, store, executor, workers=workers, retry_failed=True)

    return execute
