"""The text of a file of settings."""

from __future__ import annotations

from pathlib import Path

from foretime_estimators.jobs.errors import InputError


def settings_text(path: Path) -> str:
    """Give the text of a file of settings.

    Raises
    ------
    InputError
        If it can't be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        remedy = "name a TOML file (foretime config show prints one to begin with)"
        if isinstance(error, PermissionError):
            remedy = "run this as root or as the daemon's user, or name another file"
        raise InputError(f"{path}: can't read the settings: {reason}; {remedy}") from error
