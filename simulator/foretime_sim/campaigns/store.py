"""What a campaign has found so far: one line of JSON a cell, in a file that only grows.

A line is written as soon as its cell is done, so whatever kills the process, only what was running
is lost; the disk is synced once a second, which is what a power loss may cost. A last line that was
cut short is passed over, and taken out before the next is added. One file works on any file system,
shared ones of clusters included, where a database would not be safe.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from foretime_estimators.jobs.errors import InputError, StateError

from foretime_sim.campaigns.cells import FORMAT
from foretime_sim.campaigns.runs import Record

CELLS = "cells.jsonl"
SYNC_S = 1.0


class CampaignStore:
    """The records in a campaign's output folder.

    Parameters
    ----------
    folder
        The output folder; made when the first record is written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.campaigns.store import CampaignStore
    >>> with TemporaryDirectory() as folder:
    ...     CampaignStore(Path(folder)).records()
    {}
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / CELLS

    def records(self) -> dict[str, Record]:
        """Give the last record of each cell, by its id.

        Raises
        ------
        InputError
            If a line is damaged; names file and line.
        StateError
            If the file can't be read.
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise StateError(f"{self.path}: can't read it: {error.strerror}") from error
        found: dict[str, Record] = {}
        lines = text.split(b"\n")
        for number, line in enumerate(lines, 1):
            record = _record_of(line)
            if record is not None and record["format"] == FORMAT:
                found[record["id"]] = record
            elif record is None and line and number < len(lines):
                raise InputError(
                    f"{self.path}:{number}: the line is damaged, it is no record of a cell; take"
                    " it out, and the cell is run again"
                )
        return found

    @contextmanager
    def writing(self) -> Iterator[CampaignWriter]:
        """Open the file to add records; one process at a time.

        Raises
        ------
        InputError
            If another campaign is running into this folder, or it can't be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise InputError(
                f"{error.filename or self.folder}: can't write the results: {error.strerror}"
            ) from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise InputError(
                    f"{self.folder}: a campaign is running into this folder; wait for it, or give "
                    "another with --output"
                ) from error
            writer = CampaignWriter(descriptor, self.path.read_bytes())
            try:
                yield writer
            finally:
                writer.sync()
        finally:
            os.close(descriptor)


def _record_of(line: bytes) -> Record | None:
    """Read a record; ``None`` if the line is none."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    whole = isinstance(record, dict) and "format" in record and isinstance(record.get("id"), str)
    return record if whole else None


class CampaignWriter:
    """Adds records to the file behind a descriptor, which has ``text`` so far."""

    def __init__(self, descriptor: int, text: bytes) -> None:
        self._descriptor = descriptor
        self._synced_at = time.monotonic()
        last = text.rpartition(b"\n")[2]
        if _record_of(last) is not None:
            self._write(b"\n")
        elif last:  # it was cut short
            os.ftruncate(descriptor, len(text) - len(last))

    def add(self, record: Record) -> None:
        """Write one record.

        Raises
        ------
        StateError
            If the disk does not take it.
        """
        self._write(json.dumps(record, separators=(",", ":")).encode() + b"\n")
        if time.monotonic() >= self._synced_at + SYNC_S:
            self.sync()

    def sync(self) -> None:
        """See all records to the disk."""
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            raise StateError(f"can't write the campaign's results: {error.strerror}") from error
        self._synced_at = time.monotonic()

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError as error:
            raise StateError(f"can't write the campaign's results: {error.strerror}") from error
