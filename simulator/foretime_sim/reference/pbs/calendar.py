"""What is known of the future in a cycle: when jobs end, and when top jobs begin and end.

``create_events``, ``add_timed_event`` and ``simulate_events`` in simulate.cpp of OpenPBS.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from foretime_sim.reference.pbs.job import PbsJob

Placement = Mapping[str, Mapping[str, int]]
"""What somebody has of each host, by name of host and resource."""


class EventKind(enum.Enum):
    """What happens."""

    RUN = "run"
    END = "end"
    DEDICATED_START = "dedicated start"
    DEDICATED_END = "dedicated end"


@dataclass(frozen=True, slots=True)
class Event:
    """A job or a reservation begins or ends, or dedicated time does.

    ``job`` is ``None`` of reservations and dedicated time; ``placement`` is empty of the latter.
    """

    time: int
    kind: EventKind
    job: PbsJob | None
    placement: Placement
    exclusive: bool = False


class Calendar:
    """Events in the order in which they happen; at one second ends are before beginnings."""

    def __init__(self, events: tuple[Event, ...] = ()) -> None:
        self.events: list[Event] = []
        for event in events:
            self.add(event)

    def copy(self) -> Calendar:
        """Give another with the same events."""
        other = Calendar()
        other.events = list(self.events)
        return other

    def add(self, event: Event) -> None:
        """Put an event in its place."""
        ends = event.kind is EventKind.END
        before = sum(
            other.time < event.time or (other.time == event.time and not ends)
            for other in self.events
        )
        self.events.insert(before, event)

    def run_before(self, end: int) -> bool:
        """Whether anything begins before ``end`` (``exists_run_event``)."""
        return any(event.kind is EventKind.RUN and event.time < end for event in self.events)

    def reservation_by(self, end: int) -> bool:
        """Whether a reservation begins until ``end`` (``exists_resv_event``)."""
        return any(
            event.kind is EventKind.RUN and event.job is None and event.time <= end
            for event in self.events
        )

    def until(self, end: int) -> Iterator[Event]:
        """Give the beginnings and ends before ``end``."""
        for event in self.events:
            if event.time >= end:
                return
            if event.kind in (EventKind.RUN, EventKind.END):
                yield event

    def next_window(self, fuzzy_s: int) -> list[Event]:
        """Take out the next events that are performed together (``SIM_NEXT_EVENT``).

        These are all until the end of the span of ``fuzzy_s`` seconds that the first one is in,
        counted from 1970, with that second itself.
        """
        if not self.events:
            return []
        span = max(fuzzy_s, 1)
        last = (self.events[0].time + span) // span * span
        taken = [event for event in self.events if event.time <= last]
        self.events = self.events[len(taken) :]
        return taken
