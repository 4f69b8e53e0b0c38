"""Checks of the table file, on any scheduler: that it is fresh, and nobody else's to write."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from foretime_estimators.jobs.errors import StateError

from foretime_sidecar.install.doctor.checkup import Check, Finding, ok, problem, warning
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import Mode, read_table

_CLOCK_TOLERANCE_S = 3600
_NETWORK_KINDS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "afs", "9p"}
)


def table_checks(settings: Settings, now: int) -> list[tuple[str, Check]]:
    """Give the checks of the table that these settings name."""
    path = Path(settings.table.path)
    return [
        ("table", lambda: fresh_table(path, now)),
        ("table's permissions", lambda: safe_path(path)),
        ("table's file system", lambda: local_file_system(path, Path("/proc/self/mounts"))),
    ]


def fresh_table(path: Path, now: int) -> Finding:
    """Look whether the hook can use the table now."""
    try:
        path.stat()
        table = read_table(path)
    except OSError as error:
        return _not_there(path, error)
    except StateError as error:
        return problem(
            str(error), "start the daemon (foretime serve), which writes a new one, or restart it"
        )
    if table.valid_until < now:
        return problem(
            f"{path} is out of date since {now - table.valid_until} s: every job is left alone",
            "start the daemon (foretime serve), and look at what it logs",
        )
    if table.written_at > now + _CLOCK_TOLERANCE_S:
        return problem(
            f"{path} was written {table.written_at - now} s in the future",
            "set the clocks of this host and the daemon's",
        )
    if table.settings.mode is not Mode.ENFORCE:
        return ok(
            f"{path}: generation {table.generation}; {table.settings.mode}: no job is changed"
        )
    share = table.settings.enforce_share_percent
    return ok(
        f"{path}: generation {table.generation}, {table.row_count} rows, {now - table.written_at} s"
        f" old; enforced for {share}% of users"
    )


def _not_there(path: Path, error: OSError) -> Finding:
    return problem(
        f"{path}: {error.strerror}", "start the daemon (foretime serve), or correct table.path"
    )


def safe_path(path: Path) -> Finding:
    """Look whether only root and the table's owner can put something in its place."""
    try:
        owner = path.stat().st_uid
        folders = [(folder, folder.stat()) for folder in path.resolve().parents]
    except OSError as error:
        return _not_there(path, error)
    for folder, status in folders:
        if status.st_uid not in (0, owner):
            return problem(
                f"{folder} belongs to user {status.st_uid}, who can replace the table",
                f"chown root {folder}",
            )
        sticky = status.st_mode & stat.S_ISVTX
        if status.st_mode & stat.S_IWOTH and not sticky:
            return problem(f"everybody can write to {folder}", f"chmod o-w {folder}")
        if status.st_mode & stat.S_IWGRP and not sticky and status.st_gid != 0:
            return warning(
                f"group {status.st_gid} can write to {folder}, and so replace the table",
                f"chmod g-w {folder}, if that is not the daemon's own group",
            )
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & stat.S_IWOTH:
        return problem(f"everybody can write to {path}", f"chmod o-w {path}")
    if not os.access(path, os.R_OK):
        return problem(f"{path} can't be read by this user", "run this as the scheduler's user")
    who = f"root and user {owner}" if owner else "root"
    return ok(f"{path} and every folder above it: only {who} can replace it")


def local_file_system(path: Path, mounts: Path) -> Finding:
    """Look whether the table lies where a hanging network could block the scheduler."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return warning(f"{mounts}: {error.strerror}", "look at what file system the table is on")
    place, best, kind = path.resolve(), Path("/"), "?"
    for line in lines:
        words = line.split()
        if len(words) >= 3:
            mounted = Path(words[1].replace("\\040", " "))
            if mounted in (place, *place.parents) and len(mounted.parts) >= len(best.parts):
                best, kind = mounted, words[2]
    if kind in _NETWORK_KINDS or kind.startswith("fuse."):
        return warning(
            f"{path} is on {best} ({kind}): if that hangs, so does the scheduler",
            "put the table on a local disk",
        )
    return ok(f"{path} is on {best} ({kind})")
