"""An end by Ctrl-C, or by a batch system's SIGTERM."""

from __future__ import annotations

import signal
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
