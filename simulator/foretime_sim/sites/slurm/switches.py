"""The switches that a site's nodes hang on, as topology.conf has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch of topology/tree: a leaf with nodes, or one with other switches below it.

    As Slurm allows, a switch may have neither, nodes may hang on several leaves and a switch on
    several above it; nodes on no switch are given to no job.

    Attributes
    ----------
    name
        SwitchName.
    node_groups
        The groups whose nodes hang on it. (Some of a group's nodes: make these a group of their
        own.)
    switches
        Names of those below it (Switches).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.switches import Switch
    >>> tree = (Switch("a", ("old",)), Switch("b", ("new",)), Switch("top", switches=("a", "b")))
    >>> [switch.is_leaf for switch in tree]
    [True, True, False]
    """

    name: str
    node_groups: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether no switch is below it."""
        return not self.switches


def in_a_circle(switches: Iterable[Switch]) -> list[str]:
    """Name the switches that are, or hang above, one that is below itself; else nothing.

    Examples
    --------
    >>> from foretime_sim.sites.slurm.switches import Switch, in_a_circle
    >>> in_a_circle([Switch("a", switches=("b",)), Switch("b", switches=("a",)), Switch("c")])
    ['a', 'b']
    """
    below = {switch.name: set(switch.switches) for switch in switches}
    while ends := [name for name, children in below.items() if not children & below.keys()]:
        for name in ends:
            del below[name]
    return list(below)


def levels_of(switches: Sequence[Switch]) -> dict[str, int]:
    """Give the level of each switch by name: 0 of a leaf, else one more than the highest below it.

    There must be no circle (`in_a_circle`).

    Examples
    --------
    >>> from foretime_sim.sites.slurm.switches import Switch, levels_of
    >>> levels_of((Switch("top", switches=("a",)), Switch("a", ("cpu",))))
    {'a': 0, 'top': 1}
    """
    levels: dict[str, int] = {}
    while len(levels) < len(switches):
        for switch in switches:
            if switch.name not in levels and all(name in levels for name in switch.switches):
                levels[switch.name] = 1 + max(
                    (levels[name] for name in switch.switches), default=-1
                )
    return levels
