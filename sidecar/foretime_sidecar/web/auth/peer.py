"""Who is at the other end of a unix socket: the kernel's word, not the caller's."""

from __future__ import annotations

import pwd
import socket
import struct
from dataclasses import dataclass

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
