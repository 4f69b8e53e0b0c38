"""Nodes that hang on switches: topology/tree as slurmctld holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foretime_sim.sites.slurm.switches import Switch, levels_of

UNREACHABLE = 2**32 - 1
"""Distance of switches without a way from one to the other (`INFINITE`)."""


@dataclass(frozen=True, slots=True)
class SwitchTree:
    """The switches in their order (`switch_record_t`), each by its place.

    Attributes
    ----------
    nodes
        Numbers of the nodes that each reaches.
    levels
        0 of those with nodes of their own.
    parents
        The switch above; of several the last; ``None``: there is none.
    distances
        How many steps from each to each.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.nodes.switch_tree import SwitchTree
    >>> from foretime_sim.sites.slurm.switches import Switch
    >>> top = Switch("top", switches=("a", "b"))
    >>> groups = {"old": frozenset({0, 1}), "new": frozenset({2})}
    >>> tree = SwitchTree.of((Switch("a", ("old",)), Switch("b", ("new",)), top), groups)
    >>> tree.levels, tree.parents, tree.distances[0]
    ((0, 0, 1), (2, 2, None), (0, 2, 1))
    """

    nodes: tuple[frozenset[int], ...]
    levels: tuple[int, ...]
    parents: tuple[int | None, ...]
    distances: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, switches: Sequence[Switch], nodes_of_group: Mapping[str, frozenset[int]]
    ) -> SwitchTree:
        """Work out what follows from a site's switches and the nodes of its groups.

        `switch_record_validate` (topology/tree/switch_record.c), `_validate_switches` in 22.05.
        """
        places = {switch.name: place for place, switch in enumerate(switches)}
        levels = levels_of(switches)
        nodes: dict[str, frozenset[int]] = {}
        for name in sorted(places, key=lambda name: levels[name]):
            switch = switches[places[name]]
            nodes[name] = frozenset().union(
                *(nodes_of_group[group] for group in switch.node_groups),
                *(nodes[child] for child in switch.switches),
            )
        parents: list[int | None] = [None] * len(switches)
        distances = [[UNREACHABLE] * len(switches) for _ in switches]
        for place, switch in enumerate(switches):
            distances[place][place] = 0
            for child in (places[name] for name in switch.switches):
                parents[child] = place
                distances[place][child] = distances[child][place] = 1
        for via in range(len(switches)):
            for row in distances:
                for to, step in enumerate(distances[via]):
                    row[to] = min(row[to], row[via] + step)
        return cls(
            tuple(nodes[switch.name] for switch in switches),
            tuple(levels[switch.name] for switch in switches),
            tuple(parents),
            tuple(tuple(row) for row in distances),
        )
