"""Worker processes: each has one task at a time, and ends with whoever gave it.

Not `concurrent.futures`: a Ctrl-C while that takes its locks, or while a worker sends a result, has
the program wait for ever.
"""

from __future__ import annotations

import multiprocessing
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from foretime_estimators.jobs.errors import StateError

Task = TypeVar("Task")
Result = TypeVar("Result")

_END_S = 5.0
"""How long a worker that is told to end may take before it is killed."""
_LOOK_S = 0.5


def run_in_processes(
    work: Callable[[Task], Result],
    tasks: Iterable[Task],
    processes: int,
    finished: Callable[[int, Result], None],
    *,
    look: Callable[[], None] | None = None,
) -> None:
    """Do tasks in other processes; whatever stops that ends them at once.

    Parameters
    ----------
    work
        What is done with a task. It, the tasks and their results must be picklable.
    tasks
        The first are begun first.
    processes
        How many there are at most.
    finished
        Called with the number of a task that is done, counted from 0, and its result.
    look
        Called every half second, and after each task.

    Raises
    ------
    StateError
        If a process died, of lack of memory for instance. What a task raises is raised, too.
    """
    numbered = enumerate(tasks)
    workers: list[Worker[tuple[int, Task], Result]] = []
    try:
        for task in numbered:
            workers.append(Worker.start(_Unnumbered(work)))
            workers[-1].give(task)
            if len(workers) == processes:
                break
        while any(worker.is_busy for worker in workers):
            for worker, (number, _) in answered(workers, None if look is None else _LOOK_S):
                result = worker.result()
                worker.give(next(numbered, None))
                finished(number, result)
            if look is not None:
                look()
    except WorkerDiedError as died:
        raise StateError(f"{died}; give fewer --workers") from None
    finally:
        end(workers)


@dataclass(frozen=True)
class _Unnumbered(Generic[Task, Result]):
    """Work on a task that comes with its number."""

    work: Callable[[Task], Result]

    def __call__(self, task: tuple[int, Task]) -> Result:
        return self.work(task[1])


class WorkerDiedError(Exception):
    """A worker's process has ended before its task."""


@dataclass(eq=False)
class Worker(Generic[Task, Result]):
    """A process that does one task after the other.

    It is spawned, because a fork of a process with threads (a progress bar's) may hang.

    Attributes
    ----------
    process, connection
        What it is, and what is said to it.
    task
        What it does now; ``None``: nothing, and it gets nothing more.
    """

    process: SpawnProcess
    connection: Connection
    task: Task | None = None

    @classmethod
    def start(cls, work: Callable[[Task], Result]) -> Worker[Task, Result]:
        """Start one for a kind of work."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        with interrupts_wait():  # until it is up and can ignore them
            process.start()
        # Only the worker holds its end from now on, so that its death is seen.
        theirs.close()
        return cls(process, ours)

    @property
    def is_busy(self) -> bool:
        """Whether it has a task."""
        return self.task is not None

    def give(self, task: Task | None) -> None:
        """Have it do a task."""
        self.task = task
        if task is not None:
            # A worker that has died is found out when its result is awaited.
            with suppress(BrokenPipeError):
                self.connection.send(task)

    def result(self) -> Result:
        """Take the result of its task, or raise what that raised, or `WorkerDiedError`."""
        try:
            result, error = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.connection.close()
            raise WorkerDiedError(_death(self.process)) from None
        if error is not None:
            raise error
        found: Result = result
        return found


def answered(
    workers: Iterable[Worker[Task, Result]], timeout_s: float | None = None
) -> list[tuple[Worker[Task, Result], Task]]:
    """Wait until workers have results, or have died; give them with their tasks."""
    busy = [(worker, worker.task) for worker in workers if worker.task is not None]
    ready = wait([worker.connection for worker, _ in busy], timeout_s)
    return [(worker, task) for worker, task in busy if worker.connection in ready]


def end(workers: Sequence[Worker[Any, Any]]) -> None:
    """End workers, at once if they have a task."""
    for worker in workers:
        worker.connection.close()
        if worker.is_busy:
            worker.process.terminate()
    for worker in workers:
        worker.process.join(_END_S)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let a Ctrl-C, which the terminal sends to all, wait while processes are started.

    They inherit that, and so don't write where in their imports it met them.
    """
    # Where a first process starts the tracker, that unblocks the signal for all who come after.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(process: SpawnProcess) -> str:
    """Say how a worker died."""
    process.join(_END_S)
    code = process.exitcode
    if code is not None and code < 0:
        number = -code
        with suppress(ValueError):
            name = signal.Signals(number).name
            hint = ": perhaps the machine ran out of memory" if name == "SIGKILL" else ""
            return f"the worker process was killed by {name}{hint}"
    return f"the worker process ended with exit code {code}"


def _serve(connection: Connection, work: Callable[[Any], Any]) -> None:
    """Work in a process of its own: take tasks from a connection, and give results back."""
    # The terminal's Ctrl-C goes to us, too; it is for the process that gave us work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task, answer, failed = connection.recv(), None, None
            try:
                answer = work(task)
            except Exception as error:  # noqa: BLE001 - raised where the result is wanted
                error.add_note(f"in a worker process:\n{traceback.format_exc()}")
                failed = error
            connection.send((answer, failed))
