"""What ``--since`` says."""

from __future__ import annotations

import datetime
import math

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.wording.durations import parse_duration


def parse_since(text: str, now: float) -> int:
    """Read a time: a duration ago (as for sbatch), or a date or time of the local clock.

    Raises
    ------
    InputError
        If it is neither.
    """
    try:
        return int(datetime.datetime.fromisoformat(text).timestamp())
    except ValueError:
        pass
    try:
        return max(math.floor(now) - parse_duration(text, "--since"), 0)
    except InputError:
        raise InputError(
            f"--since: {text!r} is neither how long ago (1-00:00:00 is a day) nor a date such as "
            "2026-11-21 or 2026-11-21T13:00"
        ) from None
