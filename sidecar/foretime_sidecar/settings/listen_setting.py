"""Where the daemon listens, by a file of settings, without all of it and what that imports."""

from __future__ import annotations

import tomllib
from pathlib import Path

from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN
from foretime_sidecar.settings.settings_text import settings_text


def read_listen(path: Path) -> str:
    """Give ``api.listen`` of a TOML file of settings.

    What is wrong elsewhere in it, the daemon and ``foretime config check`` say.

    Raises
    ------
    InputError
        If the file can't be read, is not TOML, or has something else there.
    """
    text = settings_text(path)
    try:
        listen = tomllib.loads(text).get("api", {}).get("listen", DEFAULT_LISTEN)
    except (ValueError, RecursionError, AttributeError):
        listen = None
    if isinstance(listen, str):
        return listen
    from foretime_sidecar.settings.settings_file import parse_settings  # says what is wrong, where

    return parse_settings(text, str(path)).api.listen
