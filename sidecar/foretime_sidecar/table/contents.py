"""What stands in a table: settings, exclusions, advice and rows, and what may stand there."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from foretime_estimators.jobs.errors import InputError

from foretime_sidecar.table.name_kinds import KINDS, Names
from foretime_sidecar.table.row_kinds import KINDS as ROW_KINDS
from foretime_sidecar.table.row_kinds import NOBODY, BackOff, LearnedRow

MICRO = 1_000_000


Scope: TypeAlias = Literal["user", "project"]


class Mode(enum.StrEnum):
    """What the hook does with the table.

    Examples
    --------
    >>> from foretime_sidecar.table.contents import Mode
    >>> Mode("enforce")
    <Mode.ENFORCE: 'enforce'>
    """

    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"
    OFF = "off"


class Scheme(enum.StrEnum):
    """Whose rows count, and how."""

    USER = "user"
    PROJECT = "project"
    COMBINED = "combined"
    LEARNED = "learned"


class Mechanism(enum.StrEnum):
    """How t_sched reaches Slurm."""

    TIME_MIN = "time-min"
    TIME_MIN_AT_LOOK = "time-min-at-look"
    REWRITE_LIMIT = "rewrite-limit"
    REWRITE_LIMIT_AT_LOOK = "rewrite-limit-at-look"


class UserTimeMin(enum.StrEnum):
    """What becomes of a ``--time-min`` that the user gave."""

    RAISE = "raise"
    KEEP = "keep"
    CLEAR = "clear"


@dataclass(frozen=True, slots=True)
class TableRow:
    """One adjustment: of one user or project, in one class of requested times.

    Attributes
    ----------
    scope, name
        Who; the name as the scheduler knows it.
    requested_time_class
        How many of the bounds lie below the job's t_req; 0 without bounds.
    adjustment_micro
        A in whole millionths, 0 to 1,000,000.
    largest_processor_seconds
        Largest processors x requested_time that the row applies to; ``None``: any.

    Examples
    --------
    >>> from foretime_sidecar.table.contents import TableRow
    >>> row = TableRow("user", "ann", requested_time_class=0, adjustment_micro=250_000)
    >>> row.adjustment_micro / 1_000_000
    0.25
    """

    scope: Scope
    name: str
    requested_time_class: int
    adjustment_micro: int
    largest_processor_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Reservation:
    """A time that jobs must not run into; ``slurm_partitions`` is ``None`` for all of them."""

    start_time: int
    end_time: int
    slurm_partitions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Longest:
    """Jobs of some name that ask for more than this are left alone.

    Attributes
    ----------
    kind, name
        Whose: the word of a kind in `KINDS`, and a name; ``"any"`` and ``None`` for all jobs.
    requested_time
        Seconds that they may ask for.
    """

    kind: str
    name: str | None
    requested_time: int


@dataclass(frozen=True, slots=True)
class Advice:
    """What the Slurm hook needs under ``advise``.

    Attributes
    ----------
    told_until
        All who were told before this time (epoch seconds) are in ``told``; ``None``: nobody is told
        anything.
    told
        Users who were told in the last 24 hours, and when (epoch seconds).
    median_wait_s
        Median wait of late, by requested-time class.
    """

    told_until: int | None = None
    told: tuple[tuple[str, int], ...] = ()
    median_wait_s: tuple[tuple[int, int], ...] = ()


NO_ADVICE = Advice()


@dataclass(frozen=True, slots=True)
class TableSettings:
    """How the hook turns an adjustment into t_sched.

    Attributes
    ----------
    mode, scheme, mechanism, user_time_min
        See their classes.
    enforce_share_percent
        Under ``enforce``, the share of users whose jobs are changed; the others' are observed.
    minimum_adjustment
        A is never taken to be smaller.
    minimum_scheduled_time_s
        t_sched is never smaller, unless t_req is.
    rounding_s
        t_sched is rounded up to a multiple of this (the Slurm hook: and then to whole minutes).
    requested_time_bounds_s
        Ascending upper ends of the classes of requested times, each part of its class; one class
        more than bounds. Empty: one class for all.
    """

    mode: Mode = Mode.OBSERVE
    enforce_share_percent: int = 100
    scheme: Scheme = Scheme.COMBINED
    mechanism: Mechanism = Mechanism.TIME_MIN
    user_time_min: UserTimeMin = UserTimeMin.RAISE
    minimum_adjustment: float = 0.1
    minimum_scheduled_time_s: int = 600
    rounding_s: int = 60
    requested_time_bounds_s: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Everything in a table file.

    Attributes
    ----------
    generation
        Grows with every table written.
    written_at, valid_until
        Epoch seconds; after ``valid_until`` the hook leaves every job alone.
    unplanned_since
        Jobs submitted later have never been planned, epoch seconds; ``None`` if some may have been.
    settings, longest, advice, reservations, rows
        See their classes. A user or project without a row hasn't enough history.
    left_alone
        Whose jobs the hook never touches: excluded, or limited by what Slurm judges on t_sched.
    enforced_only
        Whom ``enforce`` is limited to, besides the share of users; a kind without names is no
        limit.
    back_off, learned_rows
        Under the scheme ``learned``, in the place of ``rows``.

    Examples
    --------
    >>> from foretime_sidecar.table.contents import Table, TableRow
    >>> rows = (TableRow("user", "ann", 0, adjustment_micro=250_000),)
    >>> table = Table(generation=1, written_at=1_700_000_000, valid_until=1_700_086_400, rows=rows)
    >>> table.row_count, str(table.settings.mode)
    (1, 'observe')
    """

    generation: int
    written_at: int
    valid_until: int
    settings: TableSettings = field(default_factory=TableSettings)
    left_alone: Names = frozenset()
    longest: tuple[Longest, ...] = ()
    enforced_only: Names = frozenset()
    advice: Advice = field(default_factory=Advice)
    unplanned_since: int | None = None
    reservations: tuple[Reservation, ...] = ()
    rows: tuple[TableRow, ...] = ()
    back_off: BackOff | None = None
    learned_rows: tuple[LearnedRow, ...] = ()

    @property
    def row_count(self) -> int:
        """How many rows there are, of either kind."""
        return len(self.rows) + len(self.learned_rows)


