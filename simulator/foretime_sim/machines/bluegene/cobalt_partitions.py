"""A Blue Gene's bgp_partitions as the resource manager Cobalt is configured with them.

The file is XML: each ``Partition`` lists its node cards (32 nodes each, 16 in a midplane), and the
switches and wires that are its own while it is in use. Cobalt lets two bgp_partitions run together
unless they share a node card, or a wire; sharing a switch alone is no conflict (a switch can pass
on what is not its own).
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.near_names import nearest
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition, Links

NODES_PER_CARD = 32
CARDS_PER_MIDPLANE = 16
CORES_PER_NODE = {"bgp": 4, "bgq": 16}
"""By the file's ``BGType``; a file that says none is of a Blue Gene/P."""
_CARD = re.compile(r"(R[0-9A-Z]{2}-M[0-9])-N[0-9]{2}")


def read_cobalt_partitions(
    path: Path | str, schedulable: Iterable[str] | Path | str | None = None
) -> BgpMachine:
    """Read a Cobalt configuration, compressed or not.

    Parameters
    ----------
    path
        The XML file; the machine gets its name.
    schedulable
        Names of the bgp_partitions that jobs may have, or a file with one on each line; ``None``
        for all that the configuration has.

    Returns
    -------
    BgpMachine
        In the file's order. Shapes are not known; torus and mesh are on a Blue Gene/P, where a mesh
        lacks the wires to its midplanes' switches in some dimension.

    Raises
    ------
    InputError
        If a file can't be read, is no such configuration, or lacks a bgp_partition that schedulable
        names; it says which.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions
    >>> cards = "".join(f"<NodeCard id='R00-M0-N{card:02}'/>" for card in range(16))
    >>> partition = f"<Partition name='half'>{cards}</Partition>"
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small-partitions.xml"
    ...     _ = path.write_text(f"<BG><PartitionList>{partition}</PartitionList></BG>")
    ...     machine = read_cobalt_partitions(path)
    >>> machine.name, machine.nodes
    ('small', 512)
    """
    path = Path(path)
    root = _parse(path)
    kind = (root.findtext("BGType") or "bgp").strip()
    if kind not in CORES_PER_NODE:
        raise InputError(f"{path}: BGType is {kind!r}: use one of {', '.join(CORES_PER_NODE)}")
    elements: dict[str, ElementTree.Element] = {}
    for element in root.iter("Partition"):
        if element.get("name", "") in ("", *elements):
            raise InputError(f"{path}: Partition {element.get('name')!r}: give each its own name")
        elements[element.attrib["name"]] = element
    if not elements:
        raise InputError(f"{path}: has no Partition; name a Cobalt configuration")
    cards = {name: _cards(path, name, element) for name, element in elements.items()}
    midplanes = sorted({card[:6] for owned in cards.values() for card in owned})
    number = {name: index for index, name in enumerate(midplanes)}
    chosen = elements if schedulable is None else _chosen(path, elements, schedulable)
    parts = []
    for name in chosen:
        owned = sorted({number[card[:6]] for card in cards[name]})
        wires = frozenset(_ids(path, name, elements[name], "Wire"))
        whole = len(cards[name]) == len(owned) * CARDS_PER_MIDPLANE
        parts.append(
            BgpPartition(
                name,
                len(cards[name]) * NODES_PER_CARD,
                tuple(owned),
                links=_links(wires, [midplanes[index] for index in owned])
                if whole and kind == "bgp"
                else None,
                wires=wires,
                node_cards=frozenset() if whole else cards[name],
            )
        )
    name = path.name.split(".")[0].removesuffix("-partitions")
    return BgpMachine(
        name,
        NODES_PER_CARD * CARDS_PER_MIDPLANE,
        tuple(midplanes),
        tuple(parts),
        CORES_PER_NODE[kind],
    )


def _parse(path: Path) -> ElementTree.Element:
    text = read_text(path, what="Cobalt configuration")
    if "<!ENTITY" in text:
        raise InputError(f"{path}: declares entities, as no Cobalt configuration does")
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  # without entities nothing can expand
    except ElementTree.ParseError as error:
        raise InputError(f"{path}: not XML: {error}; name a Cobalt configuration") from None
    if root.tag != "BG":
        raise InputError(f"{path}: begins with <{root.tag}>, not <BG>; name a Cobalt configuration")
    return root


def _ids(path: Path, name: str, element: ElementTree.Element, tag: str) -> set[str]:
    found = {child.get("id", "") for child in element.findall(tag)}
    if "" in found:
        raise InputError(f"{path}: Partition {name}: a {tag} has no id")
    return found


def _cards(path: Path, name: str, element: ElementTree.Element) -> frozenset[str]:
    cards = frozenset(_ids(path, name, element, "NodeCard"))
    if not cards:
        raise InputError(f"{path}: Partition {name} has no NodeCard")
    for card in sorted(cards):
        if not _CARD.fullmatch(card):
            raise InputError(
                f"{path}: Partition {name}: NodeCard {card!r}: expected one like R01-M0-N15"
            )
    return cards


def _chosen(
    path: Path, known: Iterable[str], schedulable: Iterable[str] | Path | str
) -> tuple[str, ...]:
    if isinstance(schedulable, (str, Path)):
        source = str(schedulable)
        names = read_text(Path(schedulable), what="list of partitions").split()
    else:
        source, names = "schedulable", list(schedulable)
    wanted = set(names)
    for number, name in enumerate(names, start=1):
        if name not in set(known):
            raise InputError(
                f"{source}: name {number}: {path} has no partition {name!r}"
                f"{nearest(name, sorted(known))}"
            )
    return tuple(name for name in known if name in wanted)


def _links(wires: frozenset[str], midplanes: list[str]) -> Links:
    joined = all(f"{name}{axis}_{name}" in wires for name in midplanes for axis in "XYZ")
    return Links.TORUS if joined else Links.MESH
