"""A Blue Gene: midplanes, the bgp_partitions offered over them, and which can't run together.

Tang 2010, section II.A: jobs don't get nodes but one of a fixed catalogue of bgp_partitions, each
of whole midplanes with the cables that join them. Two of them can't be in use at once when they
share a midplane, and also when they share nothing but a cable.
`foretime_sim.machines.bluegene.machine_file` computes the catalogue from a description;
`foretime_sim.machines.bluegene.cobalt_partitions` reads a real one.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from foretime_estimators.jobs.errors import InputError
from numpy.typing import NDArray

from foretime_sim.files.near_names import nearest


class Links(enum.Enum):
    """How the ends of a bgp_partition are joined in each dimension."""

    TORUS = "torus"
    """Closed to rings; needs the cables that lead back, past other midplanes if need be."""
    MESH = "mesh"
    """Open; needs the cables between its own midplanes only."""


@dataclass(frozen=True, slots=True)
class BgpPartition:
    """What one job at a time may have.

    Attributes
    ----------
    name
        As the resource manager calls it.
    nodes
        How many nodes it has.
    midplanes
        Indices into `BgpMachine.midplane_names`, ascending.
    shape
        Its length in each dimension, in midplanes; empty where a configuration does not say.
    links
        Torus or mesh; ``None`` where a configuration does not say.
    wires
        Names of the cables that are its own while it is in use.
    node_cards
        Names of its node cards if it has but a part of its midplanes; empty if it has all of them.

    Examples
    --------
    >>> from foretime_sim.machines.bluegene.machine import BgpPartition
    >>> half = BgpPartition("R00-M0", nodes=512, midplanes=(0,))
    >>> half.nodes
    512
    """

    name: str
    nodes: int
    midplanes: tuple[int, ...]
    shape: tuple[int, ...] = ()
    links: Links | None = None
    wires: frozenset[str] = frozenset()
    node_cards: frozenset[str] = frozenset()


@dataclass(frozen=True)
class BgpMachine:
    """Midplanes and the catalogue of bgp_partitions over them.

    Attributes
    ----------
    name
        What the machine is called.
    nodes_per_midplane, cores_per_node
        How many each has.
    midplane_names
        One for each midplane, like ``R00-M1``: row 0, rack 0, upper midplane.
    bgp_partitions
        The catalogue; their order is kept, and their places in it are their indices.

    Raises
    ------
    InputError
        If the catalogue is empty, a name is there twice, or a bgp_partition has midplanes that are
        not there.

    Examples
    --------
    >>> from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
    >>> parts = (BgpPartition("M0", 512, (0,)), BgpPartition("M1", 512, (1,)))
    >>> rack = BgpMachine("rack", 512, ("M0", "M1"), (*parts, BgpPartition("R", 1024, (0, 1))))
    >>> rack.nodes, rack.conflicts[0].tolist()
    (1024, [True, False, True])
    """

    name: str
    nodes_per_midplane: int
    midplane_names: tuple[str, ...]
    bgp_partitions: tuple[BgpPartition, ...]
    cores_per_node: int = 4

    def __post_init__(self) -> None:
        if not self.bgp_partitions:
            raise InputError(f"{self.name}: there are no partitions: offer at least one")
        _check_distinct(self.midplane_names, "midplane")
        _check_distinct([part.name for part in self.bgp_partitions], "bgp_partition")
        for part in self.bgp_partitions:
            if list(part.midplanes) != sorted(set(part.midplanes)):
                raise InputError(f"partition {part.name}: its midplanes don't ascend")
            if not part.midplanes or not 0 <= part.midplanes[0] <= part.midplanes[-1] < len(
                self.midplane_names
            ):
                raise InputError(
                    f"partition {part.name}: midplanes {part.midplanes}: "
                    f"give some of 0 to {len(self.midplane_names) - 1}"
                )
            if not 1 <= part.nodes <= len(part.midplanes) * self.nodes_per_midplane:
                raise InputError(
                    f"partition {part.name}: {part.nodes} nodes on {len(part.midplanes)} "
                    f"midplanes of {self.nodes_per_midplane}"
                )

    @property
    def nodes(self) -> int:
        """All nodes."""
        return len(self.midplane_names) * self.nodes_per_midplane

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of bgp_partitions that are offered, nodes, ascending."""
        return tuple(sorted({part.nodes for part in self.bgp_partitions}))

    @cached_property
    def overlaps(self) -> NDArray[np.bool_]:
        """Which have a midplane in common; (bgp_partitions, bgp_partitions), true on the diagonal.

        Two that each have but a part of a midplane overlap if they share a node card.
        """
        shared = _share([frozenset(part.midplanes) for part in self.bgp_partitions])
        partial = [i for i, part in enumerate(self.bgp_partitions) if part.node_cards]
        if partial:
            cards = _share([self.bgp_partitions[i].node_cards for i in partial])
            shared[np.ix_(partial, partial)] &= cards
        shared.flags.writeable = False
        return shared

    @cached_property
    def wiring_conflicts(self) -> NDArray[np.bool_]:
        """Which have a cable in common but no midplane; of the same shape as `overlaps`."""
        apart = _share([part.wires for part in self.bgp_partitions]) & ~self.overlaps
        apart.flags.writeable = False
        return apart

    @cached_property
    def conflicts(self) -> NDArray[np.bool_]:
        """Which can't be in use at once: `overlaps` or `wiring_conflicts`."""
        either = self.overlaps | self.wiring_conflicts
        either.flags.writeable = False
        return either

    def bgp_partition_index(self, name: str) -> int:
        """Find a bgp_partition by name.

        Raises
        ------
        InputError
            If there is none of that name; it says which is nearest.
        """
        for index, part in enumerate(self.bgp_partitions):
            if part.name == name:
                return index
        names = [part.name for part in self.bgp_partitions]
        raise InputError(f"{self.name} has no partition {name!r}{nearest(name, names)}")


def _share(owned: Sequence[frozenset[int]] | Sequence[frozenset[str]]) -> NDArray[np.bool_]:
    """Tell which of several sets have an element in common; (sets, sets)."""
    number = {thing: index for index, thing in enumerate(sorted(set().union(*owned)))}
    has = np.zeros((len(owned), len(number)), dtype=np.float32)  # float for a fast product
    for index, things in enumerate(owned):
        has[index, [number[thing] for thing in things]] = 1
    shared: NDArray[np.bool_] = has @ has.T > 0
    return shared


def _check_distinct(names: Sequence[str], what: str) -> None:
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise InputError(f"{what} {twice!r} is there twice")
