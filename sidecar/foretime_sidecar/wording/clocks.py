"""Times of day as people say them, in the time zone of who reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_ZONE: ContextVar[tzinfo | None] = ContextVar("zone", default=None)
_ASKED = re.compile(r"([A-Za-z0-9_+/-]{1,64})(?:,(-?\d{1,3}))?", re.ASCII)


@contextmanager
def in_zone(asked: str | None) -> Iterator[None]:
    """Say times of day in a time zone.

    Parameters
    ----------
    asked
        Its name, such as ``Asia/Calcutta``. Its present offset from UTC may follow in minutes, for
        machines that don't know the name: ``Asia/Calcutta,330``. ``None``, or what is no zone: that
        of the machine, or of the terminal.

    Examples
    --------
    >>> from foretime_sidecar.wording.clocks import in_zone, spoken_clock
    >>> with in_zone("Asia/Kolkata"):
    ...     spoken_clock(1_700_000_000, 1_700_000_000)
    '03:43'
    """
    token = _ZONE.set(None if asked is None else _zone_of(asked))
    try:
        yield
    finally:
        _ZONE.reset(token)


def _zone_of(asked: str) -> tzinfo | None:
    if (match := _ASKED.fullmatch(asked)) is None:
        return None
    try:
        return ZoneInfo(match[1])
    except (KeyError, ValueError, OSError):  # unknown, no file of a zone, a folder of zones
        return None if match[2] is None else timezone(timedelta(minutes=int(match[2])), match[1])


def spoken_clock(moment: int, now: int) -> str:
    """Say a moment (epoch seconds) on the reader's clock, with the day if it is not today."""
    then, today = local_time(moment), local_time(now)
    clock = f"{then:%H:%M}"
    if then.date() == today.date():
        return clock
    if then.date() == (today + timedelta(days=1)).date():
        return f"tomorrow {clock}"
    return f"{spoken_day(moment, now)} {clock}"


def spoken_day(moment: int, now: int) -> str:
    """Say the day of a moment (epoch seconds), with the year if it is not this one."""
    then, today = local_time(moment), local_time(now)
    day = f"{then:%a} {then.day} {then:%b}"
    return day if then.year == today.year else f"{day} {then.year}"


def dated_clock(moment: int) -> str:
    """Write a moment (epoch seconds) with its date and seconds: ``2026-11-21 13:05:00``."""
    return f"{local_time(moment):%Y-%m-%d %H:%M:%S}"


def local_time(moment: int) -> datetime:
    """Give a moment (epoch seconds) in the reader's time zone."""
    return datetime.fromtimestamp(moment, UTC).astimezone(_ZONE.get())


def short_zone(now: int) -> str:
    """Name the time zone in a word: ``CET``, or ``UTC+05:30`` where it has none."""
    name = local_time(now).tzname() or ""
    return name if name.isalpha() else f"UTC{local_time(now).isoformat()[-6:]}"


def zone_name(now: int) -> str:
    """Name the time zone: ``Asia/Kolkata (UTC+05:30)``; that of the machine as ``CET``."""
    zone = _ZONE.get()
    name = local_time(now).tzname() if zone is None else str(zone)
    return "UTC" if name == "UTC" else f"{name} (UTC{local_time(now).isoformat()[-6:]})"
