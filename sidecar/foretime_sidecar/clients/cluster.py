"""A cluster's nodes and slurm_partitions, and what jobs ask and have of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from foretime_sim.workloads.node_request import ChunkPlace, HostChunk


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """One node.

    Attributes
    ----------
    name
        Its name.
    cpus, memory_mib, gpus
        What jobs may have of it; a memory of 0 if it is not known.
    features
        What a job's constraint may name, and types of GPUs as ``gpu:TYPE``.
    weight
        Nodes with a small weight are given out first.
    takes_jobs
        Whether it starts jobs now: it is not drained, down, failing or powered off for good.
    """

    name: str
    cpus: int
    memory_mib: int = 0
    gpus: int = 0
    features: tuple[str, ...] = ()
    weight: int = 1
    takes_jobs: bool = True


@dataclass(frozen=True, slots=True)
class ClusterPartition:
    """A slurm_partition over some of the nodes; ``None`` for no limit.

    Attributes
    ----------
    name, nodes
        Its name, and those of its nodes.
    priority_tier
        Jobs of a higher tier stand before all of a lower one.
    max_time_s, max_nodes
        Of a job.
    default_memory_per_cpu_mib, default_memory_per_node_mib
        What a job asks for that says nothing of memory.
    exclusive, default
        Whether jobs get whole nodes; whether jobs go here that name none.
    is_up
        Whether it starts jobs now.
    hidden
        Whether the site shows it to those alone who may use it.
    """

    name: str
    nodes: frozenset[str]
    priority_tier: int = 1
    max_time_s: int | None = None
    max_nodes: int | None = None
    default_memory_per_cpu_mib: int | None = None
    default_memory_per_node_mib: int | None = None
    exclusive: bool = False
    default: bool = False
    is_up: bool = True
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Cluster:
    """What there is to place jobs on.

    Attributes
    ----------
    nodes, partitions
        All of them.
    counts_memory
        Whether memory is given out (``SelectTypeParameters=CR_..._Memory``).
    counts_cpus
        Whether a node can have several jobs; if not, every job gets whole nodes (select/linear).
    """

    nodes: tuple[ClusterNode, ...]
    partitions: tuple[ClusterPartition, ...]
    counts_memory: bool = True
    counts_cpus: bool = True

    def all_up(self) -> Cluster:
        """Give it as if all of it took jobs."""
        return replace(
            self,
            nodes=tuple(replace(node, takes_jobs=True) for node in self.nodes),
            partitions=tuple(replace(part, is_up=True) for part in self.partitions),
        )


@dataclass(frozen=True, slots=True)
class AskedNodes:
    """What a job asks of nodes, in sbatch's terms; ``None`` where it says nothing.

    Attributes
    ----------
    nodes, tasks, cpus_per_task
        Exact number of nodes; tasks; CPUs of each.
    memory_per_node_mib, memory_per_cpu_mib
        One of the two at most.
    gpus_per_node
        Of any type.
    constraint
        Features and types of GPUs that every node must have.
    required, excluded
        Names of nodes.
    exclusive
        Whole nodes.
    assumed
        What it leaves open and is taken to want, in sbatch's words.
    not_modelled
        What else it asks for that a simulated machine does not know, in sbatch's words: where that
        has room for it, the scheduler may have none.
    """

    nodes: int | None = None
    tasks: int | None = None
    cpus_per_task: int | None = None
    memory_per_node_mib: int | None = None
    memory_per_cpu_mib: int | None = None
    gpus_per_node: int | None = None
    constraint: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    exclusive: bool = False
    assumed: tuple[str, ...] = ()
    not_modelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedChunks:
    """What a job of PBS asks of hosts, and by what its place in the queue may be worked out.

    Attributes
    ----------
    chunks, place, exclusive
        Its select and place.
    priority
        ``qsub -p``.
    project
        As PBS counts it, such as "_pbs_project_default"; "" if it is not told.
    not_modelled
        What else it asks for, in qsub's words.
    """

    chunks: tuple[HostChunk, ...]
    place: ChunkPlace = "free"
    exclusive: bool = False
    priority: int = 0
    project: str = ""
    not_modelled: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeldNode:
    """What a running job has of one node."""

    name: str
    cpus: int
    memory_mib: int = 0
    gpus: int = 0
