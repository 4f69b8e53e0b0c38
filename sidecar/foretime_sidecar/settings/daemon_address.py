"""Where the daemon listens, and the header in which its clients show a token."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

_UNIX = "unix:"
DEFAULT_LISTEN = f"{_UNIX}/run/foretime/foretime.sock"
"""``api.listen``, if it is not set."""
TOKEN_HEADER = "X-Foretime-Token"  # noqa: S105 - its name
TOKEN_PATH = "/v1/token"  # noqa: S105 - its path


def parse_listen(listen: str) -> Path | tuple[str, int]:
    """Read ``api.listen``: the path of a unix socket, or a loopback address and port.

    Raises
    ------
    InputError
        If it is neither.

    Examples
    --------
    >>> from foretime_sidecar.settings.daemon_address import parse_listen
    >>> parse_listen("127.0.0.1:8642")
    ('127.0.0.1', 8642)
    """
    if listen.startswith(_UNIX):
        path = Path(listen.removeprefix(_UNIX))
        if not path.is_absolute():
            raise InputError(f"api.listen = {listen!r}: give the socket's absolute path")
        return path
    host, _, port = listen.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        number = int(port)
    except ValueError:
        raise InputError(
            f"api.listen = {listen!r}: give unix:PATH or a loopback address such as 127.0.0.1:8642"
        ) from None
    if not address.is_loopback:
        raise InputError(
            f"api.listen = {listen!r}: not a loopback address; put a web server of yours before "
            "it if other machines shall ask"
        )
    if not 0 <= number <= 65535:
        raise InputError(f"api.listen = {listen!r}: a port is at most 65535")
    return str(address), number
