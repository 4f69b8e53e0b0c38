"""The geometry of a Blue Gene/P: where midplanes stand, and the cables of each line of them.

Midplanes form a box of X times Y times Z. Those that differ in one coordinate only are a *line*,
and have a set of cables of their own (Tang 2010, section II.A). Every midplane has a switch in each
of its three lines; a cable leads from one switch of a line to another, in one direction. A switch
can pass a cable's signals on without its midplane.

A bgp_partition's cables in a line are those between the switches that it touches:

- a torus of two midplanes or more in the line touches the switches on the shortest closed route
  through all its midplanes, passing other midplanes if need be;
- a mesh touches its own switches only;
- one midplane touches none: its switch connects it back to itself.

Where a line's cables are one ring and no more, as in Y and Z, a torus thus has all of them,
whatever its length: one bgp_partition at a time, all others on the line of length one. Extra
cables, as in X, give shorter routes, so that several fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from foretime_estimators.jobs.errors import InputError

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Rows and racks are numbered with one digit each: rack ``R2F`` is number 15 of row 2."""
MAX_LINE = 36
"""No line may have more midplanes than this."""
MAX_EXTRA = 8
"""No line may have more cables beyond its ring than this: each doubles the routes to compare."""


@dataclass(frozen=True, slots=True)
class Line:
    """The cables of every line of one dimension.

    Attributes
    ----------
    ring
        The positions 0 .. length-1 in the order in which the ring of cables joins them.
    extra
        Cables beyond the ring, each from one position to another.
    """

    ring: tuple[int, ...]
    extra: tuple[tuple[int, int], ...] = ()

    @property
    def length(self) -> int:
        """Midplanes on the line."""
        return len(self.ring)

    @property
    def cables(self) -> tuple[tuple[int, int], ...]:
        """All cables, from one position to another; none where the line is one midplane."""
        if self.length == 1:
            return ()
        following = (*self.ring[1:], self.ring[0])
        return (*zip(self.ring, following, strict=True), *self.extra)

    def torus_cables(self, group: frozenset[int]) -> tuple[tuple[int, int], ...]:
        """Give the cables of a torus over these positions."""
        if len(group) == 1:
            return ()
        return self._between(_closed_route(self, group))

    def mesh_cables(self, group: frozenset[int]) -> tuple[tuple[int, int], ...]:
        """Give the cables of a mesh over these positions.

        Raises
        ------
        InputError
            If they can't be joined without passing other midplanes.
        """
        if len(group) > 1 and not any(
            _paths(self, first, group, len(group)) for first in sorted(group)
        ):
            raise InputError(
                f"a mesh over positions {sorted(group)} would pass other midplanes: "
                f"cables join {', '.join(f'{a} to {b}' for a, b in self.cables)}"
            )
        return self._between(group)

    def _between(self, touched: frozenset[int]) -> tuple[tuple[int, int], ...]:
        return tuple((a, b) for a, b in self.cables if a in touched and b in touched)


@cache
def _closed_route(line: Line, group: frozenset[int]) -> frozenset[int]:
    """Find the shortest closed route through a group; of several, the first by positions."""
    start = min(group)
    every = frozenset(range(line.length))
    for length in range(len(group), line.length):
        closed = [
            frozenset(path)
            for path in _paths(line, start, every, length)
            if group <= set(path) and (path[-1], start) in line.cables
        ]
        if closed:
            return min(closed, key=sorted)
    return every  # the ring itself


def _paths(line: Line, start: int, within: frozenset[int], length: int) -> list[tuple[int, ...]]:
    """List the paths along cables that meet so many positions, each once."""
    paths: list[tuple[int, ...]] = [(start,)]
    for _ in range(length - 1):
        paths = [
            (*path, b)
            for path in paths
            for a, b in line.cables
            if a == path[-1] and b in within and b not in path
        ]
    return paths


