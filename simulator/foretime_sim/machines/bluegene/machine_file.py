"""A Blue Gene/P's description as a TOML file, and the catalogue of bgp_partitions it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Literal

import pydantic
import pydantic_core
from foretime_estimators.jobs.errors import InputError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_messages import message_of
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.bluegene.geometry import (
    DIGITS,
    MAX_EXTRA,
    MAX_LINE,
    Cuboid,
    Floor,
    Line,
    cuboids_of,
    wires_of,
)
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition, Links

MOST_BGP_PARTITIONS = 20_000
"""A catalogue may not have more: conflicts are kept for every pair."""

_Count = Annotated[int, Field(ge=1, strict=True)]
_Digit = Annotated[int, Field(ge=1, le=len(DIGITS), strict=True)]
_Position = Annotated[int, Field(ge=0, strict=True)]
_Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+$")]


def _check_groups(value: object) -> object:
    groups = value if isinstance(value, list) else []
    whole = all(
        isinstance(group, list)
        and group
        and all(isinstance(at, int) and not isinstance(at, bool) and at >= 0 for at in group)
        for group in groups
    )
    if value not in ("each", "all") and not (groups and whole):
        raise ValueError('give "each", "all", or groups of positions, like [[0, 1], [2, 3]]')
    return value


_Groups = Annotated[Literal["each", "all"] | list[list[int]], BeforeValidator(_check_groups)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Wiring(_Table):
    """``[wiring.x]``, ``[wiring.y]``, ``[wiring.z]``: the cables of each line of a dimension."""

    ring: list[_Position] | None = Field(
        default=None,
        description="the line's positions in the order in which cables join them to a ring; "
        "0, 1, 2, ... if left out",
    )
    extra: list[tuple[_Position, _Position]] = Field(
        default=[], description="cables beyond the ring, each from one position to another"
    )


class WiringTables(_Table):
    """``[wiring]``: what is said of each dimension."""

    x: Wiring = Field(default=Wiring(), description="of the lines in X")
    y: Wiring = Field(default=Wiring(), description="of the lines in Y")
    z: Wiring = Field(default=Wiring(), description="of the lines in Z")


class Blocks(_Table):
    """``[[blocks]]``: partitions that are alike."""

    links: Links = Field(description='"torus" or "mesh"')
    x: _Groups = Field(
        description='positions in X: "each" alone, "all" together, or a list of groups, '
        "like [[0, 1], [2, 3]]"
    )
    y: _Groups = Field(description="positions in Y, likewise")
    z: _Groups = Field(description="positions in Z, likewise")
    prefix: _Name | None = Field(
        default=None,
        description="how their names begin, before racks and nodes; else TORUS or MESH",
    )
    name: _Name | None = Field(
        default=None, description="the whole name, where it is one partition"
    )


class Description(_Table):
    """The file's own keys."""

    name: _Name = Field(description="what the machine is called")
    rows: _Digit = Field(description="rows of racks; X leads from row to row")
    racks_per_row: _Digit = Field(description="racks in each row")
    midplanes_per_rack: _Digit = Field(
        default=2, description="midplanes in each rack; 2 if left out"
    )
    nodes_per_midplane: _Count = Field(
        default=512, description="nodes of a midplane; 512 if left out"
    )
    cores_per_node: _Count = Field(default=4, description="cores of a node; 4 if left out")
    racks_per_z_line: _Count = Field(
        1, description="neighbouring racks whose midplanes are one line in Z; Y leads from one set "
        "of them to the next; 1 if left out"
    )  # fmt: skip
    mirrored_rows: list[_Position] = Field(
        default=[], description="rows whose lines in Z begin at the top of a rack; none if left out"
    )
    sizes: list[_Count] | None = Field(
        default=None,
        description="nodes of the partitions to offer; each becomes all cuboids of that "
        "size that fill Z first, then Y, then X; instead of [[blocks]]",
    )
    links: list[Links] = Field(
        default=[Links.TORUS],
        description='with sizes: ["torus"], ["mesh"] or both; torus if left out',
    )
    wiring: WiringTables = Field(
        default=WiringTables(), description="cables; a ring in each line if left out"
    )
    blocks: list[Blocks] = Field(default=[], description="partitions said one by one, not by size")


def read_bgp_machine(path: Path | str) -> BgpMachine:
    """Read a machine's description, and compute its catalogue.

    Raises
    ------
    InputError
        If the file can't be read or says something impossible; names file, table, key and value.
    """
    return parse_bgp_machine(read_text(Path(path), what="TOML file"), source=str(path))


