"""What a child process prints, read piece by piece while it runs."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Iterator

_PIECE_BYTES = 1 << 16  # what a pipe holds


class ChildOutput:
    """The pieces that a child prints to stdout, until it closes its outputs or its time is up.

    Iterating raises `subprocess.TimeoutExpired` once that is so.

    Parameters
    ----------
    child
        With pipes for its outputs.
    timeout_s
        Seconds that it may take, from now on.
    most_said_bytes
        Of what it prints to stderr no more is kept.

    Attributes
    ----------
    beginning
        The first piece.
    said
        What it has printed to stderr.
    """

    def __init__(
        self, child: subprocess.Popen[bytes], timeout_s: float, most_said_bytes: int
    ) -> None:
        self.beginning = b""
        self.said = bytearray()
        self._most_said_bytes = most_said_bytes
        self._until = time.monotonic() + timeout_s
        self._late = subprocess.TimeoutExpired(child.args, timeout_s)
        self._pieces = self._read(child)

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces

    def left_s(self) -> float:
        """Give how many seconds it may still take."""
        return max(self._until - time.monotonic(), 0.0)

    def _read(self, child: subprocess.Popen[bytes]) -> Iterator[bytes]:
        with selectors.DefaultSelector() as selector:
            for stream in (child.stdout, child.stderr):
                if stream is not None:
                    selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(self.left_s())
                if not ready:
                    raise self._late
                for key, _ in ready:
                    piece = os.read(key.fd, _PIECE_BYTES)
                    if not piece:
                        selector.unregister(key.fileobj)
                    elif key.fileobj is child.stderr:
                        self.said.extend(piece[: self._most_said_bytes - len(self.said)])
                    else:
                        self.beginning = self.beginning or piece
                        yield piece
