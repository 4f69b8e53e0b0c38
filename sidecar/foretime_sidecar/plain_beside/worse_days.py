"""Whether waits with Foretime have been clearly longer than without, tested over days."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.store.plain_starts import JudgedJob
from foretime_sidecar.wording.durations import format_duration

_FEWEST_DAYS = 7
_FEWEST_JOBS = 10
"""Of a day, or it does not count."""
_CLEARLY = 3.0
"""Standard errors by which the mean of the days must be above none."""
_MUCH = 1.1
"""Mean waits over those without Foretime, at least."""


def why_worse(jobs: Iterable[JudgedJob]) -> str:
    """Say why waits with Foretime are clearly longer; "" if they are not.

    Each day has one figure, the mean wait with Foretime less that in the model without. Where the
    model with Foretime is known, too, its error on the same day is taken off first.

    Examples
    --------
    >>> from foretime_sidecar.plain_beside.worse_days import why_worse
    >>> why_worse([])
    ''
    """
    with_s: dict[int, list[int]] = defaultdict(list)
    without_s: dict[int, list[int]] = defaultdict(list)
    for job in jobs:
        if not job.with_us or job.plain_start is None:
            continue
        day = job.could_start // DAY_S
        with_s[day].append(job.start_time - job.could_start)
        error_s = 0 if job.start_with_us is None else job.start_with_us - job.start_time
        without_s[day].append(job.plain_start - error_s - job.could_start)
    counted = [day for day, waits in with_s.items() if len(waits) >= _FEWEST_JOBS]
    if len(counted) < _FEWEST_DAYS:
        return ""
    means = [
        (sum(with_s[day]) / len(with_s[day]), sum(without_s[day]) / len(without_s[day]))
        for day in counted
    ]
    differences = [ours - plain for ours, plain in means]
    days = len(differences)
    mean = sum(differences) / days
    spread = math.sqrt(sum((each - mean) ** 2 for each in differences) / (days - 1))
    ours, plain = (sum(column) / days for column in zip(*means, strict=True))
    if mean <= _CLEARLY * spread / math.sqrt(days) or ours < _MUCH * plain:
        return ""
    return (
        f"on {days} days jobs waited {format_duration(round(ours))} in the mean, and would have"
        f" waited {format_duration(round(max(plain, 0)))} without Foretime (foretime brought)"
    )
