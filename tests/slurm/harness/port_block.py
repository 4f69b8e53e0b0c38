"""Loopback ports of a test cluster's own, however many clusters are brought up at once."""

from __future__ import annotations

import random
import socket

# Below the ports that outgoing connections take.
_FIRST, _END, _SIZE = 10_000, 32_000, 400


class PortBlock:
    """Ports that no other cluster uses; `close` gives them back.

    The first of the block stands for all: who could bind it has them, until the socket closes.
    """

    def __init__(self) -> None:
        blocks = list(range(_FIRST, _END, _SIZE))
        random.shuffle(blocks)
        for first in blocks:
            guard = socket.socket()
            try:
                guard.bind(("127.0.0.1", first))
            except OSError:
                guard.close()
                continue
            self._guard, self._next, self._end = guard, first + 1, first + _SIZE
            return
        raise RuntimeError(f"no free ports on loopback between {_FIRST} and {_END}")

    def take(self, count: int = 1) -> int:
        """Give the first of so many ports in a row that nobody listens on."""
        first = self._next
        while not all(_free(port) for port in range(first, first + count)):
            first += 1
        if first + count > self._end:
            raise RuntimeError(f"{count} more ports are not to be had in a block of {_SIZE}")
        self._next = first + count
        return first

    def close(self) -> None:
        """Give the ports back."""
        self._guard.close()


def _free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
