"""One daemon for a store, and one for a table: a lock beside each, held while the daemon lives.

Two daemons would take turns: each writes its own table over the other's, and learns what the other
has not read. The kernel lets go of a lock when its process ends, however that happens. The commands
that the daemon runs do not inherit it.

A lock is a file beside the real one, whatever path leads there. It stays when the daemon ends: if
it were removed, one daemon could lock the old file and another the new one. The store itself is not
locked so, as on NFS that would be the very lock that SQLite needs.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import stat
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sidecar.settings.settings import Settings

logger = logging.getLogger("foretime")

_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class DaemonLock:
    """Keeps every other daemon from the store and the table.

    Parameters
    ----------
    settings
        Where both are. A store in memory needs no lock.

    Raises
    ------
    InputError
        If another daemon has one of them, or the lock is another user's.
    StateError
        If the file system refuses.
    """

    def __init__(self, settings: Settings) -> None:
        self._descriptors: list[int] = []
        places = {"table.path": Path(settings.table.path)}
        if settings.store.path != ":memory:":
            places["store.path"] = Path(settings.store.path)
        try:
            for setting, path in places.items():
                self._descriptors.append(_locked(setting, path, lock_path(setting, path)))
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let another daemon have them."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def daemon_lives(settings: Settings) -> bool:
    """Whether a daemon has the store of these settings; not if that can't be told."""
    try:
        descriptor = os.open(
            lock_path("store.path", Path(settings.store.path)),
            os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK,
        )
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def lock_path(setting: str, path: Path) -> Path:
    """Give the lock of what a setting names: two spellings of one path have the same.

    A new table takes the place of what stands at its path, be it a link. The store is written where
    a link leads.
    """
    if setting == "table.path":
        return Path(os.path.realpath(path.parent), path.name + ".lock")
    return Path(os.path.realpath(path) + ".lock")


def _locked(setting: str, path: Path, lock: Path) -> int:
    while True:
        descriptor = _opened(setting, path, lock)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not _is_in_place(descriptor, lock):
                os.close(descriptor)  # somebody has removed it: another may lock the next one
                continue
        except BlockingIOError:
            who = _holder(descriptor)
            os.close(descriptor)
            raise InputError(
                f"{setting} = {str(path)!r}: another foretime serve{who} uses it; stop that one "
                "first (systemctl stop foretime), or give this one a store and a table of its own "
                "(store.path, table.path)"
            ) from None
        except OSError as error:
            # On a file system without locks. The daemon is worth more than the lock.
            logger.warning(
                "%s: can't lock it: %s; a second foretime serve would not be noticed",
                *(lock, error.strerror),
            )
        with contextlib.suppress(OSError):  # only words, for which a full disk may have no room
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor


def _opened(setting: str, path: Path, lock: Path) -> int:
    try:
        try:
            descriptor = os.open(lock, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            descriptor = os.open(lock, _FLAGS)
        else:
            if os.geteuid() == 0:
                # So that root, who tries something, does not lock the daemon's own user out.
                folder = lock.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
    except PermissionError as error:
        owner = ""
        with contextlib.suppress(OSError):
            owner = f", which belongs to user {lock.stat().st_uid}"
        raise InputError(
            f"{setting} = {str(path)!r}: can't open its lock {lock}{owner}: {error.strerror}; run "
            "foretime serve as the user of the other files there, or remove the lock if no "
            "foretime serve runs"
        ) from error
    except OSError as error:
        raise StateError(
            f"{path}: can't open its lock {lock}: {error.strerror}; check that the folder exists "
            "and that foretime may write there"
        ) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StateError(f"{lock} is no file; remove it")
    return descriptor


def _is_in_place(descriptor: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), lock.lstat())
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> str:
    """Say which process has the lock, as it wrote into it."""
    with contextlib.suppress(OSError, ValueError):
        return f" (process {int(os.pread(descriptor, 20, 0))})"
    return ""
