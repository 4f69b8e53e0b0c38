"""Who is at the other end of a unix socket: the kernel's word, not the caller's."""

from __future__ import annotations

import asyncio
import pwd
import socket
import struct
from dataclasses import dataclass

from uvicorn.protocols.http.h11_impl import H11Protocol

# Of one user (over TCP: of everybody) at a time.
MOST_CONNECTIONS = 32

# struct ucred of unix(7): pid, uid, gid.
_CREDENTIALS = struct.Struct("iII")


@dataclass(frozen=True, slots=True)
class Peer:
    """A process that connected.

    Attributes
    ----------
    pid, uid, gid
        As they were when it connected.
    """

    pid: int
    uid: int
    gid: int

    @property
    def user(self) -> str | None:
        """Login name; ``None`` if this machine knows none for the uid."""
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return None


def peer_of(connection: socket.socket) -> Peer | None:
    """Give the process at the other end (SO_PEERCRED, unix(7)); ``None`` unless a unix socket."""
    if connection.family != socket.AF_UNIX:
        return None
    packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(packed))


class PeerProtocol(H11Protocol):
    """uvicorn's HTTP protocol that gives each request its connection's peer: ``state.peer``.

    It closes a user's connections beyond `MOST_CONNECTIONS`, so that none of them can use up the
    daemon's open files, and with them its polls.
    """

    peer: Peer | None = None
    _refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the peer; every request of the connection carries a copy of this state."""
        self.peer = peer_of(transport.get_extra_info("socket"))
        uid = None if self.peer is None else self.peer.uid
        if sum(_uid_of(other) == uid for other in self.connections) >= MOST_CONNECTIONS:
            self._refused = True
            transport.close()
            return
        self.app_state = {**self.app_state, "peer": self.peer}
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - for the type checker
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the connection, unless it was never taken."""
        if not self._refused:
            super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what was sent, unless the connection was never taken."""
        if not self._refused:
            super().data_received(data)


def _uid_of(connection: object) -> int | None:
    peer = getattr(connection, "peer", None)
    return peer.uid if isinstance(peer, Peer) else None
