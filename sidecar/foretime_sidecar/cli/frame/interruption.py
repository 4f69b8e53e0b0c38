"""An end by Ctrl-C, or by a batch system's SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit code."""


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM (a batch system's, say) stop a run as cleanly as Ctrl-C."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def leave_threads_behind() -> None:
    """End the process, exit code 0, if a thread still computes that was told to end.

    Of one in native code the interpreter would make an abort as it ends.
    """
    if any(thread.daemon for thread in threading.enumerate()):
        logging.shutdown()
        sys.stdout.flush()
        os._exit(0)
