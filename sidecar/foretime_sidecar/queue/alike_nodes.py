"""Nodes that are alike for every job, as groups of the simulator's machine."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from foretime_sim.machines.machine import NodeGroup, SlurmPartition

from foretime_sidecar.clients.cluster import Cluster, ClusterNode, ClusterPartition


def alike_nodes(
    nodes: Iterable[ClusterNode],
    partitions: Sequence[ClusterPartition],
    named: Sequence[Collection[str]] = (),
) -> list[list[ClusterNode]]:
    """Give the nodes that take jobs and are in some of the slurm_partitions, those alike together.

    They are alike if they have the same resources, features and weight, are in the same
    slurm_partitions, and in the same of the lists of names. Each group has them by name.
    """
    alike: dict[tuple[object, ...], list[ClusterNode]] = {}
    for node in nodes:
        over = tuple(part.name for part in partitions if node.name in part.nodes)
        if not node.takes_jobs or not over:
            continue
        inside = tuple(node.name in names for names in named)
        what = (node.cpus, node.memory_mib, node.gpus, node.features, node.weight)
        alike.setdefault((what, over, inside), []).append(node)
    return [sorted(group, key=lambda each: by_number(each.name)) for group in alike.values()]


def node_group(name: str, nodes: Sequence[ClusterNode]) -> NodeGroup:
    """Give the group of nodes that are alike."""
    first = nodes[0]
    features = tuple(f for f in dict.fromkeys(first.features) if not set(f) & set(" ,&|"))
    return NodeGroup(
        name, len(nodes), first.cpus, max(first.memory_mib, 0), first.gpus, features, first.weight
    )


def machine_partition(
    part: ClusterPartition, groups: tuple[str, ...], cluster: Cluster
) -> SlurmPartition:
    """Give a slurm_partition of the machine, over groups of nodes.

    Raises
    ------
    InputError
        If a machine can't have it.
    """
    return SlurmPartition(
        part.name,
        groups,
        part.priority_tier,
        part.max_time_s,
        part.max_nodes or None,
        default_memory_per_cpu_mib=part.default_memory_per_cpu_mib or 0,
        exclusive=part.exclusive or not cluster.counts_cpus,
        default=part.default,
    )


def by_number(name: str) -> list[tuple[int, str]]:
    """Sort key: n2 before n10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)
    ]
