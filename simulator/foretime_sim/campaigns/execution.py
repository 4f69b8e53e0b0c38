"""Executing a campaign's cells, by processes of this machine or Dask, and keeping the results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TypeAlias

import psutil

from foretime_sim.campaigns.cells import Cell, Plan
from foretime_sim.campaigns.runs import Record, attempt, failure
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.scores.worker_processes import Worker, WorkerDiedError, answered, end

Executor: TypeAlias = Callable[[Sequence[Cell]], Generator[Record]]
"""What runs cells: gives each one's record as they end; closing it ends what is still running."""


@dataclass(frozen=True)
class Outcome:
    """What a run of a campaign came to.

    Attributes
    ----------
    records
        The last record of every cell of the plan that has one, by id.
    executed
        Cells that this run executed.
    """

    records: dict[str, Record]
    executed: int

    @property
    def failed(self) -> list[Record]:
        """Records of cells that failed."""
        return [record for record in self.records.values() if record["status"] == "failed"]


def to_do(plan: Plan, records: dict[str, Record], *, retry_failed: bool = False) -> list[Cell]:
    """Give the cells that have no record yet, or a failed one if these are to be tried again."""

    def done(cell: Cell) -> bool:
        record = records.get(cell.id)
        return record is not None and not (retry_failed and record["status"] == "failed")

    return [cell for cell in plan.cells if not done(cell)]


def execute(
    plan: Plan,
    store: CampaignStore,
    executor: Executor,
    *,
    retry_failed: bool = False,
    progress: Callable[[Cell, Record], None] | None = None,
) -> Outcome:
    """Run what a campaign still lacks, keeping each record as it comes.

    Parameters
    ----------
    plan
        The cells.
    store
        Where records are kept; those that are there are not run again.
    executor
        `LocalProcesses`, or `foretime_sim.campaigns.on_dask.DaskWorkers`.
    retry_failed
        Run cells again that failed before.
    progress
        Called with each cell that has ended, and its record.

    Raises
    ------
    InputError
        If another run is writing into the same folder.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.campaigns.cells import plan
    >>> from foretime_sim.campaigns.execution import execute
    >>> from foretime_sim.campaigns.file import parse_campaign
    >>> from foretime_sim.campaigns.runs import run_cell
    >>> from foretime_sim.campaigns.store import CampaignStore
    >>> text = '''
    ... logs = [{generate = "pc2", jobs = 200}]
    ... scoring = {warm_up_s = 0}
    ... '''
    >>> planned = plan(parse_campaign(text, Path("one.toml")))
    >>> with TemporaryDirectory() as folder:
    ...     here = lambda cells: (run_cell(cell) for cell in cells)
    ...     outcome = execute(planned, CampaignStore(Path(folder)), here)
    >>> outcome.executed, outcome.failed
    (1, [])
    """
    with store.writing() as writer:
        # Read under the lock: nobody adds to it from now on.
        records = store.records()
        cells = to_do(plan, records, retry_failed=retry_failed)
        by_id = {cell.id: cell for cell in cells}
        if cells:
            with closing(executor(cells)) as results:
                for record in results:
                    writer.add(record)
                    records[record["id"]] = record
                    if progress is not None:
                        progress(by_id[record["id"]], record)
    wanted = {cell.id for cell in plan.cells}
    kept = {identity: record for identity, record in records.items() if identity in wanted}
    return Outcome(kept, len(cells))


class LocalProcesses:
    """Runs cells on processes of this machine.

    Each worker takes the next cells of the log that it has read already as long as there are any.
    A worker that dies (of lack of memory, say) fails the one cell that it ran; another takes its
    place.

    Parameters
    ----------
    workers
        How many; one for each physical core if ``None``.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or psutil.cpu_count(logical=False) or 1

    def __call__(self, cells: Sequence[Cell]) -> Generator[Record]:
        """Run the cells; see `Executor`."""
        queue = _ByLog(cells)
        workers: list[Worker[Cell, Record]] = []
        try:
            workers.extend(Worker.start(attempt) for _ in range(min(self.workers, len(cells))))
            for worker in workers:
                worker.give(queue.next(None))
            while any(worker.is_busy for worker in workers):
                for worker, cell in answered(workers):
                    log = cell.axes["log"]
                    try:
                        record = worker.result()
                    except WorkerDiedError as died:
                        record = failure(cell, str(died))
                        workers.remove(worker)
                        if queue:
                            workers.append(Worker.start(attempt))
                            workers[-1].give(queue.next(log))
                    else:
                        worker.give(queue.next(log))
                    yield record
        finally:
            end(workers)


class _ByLog:
    """Cells that wait, by log: who has read a log stays with it, who is free takes the longest."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self._waiting: dict[str, deque[Cell]] = {}
        for cell in cells:
            self._waiting.setdefault(cell.axes["log"], deque()).append(cell)

    def __bool__(self) -> bool:
        return any(self._waiting.values())

    def next(self, log: str | None) -> Cell | None:
        """Take the next cell, of the same log if it has more."""
        if log is None or not self._waiting[log]:
            log = max(self._waiting, key=lambda name: len(self._waiting[name]))
        return self._waiting[log].popleft() if self._waiting[log] else None