def validate(table: Table) -> None:
    """Refuse a table that no hook could read; InputError names what is wrong."""
    settings = table.settings
    whole: tuple[tuple[str, int, int], ...] = (
        ("generation", table.generation, 0),
        ("written_at", table.written_at, 0),
        ("valid_until", table.valid_until, 0),
        ("unplanned_since", table.unplanned_since or 0, 0),
        ("minimum_scheduled_time_s", settings.minimum_scheduled_time_s, 0),
        ("rounding_s", settings.rounding_s, 1),
    )
    for name, value, least in whole:
        if not least <= value < 1 << 40:
            raise InputError(f"table: {name} is {value}; it must be a whole number from {least}")
    if not 0 <= settings.enforce_share_percent <= 100:
        raise InputError(
            f"table: enforce_share_percent is {settings.enforce_share_percent};"
            " it must be from 0 to 100"
        )
    if not 0 <= settings.minimum_adjustment <= 1:
        raise InputError(
            f"table: minimum_adjustment is {settings.minimum_adjustment}; it must be from 0 to 1"
        )
    bounds = settings.requested_time_bounds_s
    if any(bound < 1 for bound in bounds) or list(bounds) != sorted(set(bounds)):
        raise InputError(f"table: requested_time_bounds_s is {bounds}; it must ascend from 1")
    of_longest = {longest.kind for longest in table.longest} - {"any"}
    for kind in sorted({kind for kind, _ in table.left_alone | table.enforced_only} | of_longest):
        if kind not in KINDS:
            raise InputError(f"table: no hook knows a name of kind {kind!r}")
    for kind, name in table.enforced_only:
        if not KINDS[kind].limits_enforce:
            raise InputError(f"table: enforce can't be limited to the {kind} {name!r}")
    for longest in table.longest:
        if (longest.kind == "any") != (longest.name is None):
            raise InputError(f'table: {longest}: "any" goes with no name, and all else with one')
        if not 0 <= longest.requested_time < 1 << 40:
            raise InputError(f"table: {longest}: the time must be a whole number from 0")
    for reservation in table.reservations:
        if not 0 <= reservation.start_time <= reservation.end_time < 1 << 40:
            raise InputError(f"table: {reservation} does not end after it starts")
        if reservation.slurm_partitions == ():
            raise InputError(f"table: {reservation} has no partition; None stands for all")
    _validate_advice(table)
    learned = settings.scheme is Scheme.LEARNED
    if learned != (table.back_off is not None) or (table.rows if learned else table.learned_rows):
        raise InputError(
            f"table: scheme {settings.scheme} with {table.back_off}, {len(table.rows)} rows and "
            f"{len(table.learned_rows)} learned ones: these go with a back-off, and it with learned"
        )
    seen: set[tuple[object, ...]] = set()
    for learned_row in table.learned_rows:
        _validate_row(learned_row)
        row_kind = ROW_KINDS[learned_row.kind]
        expected = (bool(row_kind.who) or learned_row.name == NOBODY, 1 + row_kind.sized)
        if (True, len(learned_row.values)) != expected or min(learned_row.values) < 0:
            raise InputError(f"table: {learned_row}: not as rows of its kind")
        if learned_row.key in seen:
            raise InputError(f"table: {learned_row}: there is another such row")
        seen.add(learned_row.key)
    for row in table.rows:
        _validate_row(row)
        if not 0 <= row.requested_time_class <= len(bounds):
            raise InputError(f"table: {row}: there are {len(bounds) + 1} classes, counted from 0")
        key = (row.scope, row.name, row.requested_time_class)
        if key in seen:
            raise InputError(f"table: {row}: there is another such row")
        seen.add(key)


def _validate_row(row: TableRow | LearnedRow) -> None:
    if not 0 <= row.adjustment_micro <= MICRO:
        raise InputError(f"table: {row}: the adjustment must be from 0 to {MICRO:,} millionths")
    if not 0 <= (row.largest_processor_seconds or 0) <= 1 << 53:
        raise InputError(f"table: {row}: the largest job must be from 0 to 2**53")


def _validate_advice(table: Table) -> None:
    advice = table.advice
    times = [at for _, at in advice.told] + [advice.told_until or 0]
    if not all(0 <= at < 1 << 40 for at in times):
        raise InputError(f"table: {advice}: a time must be in epoch seconds")
    if len({name for name, _ in advice.told}) < len(advice.told):
        raise InputError("table: a user is told twice; give the last time alone")
    classes = [time_class for time_class, _ in advice.median_wait_s]
    most = len(table.settings.requested_time_bounds_s)
    if len(set(classes)) < len(classes) or not all(0 <= one <= most for one in classes):
        raise InputError(
            f"table: median waits of the classes {classes}; there are {most + 1}, counted from 0"
        )
    if any(not 0 <= seconds < 1 << 40 for _, seconds in advice.median_wait_s):
        raise InputError("table: a median wait must be a whole number of seconds, from 0")
