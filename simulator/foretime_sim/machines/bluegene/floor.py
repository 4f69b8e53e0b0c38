"""A Blue Gene as it stands on the floor: rows of racks, midplanes in them, and who uses which."""

from __future__ import annotations

import re
from dataclasses import dataclass

from foretime_estimators.jobs.errors import InputError

from foretime_sim.machines.bluegene.geometry import DIGITS
from foretime_sim.machines.bluegene.machine import BgpMachine

_MIDPLANE = re.compile(r"R([0-9A-Z])([0-9A-Z])-M([0-9A-Z])")


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a midplane stands: row, rack in it, and place in the rack from below."""

    row: int
    rack: int
    level: int


def places(machine: BgpMachine) -> tuple[Place, ...]:
    """Tell where each midplane stands, by its name.

    Raises
    ------
    InputError
        If a name is not like ``R00-M1``.
    """
    found = []
    for name in machine.midplane_names:
        match = _MIDPLANE.fullmatch(name)
        if match is None:
            raise InputError(f"{machine.name}: midplane {name!r}: expected a name like R00-M1")
        found.append(Place(*(DIGITS.index(digit) for digit in match.groups())))
    return tuple(found)


def passed_midplanes(machine: BgpMachine, bgp_partition: int) -> frozenset[int]:
    """Give the midplanes that a bgp_partition does not have, but whose switches it passes."""
    part = machine.bgp_partitions[bgp_partition]
    number = {name: index for index, name in enumerate(machine.midplane_names)}
    touched = {name for wire in part.wires for name in re.findall(r"R..-M.", wire)}
    return frozenset(number[name] for name in touched if name in number) - set(part.midplanes)


def side_by_side(machine: BgpMachine, nodes: int) -> list[int]:
    """Give bgp_partitions of a size that can be in use together.

    Those with the fewest conflicts are taken first, in the catalogue's order: a good choice, though
    a larger one may exist.
    """
    of_size = [index for index, part in enumerate(machine.bgp_partitions) if part.nodes == nodes]
    conflicts = machine.conflicts.sum(axis=1)
    chosen: list[int] = []
    for index in sorted(of_size, key=lambda index: int(conflicts[index])):
        if not machine.conflicts[index, chosen].any():
            chosen.append(index)
    return chosen
