"""The days that runs begin with: the first look of each, kept until no run needs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from foretime_estimators.jobs.errors import InputError
from foretime_sim.sites.site_file import format_site, parse_site
from foretime_sim.sites.slurm.site import SlurmSite
from pydantic import TypeAdapter

from foretime_sidecar.clients.client import Reservation
from foretime_sidecar.clients.cluster import Cluster, HeldNode
from foretime_sidecar.plain_beside.beginnings import Beginning, RealMoment
from foretime_sidecar.queue.queue_events import Key
from foretime_sidecar.store.plain_starts import DayRow


@dataclass(frozen=True, slots=True)
class _Begun:
    """A beginning, as it is kept."""

    running: tuple[tuple[Key, int, tuple[HeldNode, ...]], ...]
    over: tuple[Key, ...]

    @classmethod
    def of(cls, beginning: Beginning) -> _Begun:
        rows = ((key, *runs) for key, runs in beginning.running.items())
        return cls(tuple(rows), tuple(sorted(beginning.over)))

    def read(self) -> Beginning:
        return Beginning(
            {key: (start, nodes) for key, start, nodes in self.running}, frozenset(self.over)
        )


@dataclass(frozen=True, slots=True)
class _Machine:
    """What is kept of the nodes and of who has them, as JSON."""

    cluster: Cluster
    reservations: tuple[Reservation, ...]
    held: tuple[tuple[str, int, tuple[HeldNode, ...]], ...]
    without_us: _Begun | None = None
    with_us: _Begun | None = None


_MACHINES = TypeAdapter(_Machine)


@dataclass(slots=True)
class Day:
    """A day.

    Attributes
    ----------
    moment
        With what its run begins.
    with_us
        Whether Foretime changed anything on it.
    settled_at
        When it was worked out for good, epoch seconds; ``None``: it was not.
    beginnings
        How jobs stand at its beginning in the models without and with Foretime, once the day before
        is settled. Where there is none, runs begin with the real queue.
    """

    moment: RealMoment
    with_us: bool = False
    settled_at: int | None = None
    beginnings: dict[bool, Beginning] = field(default_factory=dict)

    @property
    def began_at(self) -> int:
        """Epoch seconds."""
        return self.moment.began_at

    def as_row(self) -> DayRow:
        """Give it as it is kept."""
        moment = self.moment
        held = tuple((*key, nodes) for key, nodes in moment.held.items())
        begun = {ours: _Begun.of(begins) for ours, begins in self.beginnings.items()}
        whole = _Machine(
            moment.cluster, moment.reservations, held, begun.get(False), begun.get(True)
        )
        machine = _MACHINES.dump_json(whole).decode()
        site = format_site(moment.site)
        return DayRow(moment.began_at, machine, site, int(self.with_us), self.settled_at)

    @classmethod
    def of_row(cls, row: DayRow) -> Day:
        """Read what `as_row` gave; InputError or ValueError if it can't be read."""
        machine = _MACHINES.validate_json(row.machine)
        site = parse_site(row.site, source="the daemon's store")
        if not isinstance(site, SlurmSite):
            raise InputError("the daemon's store: a day under another scheduler than Slurm")
        held = {(job_id, submitted): nodes for job_id, submitted, nodes in machine.held}
        moment = RealMoment(row.began_at, machine.cluster, machine.reservations, held, site)
        begun = {False: machine.without_us, True: machine.with_us}
        beginnings = {ours: each.read() for ours, each in begun.items() if each is not None}
        return cls(moment, bool(row.with_us), row.settled_at, beginnings)
