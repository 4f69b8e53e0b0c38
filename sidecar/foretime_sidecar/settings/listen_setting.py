"""Where the daemon listens, by a file of settings, without all of it and what that imports."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from foretime_sidecar.settings.daemon_address import DEFAULT_LISTEN
from foretime_sidecar.settings.settings_text import settings_text


def read_listen(path: Path) -> str:
    """Give ``api.listen`` of a TOML file of settings.

    What is wrong elsewhere in it, the daemon and ``foretime config check`` say.

    Raises
    ------
    InputError
        If the file can't be read, is not TOML, has something else there, or seems to mean it: a key
        of ``[api]`` is unknown, or there is no such section and a ``listen`` elsewhere.
    """
    text = settings_text(path)
    section = "api"
    try:
        values = tomllib.loads(text)
        section = _section(values)
        found = values.get(section, {})
        listen = found.get("listen", DEFAULT_LISTEN)
    except (ValueError, RecursionError, AttributeError):
        found, listen = {}, None
    if section == "api" and isinstance(listen, str) and not _unknown(found):
        return listen
    from foretime_sidecar.settings.settings_file import parse_settings  # says what is wrong, where

    return parse_settings(text, str(path), only=section).api.listen


def _section(values: Mapping[str, Any]) -> str:
    """Give ``api``; where there is none, what somebody has called it who set listen."""
    if "api" in values:
        return "api"
    holders = (n for n, held in values.items() if isinstance(held, dict) and "listen" in held)
    return next(holders, "listen" if "listen" in values else "api")


def _unknown(keys: Iterable[str]) -> bool:
    others = set(keys) - {"listen"}
    if not others:
        return False
    from foretime_sidecar.settings.api_settings import ApiSettings  # most questions need none of it

    return not others <= ApiSettings.model_fields.keys()
