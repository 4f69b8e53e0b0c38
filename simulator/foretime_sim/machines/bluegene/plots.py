"""Pictures of a Blue Gene's floor: bgp_partitions by size, or one and what it keeps waiting."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from foretime_sim.machines.bluegene.floor import passed_midplanes, places, side_by_side
from foretime_sim.machines.bluegene.geometry import DIGITS
from foretime_sim.machines.bluegene.machine import BgpMachine

_COLOURS = (
    "#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#edc948", "#b07aa1",
)  # fmt: skip  # seven: neighbours differ in rows of two, four, eight and sixteen
_FREE, _OWN, _WIRED = "#eeeeee", _COLOURS[0], "#fdd5a5"


def plot_bgp_machine(machine: BgpMachine) -> Figure:
    """Draw the floor once for each size, with bgp_partitions of it that can be in use together."""

    def first_midplane(index: int) -> int:
        return machine.bgp_partitions[index].midplanes[0]

    columns = min(3, len(machine.sizes))
    rows = math.ceil(len(machine.sizes) / columns)
    figure = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    for number, nodes in enumerate(machine.sizes, start=1):
        axes = figure.add_subplot(rows, columns, number)
        chosen = side_by_side(machine, nodes)
        colours = {
            midplane: _COLOURS[order % len(_COLOURS)]
            for order, index in enumerate(sorted(chosen, key=first_midplane))
            for midplane in machine.bgp_partitions[index].midplanes
        }
        _draw_floor(axes, machine, colours)
        offered = sum(part.nodes == nodes for part in machine.bgp_partitions)
        axes.set_title(f"{nodes:,} nodes: {offered} offered, {len(chosen)} drawn", fontsize=9)
    figure.suptitle(f"{machine.name}: partitions that can be in use together, by size")
    return figure


def plot_bgp_partition(machine: BgpMachine, bgp_partition: int) -> Figure:
    """Draw a bgp_partition: its midplanes, those it passes, and what it keeps waiting by wiring."""
    part = machine.bgp_partitions[bgp_partition]
    wired = [
        machine.bgp_partitions[int(index)]
        for index in np.flatnonzero(machine.wiring_conflicts[bgp_partition])
    ]
    passed = passed_midplanes(machine, bgp_partition)
    colours = {midplane: _WIRED for other in wired for midplane in other.midplanes}
    colours |= dict.fromkeys(part.midplanes, _OWN)
    figure = Figure(figsize=(8, 5.5), layout="constrained")
    axes = figure.add_subplot()
    _draw_floor(axes, machine, colours, passed, names=True)
    keys = [
        Patch(facecolor=_OWN, label=f"{part.name}: {len(part.midplanes)} midplanes"),
        Patch(facecolor=_FREE, hatch="////", label=f"passed by its wires: {len(passed)} midplanes"),
        Patch(facecolor=_WIRED, label=f"of what can't run beside it for wires: {len(wired)}"),
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    overlapping = int(machine.overlaps[bgp_partition].sum()) - 1
    axes.set_title(f"{machine.name}: {part.name}; overlaps {overlapping} others", fontsize=10)
    return figure


def _draw_floor(
    axes: Axes,
    machine: BgpMachine,
    colours: Mapping[int, str],
    passed: frozenset[int] = frozenset(),
    *,
    names: bool = False,
) -> None:
    """Draw racks in their rows, row 0 at the top, with midplanes from below."""
    stand = places(machine)
    levels = 1 + max(place.level for place in stand)
    last_row, last_rack = max(p.row for p in stand), max(p.rack for p in stand)
    height = 0.8 / levels
    for index, place in enumerate(stand):
        y = -place.row - 0.4 + place.level * height
        axes.add_patch(
            Rectangle(
                (place.rack - 0.4, y),
                0.8,
                height,
                facecolor=colours.get(index, _FREE),
                edgecolor="white",
                hatch="////" if index in passed else None,
            )
        )
        if names:
            label = machine.midplane_names[index].split("-")[1]
            axes.text(place.rack, y + height / 2, label, ha="center", va="center", fontsize=6)
    axes.set_xlim(-0.5, last_rack + 0.5)
    axes.set_ylim(-last_row - 0.5, 0.5)
    axes.set_xticks(range(last_rack + 1), DIGITS[: last_rack + 1])
    axes.set_yticks([-row for row in range(last_row + 1)], DIGITS[: last_row + 1])
    axes.set_xlabel("rack", fontsize=8)
    axes.set_ylabel("row", fontsize=8)
    axes.tick_params(labelsize=7, length=0)
    axes.spines[:].set_visible(False)
