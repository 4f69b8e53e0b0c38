"""What accounting exports of schedulers have in common: their times, states, and missing values."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import MaskedInt64Array
from foretime_estimators.jobs.jobs import Ending
from foretime_estimators.time_units import HOUR_S

from foretime_sim.files.durations import MAX_SECONDS, checked_seconds, is_missing
from foretime_sim.workloads.site_clock import zone_of
from foretime_sim.workloads.workload import ENDINGS, MaskedEndings

ENDING_OF_STATE = {
    "COMPLETED": Ending.COMPLETED,
    "FAILED": Ending.FAILED,
    "OUT_OF_MEMORY": Ending.OUT_OF_MEMORY,
    "TIMEOUT": Ending.TIMED_OUT,
    "CANCELLED": Ending.CANCELLED,
    "DEADLINE": Ending.CANCELLED,
    "NODE_FAIL": Ending.NODE_FAILED,
    "BOOT_FAIL": Ending.NODE_FAILED,
    "LAUNCH_FAILED": Ending.NODE_FAILED,
    "RECONFIG_FAIL": Ending.NODE_FAILED,
    "PREEMPTED": Ending.PREEMPTED,
    "REQUEUED": Ending.REQUEUED,
    "REVOKED": Ending.NEVER_STARTED,
    "CD": Ending.COMPLETED,
    "F": Ending.FAILED,
    "OOM": Ending.OUT_OF_MEMORY,
    "TO": Ending.TIMED_OUT,
    "CA": Ending.CANCELLED,
    "DL": Ending.CANCELLED,
    "NF": Ending.NODE_FAILED,
    "BF": Ending.NODE_FAILED,
    "PR": Ending.PREEMPTED,
    "RQ": Ending.REQUEUED,
    "RV": Ending.NEVER_STARTED,
}
"""Slurm's words, long and compact, for jobs that have come to an end."""

STATE_OF_ENDING = {
    Ending.COMPLETED: "COMPLETED",
    Ending.FAILED: "FAILED",
    Ending.OUT_OF_MEMORY: "OUT_OF_MEMORY",
    Ending.TIMED_OUT: "TIMEOUT",
    Ending.CANCELLED: "CANCELLED",
    Ending.NODE_FAILED: "NODE_FAIL",
    Ending.PREEMPTED: "PREEMPTED",
    Ending.REQUEUED: "REQUEUED",
    Ending.NEVER_STARTED: "CANCELLED",
}
"""Slurm's word for each."""

UNFINISHED_STATES = frozenset(
    {"PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "RESIZING", "REQUEUE_HOLD",
     "REQUEUE_FED", "RESV_DEL_HOLD", "SIGNALING", "SPECIAL_EXIT", "STAGE_OUT", "STOPPED",
     "PD", "R", "S", "CG", "CF", "RS", "ST"}
)  # fmt: skip
"""Slurm's words for jobs that have not."""

STATUS_OF_ENDING = {
    Ending.COMPLETED: 1,
    Ending.FAILED: 0,
    Ending.OUT_OF_MEMORY: 0,
    Ending.TIMED_OUT: 0,
}
"""SWF's status; every other ending is 5, cancelled, which is as little evidence of a runtime."""
CANCELLED_STATUS = 5


def parse_number(word: str, seconds_per_unit: float = 1) -> int | None:
    """Give a number in whole units (seconds, if it is a time); ``None`` for a missing value.

    Raises
    ------
    ValueError
        If it is no number, negative, or too large.
    """
    word = word.strip()
    if is_missing(word):
        return None
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        raise ValueError("not a number") from None
    if not value >= 0:
        raise ValueError("negative or not a number")
    if value > MAX_SECONDS:
        raise ValueError(f"too large (at most {MAX_SECONDS:,})")
    return checked_seconds(round(value * seconds_per_unit))


_SIXTY = frozenset(f"{number:02d}" for number in range(60))
"""Minutes of an hour, and seconds of a minute, as timestamps have them."""


class Clock:
    """Reads timestamps: ISO 8601 with or without offset, or epoch seconds.

    Timestamps without offset are in the site's time zone; UTC if none is given, in which case
    durations across a change of summer time are off by an hour.
    """

    def __init__(self, time_zone: str | None = None) -> None:
        self.name = time_zone
        self._zone: datetime.tzinfo = datetime.UTC
        if time_zone is not None:
            self._zone = zone_of(time_zone)
        self._hour_starts: dict[str, int] = {}

    def parse(self, word: str) -> int | None:
        """Give epoch seconds, ``None`` for a missing value.

        Raises
        ------
        ValueError
            If it is no timestamp.
        """
        # Logs have many timestamps in the same hour: only its start is worked out with the zone.
        if len(word) == 19 and word[13] == ":" == word[16]:
            hour, minutes, seconds = word[:13], word[14:16], word[17:]
            start = self._hour_starts.get(hour)
            if start is not None and minutes in _SIXTY and seconds in _SIXTY:
                return start + 60 * int(minutes) + int(seconds)
        word = word.strip()
        if is_missing(word):
            return None
        if word.replace(".", "", 1).isdecimal() and len(word) != 8:
            value = float(word)
            if value > MAX_SECONDS:
                raise ValueError("epoch seconds are too large; are these milliseconds?")
            return int(value)
        try:
            moment = datetime.datetime.fromisoformat(word)
        except ValueError:
            raise ValueError("not a timestamp like 2024-01-31T12:30:00") from None
        naive = moment.tzinfo is None
        if naive:
            moment = moment.replace(tzinfo=self._zone)
        seconds_since_epoch = int(moment.timestamp())
        if seconds_since_epoch < 0:
            raise ValueError("before 1970")
        if seconds_since_epoch > MAX_SECONDS:
            raise ValueError("after the year 2286")
        if naive and len(word) == 19:
            first = int(moment.replace(minute=0, second=0).timestamp())
            last = int(moment.replace(minute=59, second=59).timestamp())
            if last == first + HOUR_S - 1 <= MAX_SECONDS:  # no change of time within this hour
                self._hour_starts[word[:13]] = first
        return seconds_since_epoch


def ending_of_state(state: str, started: bool) -> Ending | None:
    """Give how a job ended by Slurm's word for its state, ``None`` if it has not.

    "CANCELLED by 1000" is read by its first word.

    Raises
    ------
    ValueError
        If the word is unknown.
    """
    word = state.split()[0].rstrip("+").upper() if state.strip() else ""
    if word in UNFINISHED_STATES:
        return None
    ending = ENDING_OF_STATE.get(word)
    if ending is None:
        raise ValueError("not a job state like COMPLETED or TIMEOUT")
    return ending if started else Ending.NEVER_STARTED


def endings_and_status(
    endings: Sequence[Ending | None],
) -> tuple[MaskedEndings, MaskedInt64Array]:
    """Give the columns of endings and of SWF status; masked where a job has not ended."""
    code_of = {ending: code for code, ending in enumerate(ENDINGS)}
    mask = np.array([ending is None for ending in endings], dtype=np.bool_)
    codes = np.array(
        [0 if ending is None else code_of[ending] for ending in endings], dtype=np.int8
    )
    status = np.array(
        [
            0 if ending is None else STATUS_OF_ENDING.get(ending, CANCELLED_STATUS)
            for ending in endings
        ],
        dtype=np.int64,
    )
    return np.ma.MaskedArray(codes, mask=mask), np.ma.MaskedArray(status, mask=mask.copy())
