"""Worker processes and Ctrl-C, which the terminal sends to them, too."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


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
