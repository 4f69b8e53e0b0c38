"""Graham's noon polls, read from their archive: pending jobs, what was known, their waits."""

from __future__ import annotations

import csv
import io
import lzma
import re
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from foretime_estimators.arrays import BoolArray, Float64Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_studies.frame.progress import Progress
from foretime_studies.graham2021.columns import (
    ACCOUNT,
    KNOWN,
    POLL,
    SLURM_PARTITION,
    SUBMIT,
    TRES,
    WAIT,
)

_READ = (POLL, SUBMIT, ACCOUNT, SLURM_PARTITION, TRES, WAIT)
_WIDTH = 5 + len(KNOWN) + 2
"""Numbers read of each row: times, account, slurm_partition, wait; what is known; GPUs, nodes."""
_GPUS, _NODES = re.compile(r"gpu[^=,]*=(\d+)"), re.compile(r"node=(\d+)")
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, slots=True)
class NoonPolls:
    """Pending jobs at noon polls, in order of time; every array has shape (jobs,) or (jobs, n)."""

    # poll_time, submit_time: seconds of the site's clock since 1970
    poll_time: Int64Array
    submit_time: Int64Array
    # account, slurm_partition: their numbers, at the poll
    account: Int64Array
    slurm_partition: Int64Array
    known: Float64Array  # `KNOWN` columns, then requested GPUs and nodes
    # Seconds from the poll to the start: the answer. Only `known_outcomes` may look at it.
    wait_s: Int64Array
    # Rows that the published study left out: an account of no share has infinite use of it (here
    # the largest number), one of neither share nor use has no ratio of them (here 0).
    infinite: BoolArray

    def __len__(self) -> int:
        return len(self.wait_s)

    @property
    def polls(self) -> Int64Array:
        """Each poll's time, shape (polls,)."""
        return np.unique(self.poll_time)

    def rows_of(self, poll: int) -> Int64Array:
        """Rows of one poll."""
        return np.flatnonzero(self.poll_time == poll)

    def known_outcomes(self, now: int) -> tuple[Int64Array, Int64Array, BoolArray]:
        """Give what is known at a moment of the waits of earlier polls' jobs.

        Returns
        -------
        rows
            Jobs of polls before ``now``, shape (n,).
        waited_s
            Seconds that each has waited since its poll: until its start, or until ``now``.
        started
            Whether it has started by ``now``. If not, its wait is longer than ``waited_s``.
        """
        rows = np.flatnonzero(self.poll_time < now)
        since = now - self.poll_time[rows]
        wait = self.wait_s[rows]
        return rows, np.minimum(wait, since), wait <= since


def read_noon_polls(
    path: Path,  # archive with a CSV file for each poll
    progress: Progress | None = None,  # told how many files have been read
) -> NoonPolls:
    """Read the archive (tar, plain or compressed) from beginning to end, one file at a time.

    InputError if it can't be read or is not such an archive; says which file and line, and what to
    do.
    """
    polls: list[Float64Array] = []
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.name.endswith(".csv") else None
                if file is None:
                    continue
                text = io.StringIO(file.read().decode("utf-8"), newline="")
                rows = list(_rows(text, f"{path}:{Path(member.name).name}"))
                polls.append(np.array(rows).reshape(len(rows), _WIDTH))
                if progress is not None:
                    progress(len(polls))
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name the archive") from None
    except OSError as error:
        raise InputError(f"{path}: can't be read: {error.strerror or error}") from None
    except (tarfile.TarError, lzma.LZMAError, EOFError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: is not a whole archive of Graham's polls ({error}); name "
            "DRAC-Graham-2021-noon-pending.csv.tar.xz"
        ) from None
    table = np.concatenate(polls) if polls else np.empty((0, _WIDTH))
    if not len(table):
        raise InputError(f"{path}: there is no poll (*.csv) with a job in it")
    return _polls(table)


def _polls(table: Float64Array) -> NoonPolls:
    table = table[np.argsort(table[:, 0], kind="stable")]
    whole = table[:, :5].astype(np.int64)
    known = table[:, 5:]
    return NoonPolls(
        poll_time=whole[:, 0],
        submit_time=whole[:, 1],
        account=whole[:, 2],
        slurm_partition=whole[:, 3],
        wait_s=whole[:, 4],
        known=np.nan_to_num(known, nan=0.0, posinf=_LARGEST, neginf=-_LARGEST),
        infinite=np.asarray(~np.isfinite(known).all(axis=1)),
    )


def _rows(lines: Iterable[str], source: str) -> Iterator[list[float]]:
    """Read a poll's jobs; columns that are not asked for are not looked at."""
    reader = csv.DictReader(lines)
    missing = [name for name in (*_READ, *KNOWN) if name not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{source}: there is no column {missing[0]}; is this one of Graham's?")
    for row in reader:
        at = ""
        try:
            times = [_seconds(row[at := name]) for name in (POLL, SUBMIT)]
            numbers = [int(row[at := name]) for name in (ACCOUNT, SLURM_PARTITION, WAIT)]
            values = [float(row[at := name] or "nan") for name in KNOWN]
        except (ValueError, TypeError):
            raise InputError(
                f"{source}:{reader.line_num}: {at} is {row[at]!r}; fetch the archive again"
            ) from None
        if times[1] > times[0] or numbers[2] <= 0:
            raise InputError(
                f"{source}:{reader.line_num}: submitted {row[SUBMIT]}, polled {row[POLL]}, "
                f"{WAIT} {row[WAIT]}: the job was not pending; leave it out"
            )
        yield [*times, *numbers, *values, _count(_GPUS, row[TRES]), _count(_NODES, row[TRES])]


def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


def _count(pattern: re.Pattern[str], tres: str) -> float:
    found = pattern.search(tres)
    return float(found[1]) if found else 0.0
