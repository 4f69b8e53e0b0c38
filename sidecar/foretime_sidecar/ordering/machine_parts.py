"""The parts of a machine that jobs wait for: the nodes of its slurm_partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.clients.cluster import Cluster

SMALL = 0.25
"""So much of a slurm_partition is small: its jobs mostly run elsewhere."""


@dataclass(frozen=True, slots=True)
class MachinePart:
    """The nodes of a slurm_partition.

    Attributes
    ----------
    processors
        Of those that take jobs.
    share
        These over the processors of all slurm_partitions that have any of the nodes, `SMALL` to 1:
        the less it is, the more other jobs compete for them.
    inside
        The slurm_partitions that have none but these nodes, by name.
    beside
        Those that have so many of them that it is no small share of their own.
    """

    processors: int
    share: float
    inside: frozenset[str]
    beside: frozenset[str]


class MachineParts:
    """The parts of a cluster, and which jobs wait for which.

    Parameters
    ----------
    cluster
        Nodes and slurm_partitions; ``None``: not known, so that there are no parts.
    """

    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._inside: dict[str | None, tuple[MachinePart, ...]] = {}
        self._beside: dict[str | None, tuple[MachinePart, ...]] = {}

    @cached_property
    def parts(self) -> tuple[MachinePart, ...]:
        """All of them; worked out once somebody asks, as mostly nobody does."""
        return () if self._cluster is None else tuple(_parts_of(self._cluster))

    def only_for(self, job: QueuedJob) -> tuple[MachinePart, ...]:
        """Give the parts on which a job runs if it runs, and nowhere else."""
        queue = job.request.queue
        if queue not in self._inside:
            names = self._of(queue)
            self._inside[queue] = tuple(p for p in self.parts if names and names <= p.inside)
        return self._inside[queue]

    def also_for(self, job: QueuedJob) -> tuple[MachinePart, ...]:
        """Give the parts on which a job may well run."""
        queue = job.request.queue
        if queue not in self._beside:
            names = self._of(queue)
            self._beside[queue] = tuple(p for p in self.parts if names & p.beside)
        return self._beside[queue]

    def _of(self, queue: str | None) -> frozenset[str]:
        return self._names & frozenset((queue or "").split(",")) or self._default

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset[str]().union(*(part.inside for part in self.parts))

    @cached_property
    def _default(self) -> frozenset[str]:
        partitions = () if self._cluster is None else self._cluster.partitions
        return self._names & {part.name for part in partitions if part.default}


def _parts_of(cluster: Cluster) -> Iterable[MachinePart]:
    """Give each set of nodes once."""
    cpus = {node.name: node.cpus for node in cluster.nodes if node.takes_jobs and node.cpus}
    there = frozenset(cpus)
    nodes = {part.name: part.nodes & there for part in cluster.partitions if part.is_up}

    def processors(names: Iterable[str]) -> int:
        return sum(cpus[name] for name in names)

    size = {name: processors(own) for name, own in nodes.items()}
    for part in {own: name for name, own in nodes.items() if own}.values():
        own = nodes[part]
        sharing = {name: other for name, other in nodes.items() if not own.isdisjoint(other)}
        around = processors(frozenset[str]().union(*sharing.values()))
        yield MachinePart(
            size[part],
            max(size[part] / around, SMALL),
            frozenset(name for name, other in sharing.items() if other <= own),
            frozenset(
                name
                for name, other in sharing.items()
                if processors(own & other) >= SMALL * size[name]
            ),
        )
