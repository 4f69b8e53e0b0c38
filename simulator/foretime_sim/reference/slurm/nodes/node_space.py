"""Backfill's table of which nodes are free when (`node_space_map_t`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Slot:
    """A time and the nodes that no plan has taken in it.

    Attributes
    ----------
    begin, end
        Seconds; ends are not part of it.
    nodes
        Free of plans, whole nodes; what running jobs have is another matter.
    licenses
        Left of each kind, if backfill keeps them (bf_licenses).
    """

    begin: int
    end: int
    nodes: frozenset[int]
    licenses: dict[str, int] = field(default_factory=dict)


def round_up(time: int, resolution: int) -> int:
    """Give the next multiple of a resolution."""
    return -(-time // resolution) * resolution


class NodeSpace:
    """The table of one backfill cycle.

    Parameters
    ----------
    now, window, resolution
        Seconds: bf_window, bf_resolution. Slots begin and end at multiples of the resolution of
        the real clock (epoch seconds); ``epoch`` is what to add to a time to have it.
    most_records
        bf_node_space_size, which is bf_max_job_test where nobody says otherwise. Records that were
        merged away still count.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.nodes.node_space import NodeSpace
    >>> space = NodeSpace(0, 600, 60, frozenset(range(4)), most_records=500)
    >>> space.reserve(60, 180, frozenset({0, 1}))
    >>> [(slot.begin, slot.end, sorted(slot.nodes)) for slot in space.slots]
    [(0, 60, [0, 1, 2, 3]), (60, 180, [2, 3]), (180, 600, [0, 1, 2, 3])]
    """

    def __init__(
        self,
        now: int,
        window: int,
        resolution: int,
        nodes: frozenset[int],
        most_records: int,
        licenses: Mapping[str, int] | None = None,
        epoch: int = 0,
    ) -> None:
        self.resolution = resolution
        self.epoch = epoch
        begin = self.round_down(now)
        self.window_end = self.round_down(now + window)
        self.slots = [Slot(begin, self.window_end, nodes, dict(licenses or {}))]
        self.records = 1
        self.most_records = most_records

    def round_down(self, time: int) -> int:
        """Give the last multiple of the resolution by the real clock."""
        return time - (time + self.epoch) % self.resolution

    def round_up(self, time: int) -> int:
        """Give the next multiple of the resolution by the real clock."""
        return round_up(time + self.epoch, self.resolution) - self.epoch

    @property
    def is_full(self) -> bool:
        """Whether no further plan may be added."""
        return self.records >= self.most_records

    def reserve(
        self,
        start: int,
        end: int,
        nodes: frozenset[int],
        licenses: Mapping[str, int] | None = None,
    ) -> None:
        """Take nodes out, as whole nodes, for a time (`_add_reservation`, backfill.c).

        At least one resolution long. A plan that begins after the window is not noted. At most one
        pair of neighbours that have become alike is merged.
        """
        start = max(start, self.slots[0].begin)
        end = max(end, start + self.resolution)
        before = 0
        place = None
        for number, slot in enumerate(self.slots):
            if slot.end > start:
                self.slots.insert(
                    number + 1, Slot(start, slot.end, slot.nodes, dict(slot.licenses))
                )
                slot.end = start
                self.records += 1
                place = number
                break
            if slot.end == start:
                place = number
                break
            before = number
        if place is None:
            self._merge(before, None)
            return
        after = None
        place += 1
        while place < len(self.slots):
            slot = self.slots[place]
            if end < slot.end:
                self.slots.insert(place + 1, Slot(end, slot.end, slot.nodes, dict(slot.licenses)))
                slot.end = end
                self.records += 1
            slot.nodes -= nodes
            for name, count in (licenses or {}).items():
                slot.licenses[name] = slot.licenses.get(name, 0) - count
            if end == slot.end:
                after = self.slots[place + 1] if place + 1 < len(self.slots) else None
                break
            place += 1
        self._merge(before, after)

    def _merge(self, number: int, after: Slot | None) -> None:
        while number + 1 < len(self.slots) and self.slots[number] is not after:
            slot, following = self.slots[number], self.slots[number + 1]
            if slot.licenses == following.licenses and slot.nodes == following.nodes:
                slot.end = following.end
                del self.slots[number + 1]
                return
            number += 1

    def overlaps(
        self, start: int, end: int, nodes: frozenset[int], licenses: Mapping[str, int]
    ) -> bool:
        """Whether some of the nodes are taken within a time (`_test_resv_overlap`)."""
        return any(
            not nodes <= slot.nodes or not has_licenses(slot, licenses)
            for slot in self.slots
            if slot.end > start and slot.begin < end
        )


def has_licenses(slot: Slot, licenses: Mapping[str, int]) -> bool:
    """Whether a slot has the licenses of a job; those that it does not keep do not matter."""
    return all(slot.licenses.get(name, count) >= count for name, count in licenses.items())
