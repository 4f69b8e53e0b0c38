"""The file in which pbs_sched keeps what everybody has used, for its fair share."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.pbs.resource_group import TIMES

# write_usage of fairshare.cpp: tag and version, when usage was decayed last, and of each entity its
# name and what it has used. Groups are not there: they have what those below them have.
_HEADER = struct.Struct("9s7xdq")
_ENTITY = struct.Struct("50s6xd")
_TAG, _VERSION = b"PBS_MAG!", 2.0
_ATTEMPTS, _PAUSE_S = 20, 0.1


@dataclass(frozen=True, slots=True)
class Usage:
    """What everybody has used.

    Attributes
    ----------
    used
        By name; who has used nothing is not there.
    charged_at
        When the file was written, as a cycle does once it has charged what jobs use; epoch seconds.
    decayed_at
        When usage was last decayed; ``None``: it never was.
    """

    used: Mapping[str, float] = field(default_factory=dict)
    charged_at: int | None = None
    decayed_at: int | None = None


def read_usage_file(path: Path) -> Usage:
    """Read ``sched_priv/usage``.

    Without a file nobody has used anything.

    Raises
    ------
    SchedulerError
        If it can't be read, or is none of OpenPBS's.
    """
    for _ in range(_ATTEMPTS):
        try:
            with path.open("rb") as file:
                content, written_at = file.read(), os.fstat(file.fileno()).st_mtime
        except FileNotFoundError:
            return Usage()
        except OSError as error:
            raise SchedulerError(f"{path}: can't be read: {error.strerror}") from error
        # It is emptied before it is written, and written in one go.
        if len(content) >= _HEADER.size and (len(content) - _HEADER.size) % _ENTITY.size == 0:
            return usage_of(content, str(path), int(written_at))
        time.sleep(_PAUSE_S)
    raise SchedulerError(f"{path}: is no usage file of OpenPBS, or is cut off; check pbs_sched")


def usage_of(content: bytes, source: str, charged_at: int | None = None) -> Usage:
    """Read its content, all of it.

    Raises
    ------
    SchedulerError
        If it is of another version.
    """
    tag, version, decayed_at = _HEADER.unpack_from(content)
    if tag.rstrip(b"\0") != _TAG or version != _VERSION:
        raise SchedulerError(f"{source}: is a usage file of another version than {_VERSION:g}")
    entities = _ENTITY.iter_unpack(content[_HEADER.size :])
    used = {name.split(b"\0")[0].decode(errors="replace"): used for name, used in entities}
    return Usage(used, charged_at, decayed_at or None)


def as_pbsfs(usage: Usage) -> str:
    """Give it in the words of ``pbsfs -p``, but for the resource that it is of, and the times."""
    lines = ["Fairshare usage units are in: the formula of sched_config"]
    for words, moment in zip(TIMES, (usage.charged_at, usage.decayed_at), strict=True):
        if moment is not None:
            lines.append(f"{words}: {moment}")
    lines += [
        f"{name}: Grp: 0 cgrp: 0 Shares: 0 Usage: {used:.0f} Perc: 0%"
        for name, used in usage.used.items()
    ]
    return "\n".join([*lines, ""])
