"""What Foretime has brought, or would bring: hours of waiting, by user, size class or week.

On days on which Foretime was at work, what it has brought is the wait in the model without it less
the real one. On other days what it would bring is the real wait less that in the model with it. The
model of what really was, held against what happened, says how far the model is from the scheduler:
that is the uncertainty that is told.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.store.plain_starts import JudgedJob

By: TypeAlias = Literal["user", "size", "week"]
BYS: tuple[By, ...] = ("user", "size", "week")
_Z95 = 1.96
_FEWEST_DAYS = 3
_LAGS = 2
_UNSEEN = 0.08
"""Of the waits with Foretime where it does nothing: by so much the model of it may be off, which
nothing there shows. In six weeks of two logs it was off by 3.4% in the mean (docs/brought.md)."""


@dataclass(frozen=True, slots=True)
class Brought:
    """What has come of some jobs; hours are of waiting, ``None`` where nothing can be told.

    Attributes
    ----------
    name
        Whose, or of which size class or week; "" for all.
    jobs, days
        Jobs that have started and are compared, and the days of which they are.
    without_hours, with_hours
        Hours that they waited without and with Foretime, one of the two in the model.
    saved_hours
        The difference.
    low_hours, high_hours
        Between which it lies, as far as the model's error on these very jobs tells; ``None`` with
        too few days.
    """

    name: str
    jobs: int
    days: int
    without_hours: float
    with_hours: float
    saved_hours: float
    low_hours: float | None
    high_hours: float | None


@dataclass(frozen=True, slots=True)
class ModelError:
    """How far the model is from the real scheduler.

    Attributes
    ----------
    jobs, days
        That it was held against.
    bias_percent
        By how much mean waits are longer in the model than they were; ``None`` without any wait.
    spread_percent
        Standard deviation of a day's total wait in the model around that, over the mean day's wait;
        ``None`` with too few days.
    """

    jobs: int
    days: int
    bias_percent: float | None
    spread_percent: float | None


@dataclass(frozen=True, slots=True)
class Account:
    """What Foretime has brought, and what it would have on days on which it did nothing.

    Attributes
    ----------
    since, by
        Of jobs that could start since then, epoch seconds, and what rows are by.
    brought, brought_rows
        Of days on which Foretime was at work: in all, and by rows.
    would_bring, would_bring_rows
        Of other days: what it would have brought.
    model
        How far the model is from the scheduler.
    left_out_jobs
        Jobs that were not compared.
    """

    since: int
    by: By
    brought: Brought
    brought_rows: tuple[Brought, ...]
    would_bring: Brought
    would_bring_rows: tuple[Brought, ...]
    model: ModelError
    left_out_jobs: int


def account_of(jobs: Sequence[JudgedJob], since: int, by: By) -> Account:
    """Add up what has come of jobs.

    Parameters
    ----------
    jobs
        Those that have started since, and were judged.
    since
        Epoch seconds.
    by
        What rows are by.

    Examples
    --------
    >>> from foretime_sidecar.plain_beside.account import account_of
    >>> from foretime_sidecar.store.plain_starts import JudgedJob
    >>> job = JudgedJob("ann", 8, 0, 3600, 7200, 3600, True)
    >>> account = account_of([job], 0, "user")
    >>> account.brought.saved_hours, account.brought_rows[0].name
    (1.0, 'ann')
    """
    compared = [job for job in jobs if _model_starts(job)[0] is not None]
    ours = [job for job in compared if job.with_us]
    others = [job for job in compared if not job.with_us]
    return Account(
        since,
        by,
        _brought("", ours),
        _rows(ours, by),
        _brought("", others),
        _rows(others, by),
        _model_error(jobs),
        len(jobs) - len(compared),
    )


def size_class(processors: int) -> str:
    """Give the size class of a job: up to 1, 4, 16, 64, 256 ... processors.

    Examples
    --------
    >>> from foretime_sidecar.plain_beside.account import size_class
    >>> [size_class(processors) for processors in (1, 4, 5)]
    ['1', '2-4', '5-16']
    """
    if processors <= 1:
        return "1"
    up_to = 4
    while processors > up_to:
        up_to *= 4
    return f"{up_to // 4 + 1}-{up_to}"


def week_of(time: int) -> str:
    """Give the week of a time in UTC, such as "2026-W48"."""
    year, week, _ = datetime.fromtimestamp(time, UTC).isocalendar()
    return f"{year}-W{week:02}"


def _model_starts(job: JudgedJob) -> tuple[int | None, int | None]:
    """Give the start in the model of what was not, and of what really was."""
    if job.with_us:
        return job.plain_start, job.start_with_us
    return job.start_with_us, job.plain_start


def _rows(jobs: Iterable[JudgedJob], by: By) -> tuple[Brought, ...]:
    name_of: dict[By, Callable[[JudgedJob], str]] = {
        "user": lambda job: job.user or "",
        "size": lambda job: size_class(job.processors),
        "week": lambda job: week_of(job.could_start),
    }
    groups: dict[str, list[JudgedJob]] = defaultdict(list)
    for job in jobs:
        groups[name_of[by](job)].append(job)
    rows = [_brought(name, group) for name, group in groups.items()]
    if by == "user":
        rows.sort(key=lambda row: (-row.saved_hours, row.name))
    elif by == "size":
        rows.sort(key=lambda row: int(row.name.partition("-")[0]))
    else:
        rows.sort(key=lambda row: row.name)
    return tuple(rows)


def _brought(name: str, jobs: Sequence[JudgedJob]) -> Brought:
    """Add jobs up; hours of each are rounded only as they are shown."""
    without_s = with_s = 0
    days = set()
    for job in jobs:
        other, _ = _model_starts(job)
        if other is None:
            continue
        days.add(job.could_start // DAY_S)
        plain, ours = (other, job.start_time) if job.with_us else (job.start_time, other)
        without_s += plain - job.could_start
        with_s += ours - job.could_start
    saved_s = without_s - with_s
    of_model_s = without_s if any(job.with_us for job in jobs) else with_s
    half_s = _half_width_s(jobs, of_model_s, len(days))
    if half_s is not None and not any(job.with_us for job in jobs):
        half_s += _UNSEEN * with_s
    low, high = (None, None) if half_s is None else (saved_s - half_s, saved_s + half_s)
    return Brought(
        name,
        len(jobs),
        len(days),
        without_s / 3600,
        with_s / 3600,
        saved_s / 3600,
        None if low is None else low / 3600,
        None if high is None else high / 3600,
    )


@dataclass(slots=True)
class _Errors:
    """Errors of the model and real waits, seconds, by day."""

    error_s: list[int]
    waited_s: list[int]
    jobs: int

    @classmethod
    def of(cls, jobs: Iterable[JudgedJob]) -> _Errors:
        error_s: dict[int, int] = defaultdict(int)
        waited_s: dict[int, int] = defaultdict(int)
        count = 0
        for job in jobs:
            _, start = _model_starts(job)
            if start is None:
                continue
            count += 1
            day = job.could_start // DAY_S
            error_s[day] += start - job.start_time
            waited_s[day] += job.start_time - job.could_start
        return cls(list(error_s.values()), [waited_s[day] for day in error_s], count)

    @property
    def bias(self) -> float | None:
        """Give the error over the wait; ``None`` if nobody waited."""
        waited_s = sum(self.waited_s)
        return sum(self.error_s) / waited_s if waited_s else None

    @property
    def spread_s(self) -> float | None:
        """Give the standard deviation of a day's error around the bias, seconds.

        Errors of days that follow each other are not independent: a job that starts too late in the
        model lets others start too early. The variance of the total is that of Newey and West
        (1987), equation 5, with three days.
        """
        days, bias = len(self.error_s), self.bias
        if days < _FEWEST_DAYS or bias is None:
            return None
        rest = [
            error - bias * waited for error, waited in zip(self.error_s, self.waited_s, strict=True)
        ]
        total = sum(each**2 for each in rest)
        for lag in range(1, _LAGS + 1):
            together = sum(one * other for one, other in zip(rest, rest[lag:], strict=False))
            total += 2 * (1 - lag / (_LAGS + 1)) * together
        return math.sqrt(max(total, 0) / (days - 1))


def _half_width_s(jobs: Sequence[JudgedJob], of_model_s: int, days: int) -> float | None:
    """Say by how much the model's total of these jobs' waits may be off, seconds."""
    errors = _Errors.of(jobs)
    bias, spread_s = errors.bias, errors.spread_s
    if bias is None or spread_s is None:
        return None
    return abs(bias) * of_model_s + _Z95 * spread_s * math.sqrt(days)


def _model_error(jobs: Sequence[JudgedJob]) -> ModelError:
    errors = _Errors.of(jobs)
    bias, spread_s, days = errors.bias, errors.spread_s, len(errors.error_s)
    waited_s = sum(errors.waited_s)
    return ModelError(
        errors.jobs,
        days,
        None if bias is None else 100 * bias,
        None if spread_s is None or not waited_s else 100 * spread_s * days / waited_s,
    )
