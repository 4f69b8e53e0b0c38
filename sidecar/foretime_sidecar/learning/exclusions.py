"""Which jobs must be planned with what their users asked for: for the table, and for each look.

Where Slurm judges a job on time_min, a planned one would be accepted, started or killed where a
plain one is not (SCHEDULERS: V1, V3 to V6). The hook knows of a submission what Lua shows of it; a
look at the queue knows the job as Slurm made it, with its deadline and its QOS.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from foretime_estimators.time_units import DAY_S

from foretime_sidecar.clients.client import (
    Holder,
    QueuedJob,
    Reservation,
    SiteLimits,
    SlurmPartition,
)
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.table.table import LeftAlone, Longest
from foretime_sidecar.table.table import Reservation as TableReservation

OPT_OUT = "foretime:off"  # in a job's comment

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
    """Why a job must be planned with all of its limit, in words that follow "jobs"."""

    OPTED_OUT = "opted out"
    CHOSEN = "left alone by the settings"
    PARTS = "of several parts"
    DEADLINE = "with a deadline"
    IN_RESERVATION = "for a reservation"
    LIMITED = "with a limit that counts what is planned"
    TOO_LONG = "longer than MaxTime, MaxWall or the lead time allow"
    RESERVATION = "before a reservation"

    @property
    def is_danger(self) -> bool:
        """Whether it is so for a time_min of the user's own, too, once the soft limit is on."""
        return self not in (Why.OPTED_OUT, Why.CHOSEN)


@dataclass(frozen=True, slots=True)
class Exclusions:
    """Who and what is left alone.

    Attributes
    ----------
    chosen
        By the settings.
    limited
        By limits that Slurm would judge on time_min.
    longest
        How much may be asked for.
    reservations
        Those ahead, and the magnetic ones.
    partition_qos
        The QOS of each slurm_partition that has one.
    """

    chosen: LeftAlone = field(default_factory=LeftAlone)
    limited: LeftAlone = field(default_factory=LeftAlone)
    longest: tuple[Longest, ...] = ()
    reservations: tuple[TableReservation, ...] = ()
    partition_qos: Mapping[str, str] = field(default_factory=dict)

    @property
    def left_alone(self) -> LeftAlone:
        """All names, as the table has them."""
        chosen, limited = self.chosen, self.limited
        return LeftAlone(
            users=(*chosen.users, *limited.users),
            accounts=(*chosen.accounts, *limited.accounts),
            slurm_partitions=(*chosen.slurm_partitions, *limited.slurm_partitions),
            qos=(*chosen.qos, *limited.qos),
            queues=chosen.queues,
        )


def exclusions_of(
    settings: Settings, limits: SiteLimits, reservations: Iterable[Reservation], now: int
) -> Exclusions:
    """Put together what is left alone as of ``now``, epoch seconds."""
    hook = settings.hook

    def limited(kind: Holder) -> tuple[str, ...]:
        return tuple(sorted(name for holder, name in limits.accumulating if holder == kind))

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
        chosen=LeftAlone(
            users=tuple(hook.leave_users),
            accounts=tuple(hook.leave_accounts),
            slurm_partitions=tuple(hook.leave_slurm_partitions),
            qos=tuple(hook.leave_qos),
            queues=tuple(hook.leave_queues),
        ),
        limited=LeftAlone(limited("user"), limited("account"), (), limited("qos")),
        longest=tuple(longest),
        reservations=reservations_ahead(reservations, limits.slurm_partitions, now),
        partition_qos={p.name: p.qos for p in limits.slurm_partitions if p.qos is not None},
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
    """Say why a pending job must be planned with its whole limit, ``None`` if it need not be.

    Parameters
    ----------
    job
        It, as the queue shows it.
    exclusions
        What is left alone.
    now
        Epoch seconds.
    start_within_s
        It may start until so long after ``now`` without being looked at again.
    """
    request = job.request
    partitions = frozenset(filter(None, (request.queue or "").split(",")))
    qos = {name.strip() for name in (job.qos or "").split(",")}
    qos |= {exclusions.partition_qos.get(name, "") for name in partitions}
    names = {
        "user": {request.user or ""},
        "account": {(request.project or "").lower()},
        "slurm_partition": partitions,
        "qos": {name.lower() for name in qos},
        "any": {None},
    }

    def leaves(left: LeftAlone) -> bool:
        return not (
            names["user"].isdisjoint(left.users)
            and names["account"].isdisjoint(map(str.lower, left.accounts))
            and names["slurm_partition"].isdisjoint(left.slurm_partitions)
            and names["qos"].isdisjoint(map(str.lower, left.qos))
        )

    if OPT_OUT in job.comment:
        return Why.OPTED_OUT
    if job.heterogeneous:
        return Why.PARTS
    if job.deadline:
        return Why.DEADLINE
    if job.reservation:
        return Why.IN_RESERVATION
    for longest in exclusions.longest:
        name = longest.name
        if name is not None and longest.kind in ("account", "qos"):
            name = name.lower()
        if request.requested_time > longest.requested_time and name in names.get(longest.kind, ()):
            return Why.TOO_LONG
    for reservation in exclusions.reservations:
        where = reservation.slurm_partitions
        latest_end = now + start_within_s + request.requested_time
        if (
            now < reservation.end_time
            and latest_end > reservation.start_time
            and (where is None or not partitions.isdisjoint(where))
        ):
            return Why.RESERVATION
    if leaves(exclusions.limited):
        return Why.LIMITED
    return Why.CHOSEN if leaves(exclusions.chosen) else None
