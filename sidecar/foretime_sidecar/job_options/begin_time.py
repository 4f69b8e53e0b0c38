"""When a job may begin, in the forms of ``sbatch --begin`` and ``qsub -a``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta

from foretime_estimators.jobs.errors import InputError

_NOW = re.compile(
    r"now(?:\s*(?P<sign>[+-])\s*(?P<count>\d{1,9})\s*(?P<unit>[a-z]*))?", re.ASCII | re.IGNORECASE
)
_UNITS = {"seconds": 1, "minutes": 60, "hours": 3600, "days": 86_400, "weeks": 604_800}
_CLOCKS = {"midnight": 0, "noon": 12, "fika": 15, "teatime": 16}
_DATE = r"""
    (?P<day_word> today | tomorrow )
  | (?P<year> \d{4} ) - (?P<month> \d\d ) - (?P<day> \d\d )
  | (?P<us_month> \d\d? ) / (?P<us_day> \d\d? ) (?: / (?P<us_year> \d\d ) )?
  | (?P<run_month> \d\d ) (?P<run_day> \d\d ) (?P<run_year> \d\d )
"""
_CLOCK = r"""
    (?P<clock_word> midnight | noon | fika | teatime )
  | (?P<hour> \d\d? ) : (?P<minute> \d\d ) (?: : (?P<second> \d\d ) )? \s* (?P<half> [ap]m )?
"""
_FLAGS = re.ASCII | re.IGNORECASE | re.VERBOSE
_TODAY = re.compile(_CLOCK, _FLAGS)
_MOMENTS = (
    re.compile(rf"(?:{_DATE}) (?: [T\s]\s* (?:{_CLOCK}) )?", _FLAGS),
    re.compile(rf"(?:{_CLOCK}) \s+ (?:{_DATE})", _FLAGS),
)
_EPOCH = re.compile(r"uts(\d{1,12})", re.ASCII | re.IGNORECASE)
_PBS = re.compile(
    r"(?:(?:(?:(\d\d)?(\d\d))?(\d\d))?(\d\d))?(\d\d)(\d\d)(?:\.(\d\d))?",
    re.ASCII,
)
_FORMS = "write it as now+2hours, 16:00, tomorrow or 2026-12-24T18:00"
_PBS_FORMS = "write [[[[CC]YY]MM]DD]hhmm[.SS], as for qsub"


def parse_begin(text: str, now: float) -> int:
    """Read a time in the forms of ``sbatch --begin`` (its manual page), in the machine's time zone.

    Parameters
    ----------
    text
        ``now+COUNT[seconds|minutes|hours|days|weeks]``, or a date (YYYY-MM-DD, MM/DD[/YY], MMDDYY,
        today, tomorrow), a time of day (HH:MM[:SS][AM|PM], midnight, noon, fika, teatime), or both;
        or ``uts`` and epoch seconds.
        A time of day that has passed is tomorrow's, a date without year that has passed next
        year's.
    now
        Epoch seconds.

    Returns
    -------
    int
        Epoch seconds.

    Raises
    ------
    InputError
        If it is none of these.

    Examples
    --------
    >>> from foretime_sidecar.job_options.begin_time import parse_begin
    >>> parse_begin("now+60", now=1_700_000_000)
    1700000060
    """
    stripped = text.strip()
    if found := _NOW.fullmatch(stripped):
        return int(now) + _delta(found)
    if found := _EPOCH.fullmatch(stripped):
        return int(found[1])
    today = _local(now)
    try:
        if found := _TODAY.fullmatch(stripped):
            moment = _at(today, found)
            if moment < today:
                moment = _at(today + timedelta(days=1), found)
        else:
            found = next(filter(None, (form.fullmatch(stripped) for form in _MOMENTS)), None)
            if found is None:
                raise InputError(f"is no time; {_FORMS}")
            moment = _on(today, found)
        return int(moment.timestamp())
    except ValueError as error:
        raise InputError(f"is no time ({error}); {_FORMS}") from None


def _local(now: float) -> datetime:
    """Give the time on the machine's clocks, whole seconds; no zone, whose offset could change."""
    return datetime.fromtimestamp(int(now), UTC).astimezone().replace(tzinfo=None)


def _delta(found: re.Match[str]) -> int:
    if found["count"] is None:
        return 0
    unit = found["unit"].lower()
    each = next(
        (seconds for name, seconds in _UNITS.items() if unit in ("", name, name[:-1])), None
    )
    if each is None:
        raise InputError(f"{found['unit']!r} is no unit of time; write one of {', '.join(_UNITS)}")
    return int(found["sign"] + found["count"]) * each


def _at(day: datetime, found: re.Match[str]) -> datetime:
    """Give a time of day on a day; midnight if it names none."""
    if found["clock_word"]:
        hour, minute, second = _CLOCKS[found["clock_word"].lower()], 0, 0
    else:
        hour, minute, second = (int(found[part] or 0) for part in ("hour", "minute", "second"))
        half = (found["half"] or "").lower()
        if half and not 1 <= hour <= 12:
            raise ValueError(f"{hour} {half.upper()}")
        hour = hour % 12 + (12 if half == "pm" else 0) if half else hour
    return day.replace(hour=hour, minute=minute, second=second)


def _on(today: datetime, found: re.Match[str]) -> datetime:
    """Give the moment that a date, perhaps with a time of day, names."""
    if word := found["day_word"]:
        return _at(today + timedelta(days=word.lower() == "tomorrow"), found)
    kind = next(kind for kind in ("", "us_", "run_") if found[f"{kind}month"] is not None)
    named = found[f"{kind}year"]
    year = today.year if named is None else int(named) + (2000 if len(named) == 2 else 0)

    def in_year(number: int) -> datetime:
        month, day = int(found[f"{kind}month"]), int(found[f"{kind}day"])
        return _at(today.replace(year=number, month=month, day=day), found)

    moment = in_year(year)
    return in_year(year + 1) if named is None and moment < today else moment


def parse_pbs_begin(text: str, now: float) -> int:
    """Read a time in the form of ``qsub -a`` (POSIX, the PBS manuals), in the machine's zone.

    Parameters
    ----------
    text
        ``[[[[CC]YY]MM]DD]hhmm[.SS]``; what is left out is the next such time to come.
    now
        Epoch seconds.

    Returns
    -------
    int
        Epoch seconds.

    Raises
    ------
    InputError
        If it is not of this form.
    """
    found = _PBS.fullmatch(text.strip())
    if found is None:
        raise InputError(f"is no time; {_PBS_FORMS}")
    century, year, month, day, hour, minute, second = (
        None if part is None else int(part) for part in found.groups()
    )
    today = _local(now)
    try:
        clock = time(hour or 0, minute or 0, second or 0)
        if year is None:
            moment = _next(today, month, day, clock)
        else:
            whole = (today.year // 100 if century is None else century) * 100 + year
            moment = datetime.combine(date(whole, month or 1, day or 1), clock)
    except ValueError as error:
        raise InputError(f"is no time ({error}); {_PBS_FORMS}") from None
    return int(moment.timestamp())


def _next(today: datetime, month: int | None, day: int | None, clock: time) -> datetime:
    """Give the next day of a month and a day, where they are named, with this time of day."""
    for ahead in range(366 * 8 + 1):  # 29 February comes at least every eight years
        moment = datetime.combine(today + timedelta(days=ahead), clock)
        if month in (None, moment.month) and day in (None, moment.day) and moment >= today:
            return moment
    raise ValueError("there is no such day")
