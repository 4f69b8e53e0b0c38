"""A Blue Gene as it stands on the floor: rows of racks, midplanes in them, and who uses which."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from foretime_estimators.errors import InputError

from foretime_sim.bgp_geometry import DIGITS
from foretime_sim.bgp_machine import BgpMachine, intrepid
from foretime_sim.bgp_machine_file import read_bgp_machine
from foretime_sim.cobalt_partitions import read_cobalt_partitions
from foretime_sim.compressed_files import read_text

BUILT_IN = ("intrepid",)
"""Machines that come with the package."""
_MIDPLANE = re.compile(r"R([0-9A-Z])([0-9A-Z])-M([0-9A-Z])")


def find_bgp_machine(name: str, schedulable: Path | None = None) -> BgpMachine:
    """Give a machine that comes with the package, or read a description or Cobalt configuration.

    Parameters
    ----------
    name
        One of `BUILT_IN`, or a file: TOML or Cobalt's XML, told by its content.
    schedulable
        With Cobalt's XML, a file with the names of the bgp_partitions that jobs may have.

    Raises
    ------
    InputError
        If there is none of that name, a file is faulty, or schedulable has no use.
    """
    path = Path(name)
    if not path.exists() and name not in BUILT_IN:
        raise InputError(
            f"{name}: there is no such file, nor a Blue Gene of that name; "
            f"there are: {', '.join(BUILT_IN)}"
        )
    what = "TOML file or Cobalt configuration"
    if path.exists() and read_text(path, what=what).lstrip().startswith("<"):
        return read_cobalt_partitions(path, schedulable)
    if schedulable is not None:
        raise InputError(f"{schedulable}: only a Cobalt configuration takes a list; leave it out")
    return read_bgp_machine(path) if path.exists() else intrepid()


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
