"""Which jobs must be planned with what their users asked for: for the table, and for each look.

Where Slurm judges a job on time_min, a planned one would be accepted, started or killed where a
plain one is not (docs/left_alone.md: V1, V3 to V6). The hook knows of a submission what Lua shows
of it; a look at the queue knows the job as Slurm made it, with its deadline and its QOS. Both
hooks and `why_plain` are held to tests/plugin/exclusion_cases.toml.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import (
    UNLIMITED_S,
    QueuedJob,
    QueueState,
    Reservation,
    SiteLimits,
    SlurmPartition,
)
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.name_kinds import Names, Scheduler, folded, names_of
from foretime_sidecar.table.table import Longest
from foretime_sidecar.table.table import Reservation as TableReservation

# The hooks take a longer one for none: it would not be exact in Lua.
LONGEST_REQUEST_S = 4_000_000_000

# How soon a reservation that comes again can; only its next time is shown.
_PERIODS_S = {
    "HOURLY": 3600,
    "DAILY": DAY_S,
    "WEEKDAY": DAY_S,
    "WEEKEND": DAY_S,
    "WEEKLY": 7 * DAY_S,
}
# The nodes of such a one may be others by the time that it begins.
_OTHER_NODES = {"ANY_NODES", "REPLACE", "REPLACE_DOWN"}


class Why(enum.Enum):
    """Why a job must be planned with all of its limit, in the audit's word.

    Attributes
    ----------
    phrase
        The same in words that follow "jobs".
    """

    NO_LIMIT = "no-limit", "without a time limit"
    OPTED_OUT = "opt-out", "opted out"
    CHOSEN = "settings", "left alone by the settings"
    SHRINKS = "shrink-to-fit", "that shrink to fit"
    PARTS = "heterogeneous", "of several parts"
    DEADLINE = "deadline", "with a deadline"
    IN_RESERVATION = "reservation-job", "for a reservation"
    LIMITED = "limited", "with a limit that counts what is planned"
    TOO_LONG = "too-long", "longer than MaxTime, MaxWall or the lead time allow"
    RESERVATION = "reservation", "before a reservation"

    phrase: str

    def __new__(cls, word: str, phrase: str) -> Why:
        """Make the word the value."""
        why = object.__new__(cls)
        why._value_, why.phrase = word, phrase
        return why

    @property
    def is_danger(self) -> bool:
        """Whether it is so for a time_min of the user's own, too, once the soft limit is on."""
        return self not in (Why.NO_LIMIT, Why.OPTED_OUT, Why.CHOSEN)


@dataclass(frozen=True)
class Exclusions:
    """Who and what is left alone.

    Attributes
    ----------
    chosen
        Names left alone by the settings.
    limited
        Names with limits that Slurm would judge on time_min.
    longest
        How much may be asked for.
    reservations
        Those ahead, and the magnetic ones.
    partition_qos
        The QOS of each slurm_partition that has one.
    scheduler
        Whose jobs they are about.
    """

    chosen: Names = frozenset()
    limited: Names = frozenset()
    longest: tuple[Longest, ...] = ()
    reservations: tuple[TableReservation, ...] = ()
    partition_qos: Mapping[str, str] = field(default_factory=dict)
    scheduler: Scheduler = "slurm"

    @property
    def left_alone(self) -> Names:
        """All names, as the table has them."""
        return self.chosen | self.limited

    @cached_property
    def _folded(self) -> tuple[Names, Names]:
        return folded(self.chosen), folded(self.limited)

    def names_of(self, job: QueuedJob) -> Names:
        """Give all names of a job, the QOS of its slurm_partitions among them, folded."""
        names = names_of(job, self.scheduler)
        qos = {("qos", self.partition_qos.get(name, "")) for name in queues_of(job)}
        return names | folded(qos) if self.partition_qos else names

    def is_chosen(self, names: Names) -> bool:
        """Say whether the settings name one of a job's names."""
        return not names.isdisjoint(self._folded[0])

    def chooses(self, job: QueuedJob) -> bool:
        """Say whether the settings name a job by one of its names."""
        return bool(self.chosen) and self.is_chosen(self.names_of(job))

    def is_limited(self, names: Names) -> bool:
        """Say whether one of a job's names has a limit."""
        return not names.isdisjoint(self._folded[1])


def queues_of(job: QueuedJob) -> frozenset[str]:
    """Name the slurm_partitions or the PBS queue that a job is in."""
    return frozenset(filter(None, (job.request.queue or "").split(",")))


