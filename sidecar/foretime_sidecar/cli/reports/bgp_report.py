"""What ``foretime bgp show`` shows: a Blue Gene, or one bgp_partition of it, drawn or as JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from foretime_sim.machines.bluegene.floor import passed_midplanes, places, side_by_side
from foretime_sim.machines.bluegene.geometry import DIGITS
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
from rich.table import Table

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.wording.counts import counted


def print_machine(described: BgpMachine) -> None:
    """Print its sizes, its floor, and what can't run together."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("nodes", "bgp_partitions", "torus", "mesh", "together"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("shapes in midplanes", overflow="fold")
    for nodes in described.sizes:
        parts = [part for part in described.bgp_partitions if part.nodes == nodes]
        links = Counter(part.links.value if part.links else "" for part in parts)
        table.add_row(
            f"{nodes:,}",
            str(len(parts)),
            str(links["torus"] or ""),
            str(links["mesh"] or ""),
            str(len(side_by_side(described, nodes))),
            _shapes(parts),
        )
    print_uncut(table)
    say()
    say(_floor(described, {}))
    pairs = int(np.triu(described.overlaps, 1).sum())
    wired = int(np.triu(described.wiring_conflicts).sum())
    say(
        f"{described.name}: {described.nodes:,} nodes of {described.cores_per_node} cores, "
        f"{counted(len(described.midplane_names), 'midplane')} of {described.nodes_per_midplane}; "
        f"{counted(len(described.bgp_partitions), 'partition')}: "
        f"{counted(pairs, 'pair')} overlap, {wired:,} more conflict by wires alone"
    )


def _shapes(parts: list[BgpPartition]) -> str:
    shapes = Counter("x".join(map(str, part.shape)) for part in parts if part.shape)
    return ", ".join(f"{count} of {shape}" for shape, count in shapes.items())


def print_bgp_partition(described: BgpMachine, index: int) -> None:
    """Print one bgp_partition: where it is, and what it conflicts with."""
    part = described.bgp_partitions[index]
    passed = passed_midplanes(described, index)
    marks = dict.fromkeys(passed, "==") | dict.fromkeys(part.midplanes, "##")
    shape = " x ".join(map(str, part.shape))
    about = [f"{part.nodes:,} nodes", counted(len(part.midplanes), "midplane")]
    about += [shape] if shape else []
    about += [part.links.value] if part.links else []
    say(f"{part.name}: {', '.join(about)}, {counted(len(part.wires), 'wire')}\n")
    say(_floor(described, marks))
    say("##  its own" + ("    ==  passed by its wires" if passed else "") + "\n")
    overlapping = [i for i in np.flatnonzero(described.overlaps[index]) if i != index]
    sizes = Counter(described.bgp_partitions[i].nodes for i in overlapping)
    by_size = ", ".join(f"{sizes[nodes]} of {nodes:,} nodes" for nodes in sorted(sizes))
    say(f"overlaps {counted(len(overlapping), 'partition')}" + (by_size and f": {by_size}"))
    wired = _names(described, described.wiring_conflicts[index])
    say(f"conflicts by wires alone with {len(wired)}" + "".join(f"\n  {n}" for n in wired))
    for axis in "XYZ":
        cables = sorted(wire for wire in part.wires if wire.count(f"{axis}_") == 2)
        if cables:
            say(f"cables in {axis}: {len(cables)}")
            for cable in cables:
                say(f"  {' to '.join(cable.split(f'{axis}_')[1:])}")


def _floor(described: BgpMachine, marks: dict[int, str]) -> str:
    """Draw rows of racks, one line a level of midplanes, the highest first."""
    mark_at = {place: marks.get(index, "..") for index, place in enumerate(places(described))}
    racks = range(1 + max(place.rack for place in mark_at))
    lines = ["           rack " + "  ".join(f"{DIGITS[rack]:>2}" for rack in racks)]
    for row in sorted({place.row for place in mark_at}):
        here = {(p.rack, p.level): mark for p, mark in mark_at.items() if p.row == row}
        for level in sorted({level for _, level in here}, reverse=True):
            head = f"row {DIGITS[row]}" if level == max(level for _, level in here) else ""
            cells = "  ".join(here.get((rack, level), "  ") for rack in racks)
            lines.append(f"{head:<11}M{DIGITS[level]}   {cells}".rstrip())
        lines.append("")
    return "\n".join(lines)


def _names(described: BgpMachine, which: np.ndarray[Any, np.dtype[np.bool_]]) -> list[str]:
    return [described.bgp_partitions[int(index)].name for index in np.flatnonzero(which)]


def _part_json(part: BgpPartition, described: BgpMachine) -> dict[str, Any]:
    return {
        "name": part.name,
        "nodes": part.nodes,
        "shape": list(part.shape) or None,
        "links": part.links.value if part.links else None,
        "midplanes": [described.midplane_names[midplane] for midplane in part.midplanes],
    }


def machine_json(described: BgpMachine) -> dict[str, Any]:
    """Give what `print_machine` prints, and every bgp_partition, for JSON."""
    return {
        "name": described.name,
        "nodes": described.nodes,
        "nodes_per_midplane": described.nodes_per_midplane,
        "cores_per_node": described.cores_per_node,
        "midplanes": list(described.midplane_names),
        "sizes": [
            {
                "nodes": nodes,
                "bgp_partitions": sum(part.nodes == nodes for part in described.bgp_partitions),
                "together": len(side_by_side(described, nodes)),
            }
            for nodes in described.sizes
        ],
        "overlapping_pairs": int(np.triu(described.overlaps, 1).sum()),
        "wiring_conflicts": [
            [described.bgp_partitions[i].name, described.bgp_partitions[j].name]
            for i, j in np.argwhere(np.triu(described.wiring_conflicts)).tolist()
        ],
        "bgp_partitions": [_part_json(part, described) for part in described.bgp_partitions],
    }


def bgp_partition_json(described: BgpMachine, index: int) -> dict[str, Any]:
    """Give what `print_bgp_partition` prints for JSON."""
    part = described.bgp_partitions[index]
    overlapping = described.overlaps[index].copy()
    overlapping[index] = False
    passed = sorted(passed_midplanes(described, index))
    return _part_json(part, described) | {
        "passed_midplanes": [described.midplane_names[midplane] for midplane in passed],
        "wires": sorted(part.wires),
        "overlaps": _names(described, overlapping),
        "wiring_conflicts": _names(described, described.wiring_conflicts[index]),
    }
