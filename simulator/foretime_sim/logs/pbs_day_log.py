"""Logs as PBS keeps them: a file for each day, each line with its stamp."""

from __future__ import annotations

import datetime
from pathlib import Path

from foretime_sim.workloads.site_clock import zone_of


class Stamps:
    """Days and stamps of epoch seconds; each minute's is worked out once.

    Parameters
    ----------
    time_zone
        Name of the time zone; UTC if not given.
    """

    def __init__(self, time_zone: str | None = None) -> None:
        self._zone = datetime.UTC if time_zone is None else zone_of(time_zone)
        self._minutes: dict[int, tuple[str, str]] = {}

    def of(self, time: int) -> tuple[str, str]:
        """Give the day (YYYYMMDD) and the stamp of a time."""
        minute, second = divmod(time, 60)
        known = self._minutes.get(minute)
        if known is None:
            moment = datetime.datetime.fromtimestamp(minute * 60, self._zone)
            known = moment.strftime("%Y%m%d"), moment.strftime("%m/%d/%Y %H:%M:")
            self._minutes[minute] = known
        day, stamp = known
        return day, f"{stamp}{second:02d}"


class DayLog:
    """A log in a file for each day, called YYYYMMDD; lines are kept until `flush`.

    Parameters
    ----------
    folder
        Where the files are, made if absent; ``None`` writes nothing.
    stamps
        Days and stamps.
    """

    def __init__(self, folder: Path | None, stamps: Stamps) -> None:
        self._folder = folder
        self._stamps = stamps
        self._lines: dict[str, list[str]] = {}
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def write(self, time: int, what: str) -> None:
        """Add a line of a time, epoch seconds: its stamp, and what follows."""
        day, stamp = self._stamps.of(time)
        self._lines.setdefault(day, []).append(f"{stamp}{what}\n")

    def flush(self) -> None:
        """Write what was kept."""
        if not self._lines or self._folder is None:
            return
        for day, lines in self._lines.items():
            with (self._folder / day).open("a", encoding="utf-8") as file:
                file.write("".join(lines))
        self._lines.clear()
