"""Whose a TCP connection of this machine is: its user, by the kernel's word (sock_diag(7)).

It tells whose connections count together, and never who asks: a forwarded port is the forwarder's.
"""

from __future__ import annotations

import ipaddress
import socket
import struct

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _REQUEST = 4, 20, 1
# struct nlmsghdr, then of struct inet_diag_req_v2 what comes before and after the addresses.
_HEADER = struct.Struct("=IHHII")
_WANTED, _PORTS, _SOCKET = struct.Struct("=BBxxI"), struct.Struct("!HH"), struct.Struct("=III")
_ANY = 0xFFFFFFFF
_ADDRESS_BYTES = 16
# Of struct inet_diag_msg what comes after the addresses: expires, rqueue, wqueue, uid, inode.
_FOUND = struct.Struct("=5I")
_FOUND_AT = _HEADER.size + 4 + _PORTS.size + 2 * _ADDRESS_BYTES + _SOCKET.size
_MOST_BYTES = 4096


def tcp_owner(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Give the uid of the process at the client's end of a connection on this machine.

    Parameters
    ----------
    client, server
        Address and port of both ends.

    Returns
    -------
    int or None
        ``None`` if the kernel does not tell: the client is gone, lives in another network
        namespace, or netlink sockets are not allowed here.
    """
    family = socket.AF_INET6 if ":" in client[0] else socket.AF_INET
    asked = b"".join(
        (
            _WANTED.pack(family, socket.IPPROTO_TCP, _ANY),
            _PORTS.pack(client[1], server[1]),
            _packed(client[0]),
            _packed(server[0]),
            _SOCKET.pack(0, _ANY, _ANY),
        )
    )
    header = _HEADER.pack(_HEADER.size + len(asked), _SOCK_DIAG_BY_FAMILY, _REQUEST, 0, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
            kernel.sendto(header + asked, (0, 0))
            answer = kernel.recv(_MOST_BYTES, socket.MSG_DONTWAIT)
    except OSError:
        return None
    if len(answer) < _FOUND_AT + _FOUND.size or _HEADER.unpack_from(answer)[1] != (
        _SOCK_DIAG_BY_FAMILY
    ):
        return None
    *_, uid, inode = _FOUND.unpack_from(answer, _FOUND_AT)
    # A socket that its process has closed has no inode, and is said to be root's.
    return uid if inode else None


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed.ljust(_ADDRESS_BYTES, b"\0")
