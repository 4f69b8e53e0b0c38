"""Executing a campaign's cells, by processes of this machine or Dask, and keeping the results."""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TypeAlias

import psutil

from foretime_sim.campaigns.cells import Cell, Plan
from foretime_sim.campaigns.runs import Record, attempt, failure
from foretime_sim.campaigns.store import CampaignStore
from foretime_sim.scores.worker_processes import interrupts_wait

_END_S = 5.0
"""How long a worker that is told to end may take before it is killed."""


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


@dataclass(eq=False)
class _Worker:
    process: SpawnProcess
    connection: Connection
    cell: Cell | None = None


class LocalProcesses:
    """Runs cells on processes of this machine.

    Each worker takes the next cells of the log that it has read already as long as there are any.
    A worker that dies (of lack of memory, say) fails the one cell that it ran; another takes its
    place. Workers are spawned, because a fork of a process with threads may hang.

    Parameters
    ----------
    workers
        How many; one for each physical core if ``None``.
    """

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or psutil.cpu_count(logical=False) or 1
        self._context = multiprocessing.get_context("spawn")

    def __call__(self, cells: Sequence[Cell]) -> Generator[Record]:
        """Run the cells; see `Executor`."""
        queue = _ByLog(cells)
        workers: list[_Worker] = []
        try:
            workers.extend(self._start() for _ in range(min(self.workers, len(cells))))
            for worker in workers:
                self._give(worker, queue)
            while busy := [(w, w.cell) for w in workers if w.cell is not None]:
                ready = wait([worker.connection for worker, _ in busy])
                for worker, cell in busy:
                    if worker.connection not in ready:
                        continue
                    try:
                        record = worker.connection.recv()
                    except (EOFError, ConnectionResetError):
                        record = failure(cell, _death(worker.process))
                        worker.connection.close()
                        workers.remove(worker)
                        if queue:
                            workers.append(self._start())
                            self._give(workers[-1], queue, cell.axes["log"])
                    else:
                        self._give(worker, queue, cell.axes["log"])
                    yield record
        finally:
            _end(workers)

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(theirs,), daemon=True)
        with interrupts_wait():  # until it is up and can ignore them
            process.start()
        # Only the worker holds its end from now on, so that its death is seen.
        theirs.close()
        return _Worker(process, ours)

    def _give(self, worker: _Worker, queue: _ByLog, log: str | None = None) -> None:
        worker.cell = queue.next(log)
        if worker.cell is not None:
            # A worker that has died is found out when its record is awaited.
            with suppress(BrokenPipeError):
                worker.connection.send(worker.cell)


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


def _death(process: SpawnProcess) -> str:
    """Say how a worker died."""
    process.join(_END_S)
    code = process.exitcode
    if code is not None and code < 0:
        number = -code
        with suppress(ValueError):
            name = signal.Signals(number).name
            hint = ": perhaps the machine ran out of memory" if name == "SIGKILL" else ""
            return f"its worker process was killed by {name}{hint}"
    return f"its worker process ended with exit code {code}"


def _end(workers: Sequence[_Worker]) -> None:
    """End workers, at once if they are running a cell."""
    for worker in workers:
        worker.connection.close()
        if worker.cell is not None:
            worker.process.terminate()
    for worker in workers:
        worker.process.join(_END_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _serve(connection: Connection) -> None:
    """Work in a process of its own: take cells from a connection, and give records back."""
    # The terminal's Ctrl-C goes to us, too; it is for the process that gave us work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        while True:
            connection.send(attempt(connection.recv()))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return