def parse_bgp_machine(text: str, *, source: str) -> BgpMachine:
    """Make a machine of the text of a TOML file; see `read_bgp_machine`.

    Examples
    --------
    >>> from foretime_sim.machines.bluegene.machine_file import parse_bgp_machine
    >>> text = '''
    ... name = "small"
    ... rows = 2
    ... racks_per_row = 2
    ... blocks = [{links = "torus", x = "each", y = "each", z = "all"}]
    ... '''
    >>> machine = parse_bgp_machine(text, source="small.toml")
    >>> machine.nodes, machine.bgp_partitions[0].name
    (4096, 'TORUS-R00-1024')
    """
    values = parse_toml(text, source)
    try:
        described = Description.model_validate(values)
    except pydantic.ValidationError as error:
        problems = error.errors(include_url=False)
        first = min(problems, key=lambda problem: problem["type"] == "missing")
        raise InputError(f"{source}: {_explain(first)}") from None
    try:
        floor = _floor(described)
        parts = (
            _of_sizes(floor, described) if described.blocks == [] else _of_blocks(floor, described)
        )
        return BgpMachine(
            described.name,
            described.nodes_per_midplane,
            floor.midplane_names,
            tuple(parts),
            described.cores_per_node,
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _explain(problem: pydantic_core.ErrorDetails) -> str:
    """Say which key of which table is wrong, what it is, and what it should be."""
    path = [step for step in problem["loc"] if not (isinstance(step, str) and "[" in step)]
    table, key = _place(path)
    if problem["type"] == "extra_forbidden":
        return f"{table}{key!r} is unknown{nearest(str(key), _known(path[:-1]))}"
    if problem["type"] == "missing":
        return f"{table}{key} is missing ({_model(path[:-1]).model_fields[str(key)].description})"
    return f"{table}{key} is {problem['input']!r}: {message_of(problem)}"


def _place(path: Sequence[int | str]) -> tuple[str, str]:
    """Split a path into its table as one writes it, and the key in it."""
    if path[0] == "blocks" and len(path) > 2:
        return f"[[blocks]] number {int(path[1]) + 1}: ", str(path[2])
    if path[0] == "wiring" and len(path) > 2:
        return f"[wiring.{path[1]}]: ", str(path[2])
    return "", str(path[-1] if path[0] in ("wiring", "blocks") else path[0])


def _model(path: Sequence[int | str]) -> type[BaseModel]:
    if path[:1] == ["blocks"]:
        return Blocks
    if path[:1] == ["wiring"]:
        return WiringTables if len(path) == 1 else Wiring
    return Description


def _known(path: Sequence[int | str]) -> list[str]:
    return list(_model(path).model_fields)


def _floor(described: Description) -> Floor:
    per_line = described.racks_per_z_line
    if described.racks_per_row % per_line:
        raise InputError(
            f"racks_per_z_line is {per_line}: give a divisor of racks_per_row, which is "
            f"{described.racks_per_row}"
        )
    for row in described.mirrored_rows:
        if row >= described.rows:
            raise InputError(f"mirrored_rows: there is no row {row}: rows is {described.rows}")
    lengths = (
        described.rows,
        described.racks_per_row // per_line,
        per_line * described.midplanes_per_rack,
    )
    x, y, z = (
        _line(axis, getattr(described.wiring, axis), length)
        for axis, length in zip("xyz", lengths, strict=True)
    )
    return Floor(
        described.rows,
        described.racks_per_row,
        described.midplanes_per_rack,
        per_line,
        frozenset(described.mirrored_rows),
        x,
        y,
        z,
    )


def _line(axis: str, wiring: Wiring, length: int) -> Line:
    where = f"[wiring.{axis}]"
    if length > MAX_LINE:
        raise InputError(f"lines in {axis.upper()} have {length} midplanes: {MAX_LINE} is the most")
    ring = tuple(range(length)) if wiring.ring is None else tuple(wiring.ring)
    if sorted(ring) != list(range(length)):
        raise InputError(
            f"{where}: ring is {list(ring)}: give each position 0 to {length - 1} once"
        )
    if len(wiring.extra) > MAX_EXTRA:
        raise InputError(f"{where}: extra has {len(wiring.extra)} cables: {MAX_EXTRA} is the most")
    line = Line(ring, tuple(wiring.extra))
    for a, b in line.extra:
        if a >= length or b >= length or a == b:
            raise InputError(
                f"{where}: extra has {[a, b]}: give two of the positions 0 to {length - 1}"
            )
    if len(set(line.cables)) < len(line.cables):
        twice = next(cable for cable in line.extra if line.cables.count(cable) > 1)
        raise InputError(f"{where}: extra has {list(twice)}, a cable that is there already")
    return line


def _of_sizes(floor: Floor, described: Description) -> list[BgpPartition]:
    if described.sizes is None:
        raise InputError("neither sizes nor [[blocks]] is there: say which partitions to offer")
    counts = {size: size // described.nodes_per_midplane for size in described.sizes}
    parts = []
    for size, midplanes in counts.items():
        cuboids = cuboids_of(floor, midplanes) if size % described.nodes_per_midplane == 0 else []
        if not cuboids:
            most = len(floor.midplane_names)
            possible = [n * described.nodes_per_midplane for n in range(1, most + 1)
                        if cuboids_of(floor, n)]  # fmt: skip
            raise InputError(
                f"sizes: no cuboid of midplanes that fills Z, then Y, then X has {size:,} nodes; "
                f"there are: {', '.join(f'{n:,}' for n in possible)}"
            )
        for links in described.links:
            parts += [_part(floor, described, cuboid, links, None) for cuboid in cuboids]
    return parts


def _of_blocks(floor: Floor, described: Description) -> list[BgpPartition]:
    if described.sizes is not None:
        raise InputError("sizes and [[blocks]] are both there: give one of them")
    parts: list[BgpPartition] = []
    for number, blocks in enumerate(described.blocks, start=1):
        where = f"[[blocks]] number {number}"
        axes = (("x", floor.x), ("y", floor.y), ("z", floor.z))
        groups = [_groups(where, axis, getattr(blocks, axis), line) for axis, line in axes]
        cuboids = [Cuboid(x, y, z) for x in groups[0] for y in groups[1] for z in groups[2]]
        if blocks.name is not None and len(cuboids) > 1:
            raise InputError(f"{where}: name is for one partition; here are {len(cuboids)}")
        if blocks.name is not None and blocks.prefix is not None:
            raise InputError(f"{where}: name and prefix are both there: give one of them")
        if len(parts) + len(cuboids) > MOST_BGP_PARTITIONS:
            raise InputError(f"{where}: more than {MOST_BGP_PARTITIONS:,} partitions in all")
        try:
            parts += [
                _part(floor, described, cuboid, blocks.links, blocks.prefix, blocks.name)
                for cuboid in cuboids
            ]
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    return parts


def _groups(where: str, axis: str, said: str | list[list[int]], line: Line) -> list[frozenset[int]]:
    if said == "each":
        return [frozenset({position}) for position in range(line.length)]
    if said == "all":
        return [frozenset(range(line.length))]
    for group in said:
        if len(set(group)) < len(group) or max(map(int, group)) >= line.length:
            raise InputError(
                f"{where}: {axis} has the group {group}: give each position once, of 0 to "
                f"{line.length - 1}"
            )
    return [frozenset(map(int, group)) for group in said]


def _part(
    floor: Floor,
    described: Description,
    cuboid: Cuboid,
    links: Links,
    prefix: str | None,
    name: str | None = None,
) -> BgpPartition:
    midplanes = sorted(floor.midplane_at(position) for position in cuboid.positions())
    nodes = len(midplanes) * described.nodes_per_midplane
    if name is None:
        ends = "-".join(_ends([floor.midplane_names[midplane] for midplane in midplanes], floor))
        name = f"{prefix or links.name}-{ends}-{nodes}"
    return BgpPartition(
        name,
        nodes,
        tuple(midplanes),
        cuboid.shape,
        links,
        wires_of(floor, cuboid, torus=links is Links.TORUS),
    )


def _ends(names: list[str], floor: Floor) -> Iterator[str]:
    """Give the first and the last rack, or midplane where a rack is not whole; once if alike."""
    racks = [name.split("-")[0] for name in names]
    whole = all(racks.count(rack) == floor.midplanes_per_rack for rack in racks)
    places = racks if whole else names
    yield places[0]
    if places[-1] != places[0]:
        yield places[-1]


@cache
def intrepid() -> BgpMachine:
    """Give Intrepid, the 40-rack Blue Gene/P of Tang 2010, from its description in this package.

    Examples
    --------
    >>> from foretime_sim.machines.bluegene.machine_file import intrepid
    >>> intrepid().nodes, len(intrepid().bgp_partitions)
    (40960, 227)
    """
    text = (
        files("foretime_sim.machines.bluegene")
        .joinpath("intrepid.toml")
        .read_text(encoding="utf-8")
    )
    return parse_bgp_machine(text, source="intrepid.toml")
