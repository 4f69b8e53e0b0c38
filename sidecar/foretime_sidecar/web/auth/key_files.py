"""Files with keys and secrets, read anew each time: keys are changed while the daemon runs."""

from __future__ import annotations

import stat
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

LEAST_BYTES = 16


def read_public(path: str, setting: str) -> bytes:
    """Read a file that anybody may see.

    Raises
    ------
    InputError
        If it can't be read, or is empty.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"{setting} = {path!r}: can't read it: {error.strerror}; let the daemon's user read it"
        ) from error
    if not content.strip():
        raise InputError(f"{setting} = {path!r}: it is empty; write the key into it")
    return content


def read_secret(path: str, setting: str) -> bytes:
    """Read a file that others must not see.

    Raises
    ------
    InputError
        If it can't be read, holds too little, or everybody may read it.
    """
    content = read_public(path, setting)
    if Path(path).stat().st_mode & (stat.S_IROTH | stat.S_IWOTH):
        raise InputError(
            f"{setting} = {path!r}: everybody may read or write it, and be anybody with it; "
            "chmod o= it, and make a new key"
        )
    if len(content.strip()) < LEAST_BYTES:
        raise InputError(
            f"{setting} = {path!r}: fewer than {LEAST_BYTES} bytes can be guessed; make a longer "
            "one"
        )
    return content
