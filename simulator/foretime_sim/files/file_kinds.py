"""What a path leads to: a file, a folder, or nothing."""

from __future__ import annotations

import stat
from pathlib import Path

from foretime_estimators.jobs.errors import InputError


def kind_of(path: Path) -> int | None:
    """Give the kind of what is at a path, as `stat.S_IFMT` does; ``None`` if nothing is.

    Raises
    ------
    InputError
        If it can't be told, as a folder on the way may not be entered.

    Examples
    --------
    >>> import stat
    >>> from pathlib import Path
    >>> from foretime_sim.files.file_kinds import kind_of
    >>> kind_of(Path("/")) == stat.S_IFDIR
    True
    >>> kind_of(Path("/none/log.swf")) is None
    True
    """
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError as error:
        raise InputError(
            f"{path}: can't be looked at: {error.strerror}; have the folders above it opened to "
            "you, or name another path"
        ) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(f"{path}: can't be looked at: {reason}; name another path") from error


def is_folder(path: Path) -> bool:
    """Whether a path leads to a folder; InputError as of `kind_of`."""
    return kind_of(path) == stat.S_IFDIR


def exists(path: Path) -> bool:
    """Whether there is anything at a path; InputError as of `kind_of`."""
    return kind_of(path) is not None
