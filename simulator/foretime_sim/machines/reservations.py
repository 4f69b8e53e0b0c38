"""What is set aside on a machine for a time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AdvanceReservation:
    """Processors that no job may use for a fixed time; every job is planned around them.

    Attributes
    ----------
    start
        Seconds, on the workload's clock.
    duration
        Seconds, at least 1.
    processors
        At least 1.

    Examples
    --------
    >>> from foretime_sim.machines.reservations import AdvanceReservation
    >>> maintenance = AdvanceReservation(start=86_400, duration=7200, processors=64)
    >>> maintenance.end
    93600
    """

    start: int
    duration: int
    processors: int

    @property
    def end(self) -> int:
        """First second after it."""
        return self.start + self.duration


@dataclass(frozen=True, slots=True)
class NodeReservation:
    """Groups of nodes that are set aside for a time, for jobs that name the reservation.

    Others may have these nodes before it if their time limit ends by its start, and from its end
    on. A job that names it has none but these nodes, from its start on. (A reservation of some of a
    group's nodes: make them a group of their own.)

    Attributes
    ----------
    name
        What jobs call it.
    start, duration
        Seconds.
    node_groups
        Names of the groups.

    Examples
    --------
    >>> from foretime_sim.machines.reservations import NodeReservation
    >>> course = NodeReservation("course", start=86_400, duration=7200, node_groups=("gpu",))
    >>> course.end
    93600
    """

    name: str
    start: int
    duration: int
    node_groups: tuple[str, ...]

    @property
    def end(self) -> int:
        """First second after it."""
        return self.start + self.duration
