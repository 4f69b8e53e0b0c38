"""The dedicated times of PBS's scheduler, which only its file dedicated_time tells."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.client import Reservation

_NUMBERS = 10  # MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM


def read_dedicated_times(path: Path) -> list[Reservation]:
    """Read them; [] if there is no such file.

    Raises
    ------
    SchedulerError
        If it can't be read.
    """
    try:
        return parse_dedicated_times(path.read_text(encoding="ascii", errors="replace"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise SchedulerError(
            f"{path}: can't be read: {error.strerror}; let Foretime's user read it, or correct "
            "scheduler.pbs_dedicated_time_file"
        ) from error


def parse_dedicated_times(text: str, zone: tzinfo | None = None) -> list[Reservation]:
    """Read its lines; one that can't be read is passed over, as by pbs_sched.

    Parameters
    ----------
    text
        The file.
    zone
        Of its dates; ``None``: this machine's.
    """
    spans = (_span(line, zone) for line in text.splitlines())
    return [span for span in spans if span is not None]


def unread_lines(text: str) -> list[tuple[int, str]]:
    """Give number and text of the lines that pbs_sched passes over, and that are no comments."""
    return [
        (number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.partition("#")[0].strip() and _span(line, UTC) is None
    ]


def _span(line: str, zone: tzinfo | None) -> Reservation | None:
    words = line.partition("#")[0].replace("/", " ").replace(":", " ").split()
    if len(words) != _NUMBERS or not all(word.isdecimal() for word in words):
        return None
    try:
        start, end = (_moment(words[at : at + 5], zone) for at in (0, 5))
    except (ValueError, OverflowError):
        return None
    return Reservation("dedicated time", start, end) if start < end else None


def _moment(words: list[str], zone: tzinfo | None) -> int:
    month, day, year, hour, minute = map(int, words)
    # As mktime does for pbs_sched, 24:00 is the next day.
    if zone is None:
        return int(time.mktime((year, month, day, hour, minute, 0, 0, 0, -1)))
    date = datetime(year, month, 1, tzinfo=zone) + timedelta(day - 1, hours=hour, minutes=minute)
    return int(date.timestamp())
