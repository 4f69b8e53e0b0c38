"""Worker processes and Ctrl-C, which the terminal sends to them, too."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

Result = TypeVar("Result")
_LOOK_S = 0.5


def run_in_processes(
    work: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    processes: int,
    finished: Callable[[int, Result], None],
    *,
    begin: Callable[..., None] | None = None,
    begin_with: tuple[Any, ...] = (),
    look: Callable[[], None] | None = None,
) -> None:
    """Do work in other processes, which end at a Ctrl-C or at a task's error.

    Parameters
    ----------
    work
        What is done, given what a task has; all of it, and its results, must be picklable.
    tasks
        What each is to be done with.
    processes
        How many there are at most.
    finished
        Called with the number of a task that is done, counted from 0, and its result.
    begin, begin_with
        What each process does first, if anything, and with what.
    look
        Called every half second, and after each task.
    """
    # Spawned, because a fork of a process with threads (a progress bar's) may hang.
    context = multiprocessing.get_context("spawn")
    # Not `as_completed`: a Ctrl-C while that takes the locks of all futures leaves some taken.
    ended: SimpleQueue[Future[Result]] = SimpleQueue()
    numbers: dict[Future[Result], int] = {}
    with ProcessPoolExecutor(processes, context, _begin, (begin, begin_with)) as pool:
        try:
            with interrupts_wait():
                for number, task in enumerate(tasks):
                    future = pool.submit(work, *task)
                    numbers[future] = number
                    future.add_done_callback(ended.put)
            while numbers:
                with suppress(Empty):
                    future = ended.get(timeout=None if look is None else _LOOK_S)
                    finished(numbers.pop(future), future.result())
                if look is not None:
                    look()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(begin: Callable[..., None] | None, begin_with: tuple[Any, ...]) -> None:
    end_at_interrupt()
    if begin is not None:
        begin(*begin_with)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """Let a Ctrl-C wait while processes are started.

    They inherit that, and so don't write where in their imports it met them; `end_at_interrupt`,
    or a handler of theirs and unblocking, is for when they are up.
    """
    # Where a first process starts the tracker, that unblocks the signal for all who come after.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_at_interrupt() -> None:
    """In a worker process: end at a Ctrl-C without a word, for who gave the work says what is."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
