"""Opens connections as another user and keeps all of them slow, until its input ends.

Arguments: uid, number, and a socket's path or a port. It says "ready" once they are open; one that
the daemon closes is opened again.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import socket
import sys


def main(uid: int, number: int, where: str) -> None:
    """Hold slow connections."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (number + 100, number + 100))
    os.setgroups([])
    os.setgid(uid)
    os.setuid(uid)
    held: list[socket.socket | None] = [None] * number
    said = False
    while not select.select([sys.stdin], [], [], 0.1 if said else 0)[0]:
        for index, connection in enumerate(held):
            try:
                if connection is None:
                    held[index] = connection = opened(where)
                    connection.sendall(b"GET /healthz HTTP/1.1\r\nX: ")
                connection.sendall(b"s")
            except OSError:
                if connection is not None:
                    connection.close()
                held[index] = None
        if not said:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            said = True


def opened(where: str) -> socket.socket:
    """Connect, and give up on a daemon that does not take connections."""
    family = socket.AF_INET if where.isdigit() else socket.AF_UNIX
    connection = socket.socket(family)
    connection.settimeout(5)
    try:
        connection.connect(("127.0.0.1", int(where)) if where.isdigit() else where)
    except OSError:
        with contextlib.suppress(OSError):
            connection.close()
        raise
    return connection


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
