"""Where there is room: chunks on hosts, first fit, around what is in the calendar.

``eval_complex_selspec``, ``eval_simple_selspec`` and ``check_resources_for_node`` in node_info.cpp
of OpenPBS. PBS fills exclusive requests from buckets of hosts that are alike (buckets.cpp); here
they go by the order of hosts as all others do, so that which of several free hosts they have may
differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from foretime_sim.reference.pbs.calendar import Calendar, EventKind, Placement
from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.sites.pbs.scheduler import SortKeys
from foretime_sim.sites.pbs.site import PbsHost

Amounts = dict[str, dict[str, int]]


class Hosts:
    """Hosts, and what is in use on them."""

    def __init__(self, hosts: Sequence[PbsHost], order: SortKeys) -> None:
        self.hosts = sorted(hosts, key=lambda host: _sort_values(host, order))
        self.used: Amounts = {host.name: {} for host in hosts}
        self.jobs_on: dict[str, int] = {host.name: 0 for host in hosts}
        self.exclusive: set[str] = set()

    def copy(self) -> Hosts:
        """Give another in the same state."""
        other = object.__new__(Hosts)
        other.hosts = self.hosts
        other.used = {name: dict(amounts) for name, amounts in self.used.items()}
        other.jobs_on = dict(self.jobs_on)
        other.exclusive = set(self.exclusive)
        return other

    def take(self, placement: Placement, exclusive: bool) -> None:
        """Give somebody what it has."""
        for name, amounts in placement.items():
            self.jobs_on[name] += 1
            _add(self.used[name], amounts, 1)
            if exclusive:
                self.exclusive.add(name)

    def give_back(self, placement: Placement, exclusive: bool) -> None:
        """Take it back."""
        for name, amounts in placement.items():
            self.jobs_on[name] -= 1
            _add(self.used[name], amounts, -1)
            if exclusive:
                self.exclusive.discard(name)

    def place(self, job: PbsJob, calendar: Calendar, now: int, end: int) -> Placement | None:
        """Find a place from now to ``end``, or ``None``.

        Chunk by chunk, each on the first host that has room for it at every moment.
        """
        owned = {host.queue for host in self.hosts if host.queue is not None}
        mine = job.queue if job.queue in owned else None
        hosts = [host for host in self.hosts if host.queue == mine]
        if job.place == "pack":
            for host in hosts:
                found = self._place_on([host], job, calendar, now, end)
                if found is not None:
                    return found
            return None
        return self._place_on(hosts, job, calendar, now, end)

    def _place_on(
        self, hosts: Sequence[PbsHost], job: PbsJob, calendar: Calendar, now: int, end: int
    ) -> Placement | None:
        placed: Amounts = {}
        scattered: set[str] = set()
        for chunk in job.chunks:
            for _ in range(chunk.count):
                for host in hosts:
                    if host.name not in scattered and self._fits(
                        host, chunk, job, placed.get(host.name, {}), calendar, now, end
                    ):
                        break
                else:
                    return None
                _add(placed.setdefault(host.name, {}), chunk.resources, 1)
                if job.place == "scatter":
                    scattered.add(host.name)
        return placed

    def _fits(
        self,
        host: PbsHost,
        chunk: Chunk,
        job: PbsJob,
        mine: Mapping[str, int],
        calendar: Calendar,
        now: int,
        end: int,
    ) -> bool:
        """Whether a host has room for one chunk more of a job that has ``mine`` of it."""
        name = host.name
        if name in self.exclusive or (job.exclusive and self.jobs_on[name]):
            return False
        if any(host.labels.get(label) != value for label, value in chunk.labels.items()):
            return False
        used = dict(self.used[name])
        _add(used, mine, 1)
        if not _has_room(host, used, chunk.resources):
            return False
        if not calendar.run_before(end):
            return True
        for event in calendar.until(end):
            if event.time < now or name not in event.placement:
                continue
            if event.exclusive or job.exclusive:
                return False
            running = event.kind is EventKind.RUN
            _add(used, event.placement[name], 1 if running else -1)
            if running and not _has_room(host, used, chunk.resources):
                return False
        return True


def _has_room(host: PbsHost, used: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    return all(
        used.get(name, 0) + amount <= host.resources.get(name, 0)
        for name, amount in wanted.items()
        if amount
    )


def _add(amounts: dict[str, int], more: Mapping[str, int], sign: int) -> None:
    for name, amount in more.items():
        amounts[name] = amounts.get(name, 0) + sign * amount


def _sort_values(host: PbsHost, order: SortKeys) -> tuple[float, ...]:
    """Give what hosts are sorted by; those that are equal stay in the server's order."""
    values = []
    for key, high in order:
        value = host.priority if key == "sort_priority" else host.resources.get(key, 0)
        values.append(-float(value) if high else float(value))
    return tuple(values)
