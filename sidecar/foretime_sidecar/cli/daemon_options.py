"""Options of the commands that speak of the site's daemon, and which settings they go by."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.answers.daemon_client import DaemonError
from foretime_sidecar.settings.api_settings import ApiSettings
from foretime_sidecar.settings.daemon_address import parse_listen
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import read_settings

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
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """What a command goes by.

    Attributes
    ----------
    settings
        The settings.
    file
        Where they stand; ``None`` if there is no file and all are at their defaults.
    """

    settings: Settings
    file: Path | None

    @property
    def missing(self) -> str:
        """That there is no file, in words; "" if there is one."""
        if self.file is not None:
            return ""
        return f"no settings file: {SETTINGS_FILE} is not there, so every setting is at its default"


def find_settings(given: Path | None) -> SiteSettings:
    """Read the file that --settings names, else $FORETIME_SETTINGS, else the site's, if there.

    Raises
    ------
    InputError
        If a file can't be read or is wrong, or one that was named is not there.
    """
    if given is not None:
        return SiteSettings(read_settings(given), given)
    if named := os.environ.get(SETTINGS_VARIABLE):
        try:
            return SiteSettings(read_settings(Path(named)), Path(named))
        except InputError as error:
            raise InputError(f"${SETTINGS_VARIABLE}: {error}") from error
    try:
        return SiteSettings(read_settings(SETTINGS_FILE), SETTINGS_FILE)
    except InputError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError):
            return SiteSettings(Settings(), None)
        raise


def site_settings(given: Path | None) -> Settings:
    """Give the site's settings; without a file say on stderr that the defaults count."""
    found = find_settings(given)
    if found.missing:
        typer.echo(f"note: {found.missing}", err=True)
    return found.settings


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
        return find_settings(settings).settings.api.listen
    except InputError as error:
        named = settings is not None or os.environ.get(SETTINGS_VARIABLE)
        if named or not isinstance(error.__cause__, PermissionError):
            raise
    listen = ApiSettings().listen
    place = parse_listen(listen)
    if isinstance(place, Path) and not place.exists():
        raise DaemonError(
            f"no foretime daemon listens at {place}, and you may not read {SETTINGS_FILE}, which "
            "may name another place; ask the administrator, and give --socket"
        )
    return listen
