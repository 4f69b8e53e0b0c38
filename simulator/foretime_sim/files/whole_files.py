"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write a file; where that fails, or is interrupted, what was there before stays.

    It is written beside its place, and takes it once it is on the disk. What is no regular file (a
    pipe, /dev/stdout) is written directly, and so is a file in a folder that may not be changed.

    Raises
    ------
    OSError
        If it can't be written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.files.whole_files import write_whole
    >>> with TemporaryDirectory() as folder:
    ...     write_whole(Path(folder) / "notes.txt", b"all of it")
    ...     [path.name for path in Path(folder).iterdir()]
    ['notes.txt']
    """
    place = Path(os.path.realpath(path))  # a link stays one
    mode = _mode(path)
    if not _can_be_replaced(path, place, mode):
        path.write_bytes(data)
        return
    if mode is not None:
        place.open("r+b").close()  # a file that may not be written is not replaced either
    # No part of the name: it may be as long as names can be.
    draft = place.with_name(f".foretime-{secrets.token_hex(8)}")
    try:
        with draft.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(place)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _can_be_replaced(path: Path, place: Path, mode: int | None) -> bool:
    """Whether another file may take a file's place, and there is one or none."""
    if mode is None:
        return True
    # /dev/stdout and /dev/fd/3 lead to files that somebody has open and goes on writing.
    folder = os.path.realpath(path.parent)
    opened = folder == "/dev" or folder.startswith("/proc/")
    return stat.S_ISREG(mode) and not opened and os.access(place.parent, os.W_OK | os.X_OK)
