"""The daemon's sign of life: a file beside the table, touched at each look that went through.

The watchdog needs nothing else of the daemon: no socket that may hang, no store that may be locked.
The file is empty, so that a full disk does not silence the daemon. When it was modified is when the
daemon looked, and its time of access is when the next look is due.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.settings.settings import TableSettings


def heartbeat_path(table: TableSettings) -> Path:
    """Give the file: that of the table with ``.alive`` behind it."""
    path = Path(table.path)
    return path.with_name(path.name + ".alive")


def beat(path: Path, pause_s: int = 0) -> None:
    """Say that the daemon lives, has just done what a look does, and looks again after a pause.

    Raises
    ------
    StateError
        If the file system refuses.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644))
        now = time.time()
        os.utime(path, (now + pause_s, now))
    except OSError as error:
        raise StateError(
            f"{path}: can't touch the daemon's sign of life: {error.strerror}; foretime watchdog "
            "will take the daemon for dead"
        ) from error


def silent_for_s(path: Path, now: float) -> float | None:
    """Give how long the daemon has been silent, seconds; ``None`` if it never gave a sign.

    A sign from the future (a clock was set back) counts as none.

    Raises
    ------
    StateError
        If that can't be told.
    """
    try:
        age_s = now - path.stat().st_mtime
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StateError(
            f"{path}: can't see when the daemon was last alive: {error.strerror}; run foretime "
            "watchdog as a user who may"
        ) from error
    return age_s if age_s >= -1 else None


def promised_pause_s(path: Path) -> float:
    """Give after what pause the daemon meant to look again, seconds; 0 if it did not say."""
    try:
        status = path.stat()
    except OSError:
        return 0.0
    return max(status.st_atime - status.st_mtime, 0.0)
