"""Follows logs that PBS writes into a file for each day, called YYYYMMDD."""

from __future__ import annotations

import datetime
import gzip
import lzma
from collections.abc import Iterator
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError
from foretime_sim.logs.pbs_accounting import FILE_NAME

_ONE_DAY = datetime.timedelta(days=1)


def day_of(time: int) -> str:
    """Give the name of the file of a moment, in the server's own time zone."""
    return datetime.datetime.fromtimestamp(time).astimezone().strftime("%Y%m%d")


def _next_day(day: str) -> str:
    date = datetime.datetime.strptime(day, "%Y%m%d").astimezone()
    return (date + _ONE_DAY).strftime("%Y%m%d")


class DayFiles:
    """The complete lines of a folder of day files, each given once.

    A line that is still being written is given when it has its end. A file that got shorter, or was
    put in the place of another, is read again from its beginning; a day that was compressed after
    it was read is not.

    Parameters
    ----------
    folder
        Where the files are.
    setting
        What names the folder, for errors.
    """

    def __init__(self, folder: Path, setting: str) -> None:
        self.folder = folder
        self._setting = setting
        # By day: the file's identity, and how far it was read, bytes.
        self._read: dict[str, tuple[int, int]] = {}

    def lines(self, first_day: str, last_day: str) -> Iterator[tuple[str, bytes]]:
        """Give the new lines of the days from one to another, with where each stands.

        Raises
        ------
        SchedulerError
            If the folder or a file can't be read.
        """
        try:
            found = sorted(
                (path for path in self.folder.iterdir() if FILE_NAME.fullmatch(path.name)),
                key=lambda path: path.name,
            )
        except OSError as error:
            raise SchedulerError(
                f"{self.folder}: can't be read: {error.strerror}; let Foretime's user read it, or "
                f"correct {self._setting}"
            ) from error
        # Days long over are not looked at again, but for the one before the last that grew.
        latest = max(self._read, default="")
        for path in found:
            day = path.name[:8]
            if first_day <= day <= last_day and (day not in self._read or _next_day(day) >= latest):
                yield from self._new_lines(path, day)

    def _new_lines(self, path: Path, day: str) -> Iterator[tuple[str, bytes]]:
        if path.suffix and day in self._read:
            return  # it was read before it was compressed
        try:
            if path.suffix:
                data = (gzip if path.suffix == ".gz" else lzma).open(path).read()
                identity, begin = -1, 0
            else:
                with path.open("rb") as file:
                    identity = path.stat().st_ino
                    known, begin = self._read.get(day, (identity, 0))
                    if known != identity or path.stat().st_size < begin:
                        begin = 0
                    file.seek(begin)
                    data = file.read()
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise SchedulerError(
                f"{path}: can't be read: {getattr(error, 'strerror', None) or error}; let "
                "Foretime's user read it"
            ) from error
        end = data.rfind(b"\n") + 1
        for line in data[:end].splitlines():
            yield path.name, line
        # Only now, so that what was not taken is given again.
        self._read[day] = identity, begin + end
