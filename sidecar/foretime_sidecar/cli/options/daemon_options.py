"""Options of the commands that speak of the site's daemon, and where it is by them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import DaemonError
from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN, parse_listen
from foretime_sidecar.settings.listen_setting import read_listen

Value = TypeVar("Value")

SETTINGS_FILE = Path("/etc/foretime/foretime.toml")
"""The site's settings, if nothing else is named."""
SETTINGS_VARIABLE = "FORETIME_SETTINGS"

SettingsOption = Annotated[
    Path | None,
    typer.Option(
        "--settings",
        metavar="FILE",
        help="Settings file of the daemon. Default: $FORETIME_SETTINGS, or "
        "/etc/foretime/foretime.toml.",
    ),
]
SocketOption = Annotated[
    Path | None, typer.Option("--socket", metavar="PATH", help="The daemon's unix socket.")
]


def read_site(given: Path | None, read: Callable[[Path], Value]) -> tuple[Value, Path] | None:
    """Read the file that --settings names, else $FORETIME_SETTINGS, else the site's, if there.

    Parameters
    ----------
    given
        What --settings names.
    read
        Reads all of it or a part.

    Returns
    -------
    What was read, and from where; ``None`` if nothing is named and the site has no file.

    Raises
    ------
    InputError
        If a file can't be read or is wrong, or one that was named is not there.
    """
    if given is not None:
        return read(given), given
    if named := os.environ.get(SETTINGS_VARIABLE):
        try:
            return read(Path(named)), Path(named)
        except InputError as error:
            raise InputError(f"${SETTINGS_VARIABLE}: {error}") from error
    try:
        return read(SETTINGS_FILE), SETTINGS_FILE
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return None
        raise


def site_listen(given: Path | None) -> str:
    """Say where the daemon is, as in ``api.listen``, by the settings alone; see `read_site`."""
    found = read_site(given, read_listen)
    return DEFAULT_LISTEN if found is None else found[0]


def where(settings: Path | None, socket_path: Path | None) -> str:
    """Say where the daemon is, as in ``api.listen``, by a command's --settings and --socket.

    Users ask, too. They need nothing else of the settings, and may not be allowed to read them: the
    daemon is then looked for where it listens by default.

    Raises
    ------
    InputError
        If the settings can't be used.
    DaemonError
        If they may not be read, and nothing is in the default place.
    """
    if socket_path is not None:
        if settings is not None:
            raise InputError("--socket and --settings both say where the daemon is: give one")
        return f"unix:{socket_path.absolute()}"
    try:
        return site_listen(settings)
    except InputError as error:
        named = settings is not None or os.environ.get(SETTINGS_VARIABLE)
        if named or not isinstance(error.__cause__, PermissionError):
            raise
    place = parse_listen(DEFAULT_LISTEN)
    if isinstance(place, Path) and not place.exists():
        raise DaemonError(
            f"no foretime daemon listens at {place}, and you may not read {SETTINGS_FILE}, which "
            "may name another place; ask the administrator, and give --socket"
        )
    return DEFAULT_LISTEN
