"""Running a campaign's cells under a progress bar that says how long it will still take."""

from __future__ import annotations

import time

from foretime_sim.campaigns.cells import Cell, Plan
from foretime_sim.campaigns.execution import Executor, Outcome, execute, to_do
from foretime_sim.campaigns.runs import Record
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.campaigns.timing import TimeEstimate, told
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.wording.counts import counted

_LINE_EVERY_S = 30.0


def run_cells(
    planned: Plan,
    store: CampaignStore,
    executor: Executor,
    *,
    workers: int | None,
    retry_failed: bool = False,
) -> Outcome:
    """Run the cells under a progress bar; without a terminal, with a line now and then.

    Parameters
    ----------
    planned, store, executor, retry_failed
        See `foretime_sim.campaigns.execution.execute`.
    workers
        How many cells run at once; ``None`` where that is not known.
    """
    console = Console(stderr=True)
    records = store.records()
    waiting = {cell.id: cell for cell in to_do(planned, records, retry_failed=retry_failed)}
    total = len(waiting)
    estimate = TimeEstimate()
    for cell in planned.cells:
        if cell.id in records:
            estimate.learn(cell, records[cell.id])
    began = time.monotonic()
    spent_s = 0.0
    failed = 0
    next_line = began + _LINE_EVERY_S
    with Progress(
        TextColumn("running"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[left]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        bar = progress.add_task("run", total=total, left="")

        def ended(cell: Cell, record: Record) -> None:
            nonlocal spent_s, failed, next_line
            waiting.pop(cell.id, None)
            estimate.learn(cell, record)
            spent_s += record["wall_clock_s"] or 0.0
            failed += record["status"] == "failed"
            now = time.monotonic()
            # How many work at once: as told, or on Dask as measured.
            at_once = workers or max(1.0, spent_s / max(now - began, 1e-9))
            left = f"about {told(estimate.remaining(waiting.values(), 1) / at_once)} left"
            if failed:
                left += f", {failed:,} failed"
            progress.update(bar, advance=1, left=left if waiting else "")
            if not console.is_terminal and now >= next_line and waiting:
                next_line = now + _LINE_EVERY_S
                say(f"{total - len(waiting):,} of {counted(total, 'cell')}, {left}", err=True)

        return execute(planned, store, executor, retry_failed=retry_failed, progress=ended)
