"""A study whose runs are a campaign's cells, kept in its output folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from foretime_sidecar.cli.campaign_progress import INTERRUPTED, run_cells, terminable
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


@contextmanager
def resumable(output_dir: Path) -> Iterator[None]:
    """End the command when it is interrupted, and say that it goes on where it was."""
    with terminable():
        try:
            yield
        except KeyboardInterrupt:
            typer.echo(
                f"foretime: interrupted; what was run is kept in {output_dir}, run it again to go "
                "on",
                err=True,
            )
            raise typer.Exit(INTERRUPTED) from None
