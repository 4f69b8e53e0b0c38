"""What clocks on the wall of a site show, by the time zone that a log names."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import NamedTuple

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

QUARTER_S = 900
"""A calendar's offset from UTC is a whole number of quarters of an hour, and changes at such."""


class SiteClock(NamedTuple):
    """A time zone, and what it is called where people read it."""

    name: str
    zone: datetime.tzinfo

    def shows(self, epoch_s: Int64Array) -> Int64Array:
        """Say what it shows at moments: seconds since 1970-01-01 00:00 on this very clock."""
        if self.zone is datetime.UTC:
            return epoch_s
        quarters, of_moment = np.unique(epoch_s // QUARTER_S, return_inverse=True)
        offsets = [
            datetime.datetime.fromtimestamp(int(quarter) * QUARTER_S, self.zone).utcoffset()
            for quarter in quarters
        ]
        seconds = [0 if offset is None else round(offset.total_seconds()) for offset in offsets]
        return np.asarray(epoch_s + np.array(seconds, dtype=np.int64)[of_moment], dtype=np.int64)


UTC = SiteClock("UTC", datetime.UTC)


def zone_of(name: str) -> datetime.tzinfo:
    """Give a time zone by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"time zone {name!r} is unknown; give a name like Europe/Stockholm"
        ) from None


def site_clock(name: str | None) -> SiteClock:
    """Give the clock of a log's site: UTC, and its name says so, where the log names none."""
    if name is None:
        return UTC
    try:
        return SiteClock(name, zone_of(name))
    except InputError:
        return SiteClock(f"UTC ({name!r} is no time zone)", datetime.UTC)
