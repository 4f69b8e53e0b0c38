"""Which nodes reservations leave to a job at a time (`job_test_resv`, slurmctld/reservation.c)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.reference.slurm.jobs.job import SlurmJob


@dataclass(frozen=True, slots=True)
class Usable:
    """What reservations say.

    Attributes
    ----------
    closed
        Nodes that the job may not have.
    overlap
        Whether one took nodes of its slurm_partition away.
    """

    closed: frozenset[int]
    overlap: bool


class Reservations:
    """The reservations of a site.

    Parameters
    ----------
    reservations
        As the site has them.
    nodes_of_group
        By name of the group of nodes.

    Examples
    --------
    >>> from foretime_sim.machines.reservations import NodeReservation
    >>> from foretime_sim.reference.slurm.jobs.job import SlurmJob
    >>> from foretime_sim.reference.slurm.nodes.reservations import Reservations
    >>> from foretime_sim.workloads.node_request import Request
    >>> course = NodeReservation("course", start=600, duration=60, node_groups=("gpu",))
    >>> reservations = Reservations([course], {"gpu": frozenset({4})})
    >>> job = SlurmJob(0, Request(1, 1, 0, 0, 0, (), 1), ("all",), 0, 30, 120)
    >>> found = reservations.usable(job, 500, frozenset(range(5)))
    >>> sorted(found.closed), reservations.usable(job, 480, frozenset(range(5))).overlap
    ([4], False)
    """

    def __init__(
        self,
        reservations: Sequence[NodeReservation],
        nodes_of_group: Mapping[str, frozenset[int]],
    ) -> None:
        self.all = {reservation.name: reservation for reservation in reservations}
        self.nodes = {
            reservation.name: frozenset().union(
                *(nodes_of_group[name] for name in reservation.node_groups)
            )
            for reservation in reservations
        }

    def has_begun(self, job: SlurmJob, now: int) -> bool:
        """Whether a job's own reservation has begun and not ended (`job_test_resv_now`).

        A job whose reservation has ended is held for good.
        """
        if job.reservation is None:
            return True
        return self.all[job.reservation].start <= now <= self.all[job.reservation].end

    def usable(self, job: SlurmJob, when: int, partition_nodes: frozenset[int]) -> Usable | None:
        """Say which nodes are closed to a job that starts at a time; ``None``: not at that time.

        It may not be on the nodes of others' reservations for any of its time limit, and only on
        those of its own, whose end it may outlive. Flags of reservations are not modelled.
        """
        if job.reservation is not None:
            mine = self.all[job.reservation]
            if not mine.start <= when <= mine.end:
                return None
        closed: frozenset[int] = frozenset()
        overlap = False
        for name, reservation in self.all.items():
            if name == job.reservation:
                closed |= partition_nodes - self.nodes[name]
            elif reservation.start < when + job.time_limit_s and reservation.end > when:
                closed |= self.nodes[name]
                overlap |= bool(partition_nodes & self.nodes[name])
        return Usable(closed, overlap)

    def next_end(self, when: int) -> int | None:
        """Give the first end at or after a time (`find_resv_end`)."""
        ends = [one.end for one in self.all.values() if one.end >= when]
        return min(ends, default=None)

    @property
    def moments(self) -> list[int]:
        """Starts and ends."""
        return sorted({time for one in self.all.values() for time in (one.start, one.end)})
