"""Where the daemon listens: a unix socket, or a loopback address."""

from __future__ import annotations

import ipaddress
import socket
import stat
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.settings.api_settings import ApiSettings

_PROBE_S = 5
_UNIX = "unix:"


def parse_listen(listen: str) -> Path | tuple[str, int]:
    """Read ``api.listen``: the path of a unix socket, or a loopback address and port.

    Raises
    ------
    InputError
        If it is neither.
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


class Listener:
    """A socket bound where the settings say; one left by a dead daemon is replaced.

    Parameters
    ----------
    settings
        Where, and the permissions of a unix socket.

    Attributes
    ----------
    socket
        Bound, not yet listening.
    address
        As in ``api.listen``, with the port that was taken if it says 0.

    Raises
    ------
    InputError
        If ``api.listen`` is wrong, or something that is no socket is there.
    StateError
        If another process listens there, or the place can't be used.
    """

    def __init__(self, settings: ApiSettings) -> None:
        where = parse_listen(settings.listen)
        self._path: Path | None = None
        self.address = settings.listen
        if isinstance(where, Path):
            self.socket = _bind_unix(where, int(settings.socket_mode, 8))
            self._path, self._identity = where, _identity(where)
        else:
            self.socket = _bind_tcp(*where)
            port = self.socket.getsockname()[1]
            self.address = f"{settings.listen.rpartition(':')[0]}:{port}"

    def close(self) -> None:
        """Close it, and remove a unix socket unless it is a successor's by now."""
        if self._path is not None and _identity(self._path) == self._identity:
            self._path.unlink(missing_ok=True)
        self.socket.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _bind_tcp(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise StateError(
            f"can't listen on {host}, port {port}: {error.strerror}; is another foretime serve "
            "running there?"
        ) from error
    return listener


def _bind_unix(path: Path, mode: int) -> socket.socket:
    _remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        # Nobody can connect before it listens, so none does with the wrong permissions.
        path.chmod(mode)
    except OSError as error:
        listener.close()
        raise StateError(
            f"can't listen on {path}: {error.strerror or error}; check that its folder exists, "
            "that foretime may write there, and that the path is below 108 bytes"
        ) from error
    return listener


def _remove_stale(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except OSError:
        return  # nothing there, or bind will say what is wrong
    if not is_socket:
        raise InputError(f"api.listen: {path} is there and no socket; move it, or name another")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_PROBE_S)
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except FileNotFoundError:
            return
        except OSError as error:
            raise StateError(
                f"can't tell whether anybody listens on {path}: {error.strerror or error}; "
                "remove it if no foretime serve runs"
            ) from error
    raise StateError(f"another process listens on {path}; stop that foretime serve first")