def exclusions_of(
    settings: Settings, limits: SiteLimits, reservations: Iterable[Reservation], now: int
) -> Exclusions:
    """Put together what is left alone as of ``now``, epoch seconds."""
    hook = settings.hook

    longest = [
        Longest("slurm_partition", partition.name, partition.max_time)
        for partition in limits.slurm_partitions
        if partition.max_time is not None
    ]
    if hook.mechanism == "rewrite-limit":
        # The native one leaves the limit as it is, so MaxWall is judged on what was asked for.
        longest += [
            Longest(kind, name, seconds)
            for (kind, name), seconds in sorted(limits.longest_walltime.items())
        ]
    if hook.reservation_lead_time_s:
        longest.append(Longest("any", None, hook.reservation_lead_time_s))
    return Exclusions(
        chosen=hook.left_alone,
        limited=frozenset(limits.accumulating),
        longest=tuple(longest),
        reservations=reservations_ahead(reservations, limits.slurm_partitions, now),
        partition_qos={p.name: p.qos for p in limits.slurm_partitions if p.qos is not None},
        scheduler=hook.scheduler,
    )


def reservations_ahead(
    reservations: Iterable[Reservation], partitions: Sequence[SlurmPartition], now: int
) -> tuple[TableReservation, ...]:
    """Give the times that a job started now must not run into, for the table.

    One that has begun is left out: Slurm gives its nodes to no other job, however short it is said
    to be, and to list it would keep the hook from touching any job while it lasts. Not so a
    magnetic one, which draws in any job that seems to fit into it.
    """
    found: set[TableReservation] = set()
    for reservation in reservations:
        where = _partitions_of(reservation, partitions)
        if where == ():
            continue
        spans = [(reservation.start_time, reservation.end_time)]
        period_s = min((_PERIODS_S[f] for f in reservation.flags & _PERIODS_S.keys()), default=0)
        if period_s:
            spans.append((reservation.start_time + period_s, reservation.end_time + period_s))
        found.update(
            TableReservation(start, end, where)
            for start, end in spans
            if start > now or (end > now and "MAGNETIC" in reservation.flags)
        )
    return tuple(sorted(found, key=lambda r: (r.start_time, r.end_time, r.slurm_partitions or ())))


def _partitions_of(
    reservation: Reservation, partitions: Sequence[SlurmPartition]
) -> tuple[str, ...] | None:
    """Name the slurm_partitions that share nodes with a reservation; ``None`` for any."""
    nodes = reservation.nodes
    if nodes is None or not partitions or reservation.flags & _OTHER_NODES:
        return None
    touched = tuple(
        sorted(p.name for p in partitions if p.nodes is None or not p.nodes.isdisjoint(nodes))
    )
    return None if len(touched) == len(partitions) else touched


def why_plain(
    job: QueuedJob, exclusions: Exclusions, now: int, start_within_s: int = 0
) -> Why | None:
    """Say why a job must be planned with its whole limit, ``None`` if it need not be.

    Parameters
    ----------
    job
        It, as the queue shows it.
    exclusions
        What is left alone.
    now
        Epoch seconds.
    start_within_s
        It may start until so long after ``now`` without being looked at again, if it waits.
    """
    requested_time = job.request.requested_time
    if requested_time == UNLIMITED_S or requested_time > LONGEST_REQUEST_S:
        return Why.NO_LIMIT
    if job.opted_out:
        return Why.OPTED_OUT
    if job.shrinks_to_fit:
        return Why.SHRINKS
    if job.heterogeneous:
        return Why.PARTS
    if job.deadline:
        return Why.DEADLINE
    if job.reservation:
        return Why.IN_RESERVATION
    names = exclusions.names_of(job)
    if any(
        requested_time > longest.requested_time
        and (longest.name is None or not names.isdisjoint(folded([(longest.kind, longest.name)])))
        for longest in exclusions.longest
    ):
        return Why.TOO_LONG
    if job.state is QueueState.PENDING:
        earliest_start = max(now, job.eligible_time or 0)
        latest_end = max(now + start_within_s, earliest_start) + requested_time
    else:
        earliest_start = now
        latest_end = (job.start_time or now) + job.suspended_time + requested_time
    for reservation in exclusions.reservations:
        where = reservation.slurm_partitions
        if (
            earliest_start < reservation.end_time
            and latest_end > reservation.start_time
            and (where is None or not queues_of(job).isdisjoint(where))
        ):
            return Why.RESERVATION
    if exclusions.is_limited(names):
        return Why.LIMITED
    return Why.CHOSEN if exclusions.is_chosen(names) else None
