"""With what runs of a day begin: the real queue, or what the run of the day before has become."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.engine.stepwise import Engine
from foretime_sim.sites.slurm.site import SlurmSite

from foretime_sidecar.clients.client import Reservation
from foretime_sidecar.clients.cluster import Cluster, HeldNode
from foretime_sidecar.plain_beside.known_jobs import KnownJob
from foretime_sidecar.queue.live_machine import LiveMachine
from foretime_sidecar.queue.queue_events import Key


@dataclass(frozen=True, slots=True)
class RealMoment:
    """The first look of a day.

    Attributes
    ----------
    began_at
        Epoch seconds.
    cluster, reservations
        The nodes and what is set aside of them.
    held
        What each job that ran had of the nodes.
    site
        How the scheduler is set up.
    """

    began_at: int
    cluster: Cluster
    reservations: tuple[Reservation, ...]
    held: Mapping[Key, tuple[HeldNode, ...]]
    site: SlurmSite


@dataclass(frozen=True, slots=True)
class Beginning:
    """The jobs as a run begins with them; those that it does not name wait, or come later.

    Attributes
    ----------
    running
        Start, epoch seconds, and nodes of each job that runs.
    over
        Jobs that have ended.
    """

    running: Mapping[Key, tuple[int, tuple[HeldNode, ...]]]
    over: frozenset[Key]

    @classmethod
    def real(cls, known: Iterable[KnownJob], moment: RealMoment) -> Beginning:
        """Give the real queue of a moment."""
        running: dict[Key, tuple[int, tuple[HeldNode, ...]]] = {}
        over: set[Key] = set()
        for job in known:
            nodes = moment.held.get(job.key)
            if job.end_time is not None and job.end_time <= moment.began_at:
                over.add(job.key)
            elif nodes is not None:
                running[job.key] = job.start_time or moment.began_at, nodes
            elif job.start_time is not None and job.start_time < moment.began_at:
                over.add(job.key)  # suspended, or the scheduler told of it late
        return cls(running, frozenset(over))

    def without(self, gone: Iterable[Key]) -> Beginning:
        """Give it without jobs that nobody knows any more."""
        return Beginning(self.running, self.over.difference(gone))


def nodes_by_index(engine: Engine, live: LiveMachine) -> Mapping[int, tuple[HeldNode, ...]]:
    """Say what each running job of an engine has of the nodes, by its index."""
    snapshot, names = Snapshot.of(engine), list(live.number_of)
    held, index = snapshot.running.held, snapshot.engine_index
    if held is None or index is None:
        raise TypeError("a snapshot of an engine on nodes has indices and nodes")
    found: dict[int, list[HeldNode]] = defaultdict(list)
    # Slurm's plans are of nodes, not of numbers of them: which ones a job has matters.
    for row, first, nodes, *amounts in held.rows().tolist():
        found[int(index[row])] += [
            HeldNode(name, *amounts) for name in names[first : first + nodes]
        ]
    return {job: tuple(nodes) for job, nodes in found.items()}