@dataclass(frozen=True, slots=True)
class Floor:
    """How racks stand, and how their midplanes are cabled.

    X leads along the rows, one position a row. Z leads through the midplanes of neighbouring racks
    of a row: up the first rack, down the second, and so on; in mirrored rows the other way round. Y
    leads along the row from one such set of racks to the next.

    Attributes
    ----------
    rows, racks_per_row, midplanes_per_rack
        At least one of each.
    racks_per_z_line
        Neighbouring racks whose midplanes are one line in Z; divides racks_per_row.
    mirrored_rows
        Rows whose racks are cabled from top to bottom.
    x, y, z
        The cables of the lines.
    """

    rows: int
    racks_per_row: int
    midplanes_per_rack: int
    racks_per_z_line: int
    mirrored_rows: frozenset[int]
    x: Line
    y: Line
    z: Line

    @property
    def lengths(self) -> tuple[int, int, int]:
        """Midplanes in X, Y and Z."""
        return self.x.length, self.y.length, self.z.length

    @property
    def midplane_names(self) -> tuple[str, ...]:
        """All midplanes, by row, rack and place in the rack."""
        return _midplane_names(self.rows, self.racks_per_row, self.midplanes_per_rack)

    def midplane_at(self, position: Sequence[int]) -> int:
        """Give the index of the midplane at a position of the box: x, y and z."""
        x, y, z = position
        rack_of_line, step = divmod(z, self.midplanes_per_rack)
        upwards = (rack_of_line % 2 == 0) != (x in self.mirrored_rows)
        place = step if upwards else self.midplanes_per_rack - 1 - step
        rack = y * self.racks_per_z_line + rack_of_line
        return (x * self.racks_per_row + rack) * self.midplanes_per_rack + place


@cache
def _midplane_names(rows: int, racks: int, places: int) -> tuple[str, ...]:
    return tuple(
        f"R{DIGITS[row]}{DIGITS[rack]}-M{DIGITS[place]}"
        for row in range(rows)
        for rack in range(racks)
        for place in range(places)
    )


@dataclass(frozen=True, slots=True)
class Cuboid:
    """Midplanes of a box: all at these positions in X, in Y and in Z."""

    x: frozenset[int]
    y: frozenset[int]
    z: frozenset[int]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Its length in each dimension, in midplanes."""
        return len(self.x), len(self.y), len(self.z)

    def positions(self) -> Iterator[tuple[int, int, int]]:
        """Go through its midplanes."""
        for x in sorted(self.x):
            for y in sorted(self.y):
                for z in sorted(self.z):
                    yield x, y, z


def wires_of(floor: Floor, cuboid: Cuboid, *, torus: bool) -> frozenset[str]:
    """Name the wires of a bgp_partition, as Intrepid's resource manager does.

    ``Y_R00-M0Y_R02-M0`` is the cable in Y from R00-M0's switch to that of R02-M0;
    ``R00-M0Y_R00-M0`` and ``Y_R00-M0R00-M0`` join a midplane with its switch. A mesh uses no switch
    in a dimension in which it is one midplane long.

    Raises
    ------
    InputError
        If a mesh can't be joined without passing other midplanes.
    """
    names = floor.midplane_names
    wires = set()
    for dimension, line, group in (
        ("X", floor.x, cuboid.x),
        ("Y", floor.y, cuboid.y),
        ("Z", floor.z, cuboid.z),
    ):
        axis = "XYZ".index(dimension)
        if not torus and len(group) == 1:
            continue
        cables = line.torus_cables(group) if torus else line.mesh_cables(group)
        for position in cuboid.positions():
            own = names[floor.midplane_at(position)]
            wires |= {f"{own}{dimension}_{own}", f"{dimension}_{own}{own}"}
            for ends in cables:
                a, b = (
                    names[floor.midplane_at((*position[:axis], end, *position[axis + 1 :]))]
                    for end in ends
                )
                wires.add(f"{dimension}_{a}{dimension}_{b}")
    return frozenset(wires)


def runs(line: Line, length: int) -> list[frozenset[int]]:
    """List the runs of neighbouring positions of a length that are offered on a line.

    They begin at multiples of their length where it divides the line's, else anywhere.
    """
    step = length if line.length % length == 0 else 1
    return [
        frozenset(range(start, start + length))
        for start in range(0, line.length - length + 1, step)
    ]


def cuboids_of(floor: Floor, midplanes: int) -> list[Cuboid]:
    """List the cuboids of so many midplanes that fill Z first, then Y, then X."""
    whole_z, whole_yz = floor.z.length, floor.y.length * floor.z.length
    for shape in (
        (1, 1, midplanes),
        (1, midplanes // whole_z, whole_z),
        (midplanes // whole_yz, floor.y.length, whole_z),
    ):
        fits = all(1 <= n <= most for n, most in zip(shape, floor.lengths, strict=True))
        if fits and shape[0] * shape[1] * shape[2] == midplanes:
            lines = (floor.x, floor.y, floor.z)
            x_runs, y_runs, z_runs = (runs(line, n) for line, n in zip(lines, shape, strict=True))
            return [Cuboid(x, y, z) for x in x_runs for y in y_runs for z in z_runs]
    return []
