"""Where the daemon listens: a unix socket, or a loopback address."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import parse_listen

_PROBE_S = 5


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
