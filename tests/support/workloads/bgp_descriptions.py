"""Small Blue Gene/P descriptions, and random ones."""

from __future__ import annotations

import json

from hypothesis import strategies as st

SURVEYOR = """
name = "surveyor"
rows = 1
racks_per_row = 1
sizes = [512, 1024]
links = ["torus", "mesh"]
"""
"""One rack: two midplanes, one line in Z."""

TWO_ROWS = """
name = "two-rows"
rows = 2
racks_per_row = 4
racks_per_z_line = 2
sizes = [512, 1024, 2048, 4096, 8192]
"""
"""Eight racks: 2 x 2 x 4 midplanes."""

JUGENE = """
name = "jugene"
rows = 9
racks_per_row = 8
racks_per_z_line = 2
sizes = [512, 1024, 2048, 4096, 8192, 16384, 32768, 73728]
[wiring.y]
ring = [0, 1, 3, 2]
"""
"""72 racks: 9 x 4 x 4 midplanes."""


@st.composite
def descriptions(draw: st.DrawFn, *, extra: bool = True, links: bool = True) -> str:
    """Draw a description by blocks; of any groups in torus, of neighbours on the ring in mesh."""
    rows = draw(st.integers(1, 4))
    sets, per_line, places = draw(
        st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(1, 2))
    )
    lengths = {"x": rows, "y": sets, "z": per_line * places}
    rings = {axis: draw(st.permutations(range(length))) for axis, length in lengths.items()}
    text = [
        'name = "random"',
        f"rows = {rows}",
        f"racks_per_row = {sets * per_line}",
        f"racks_per_z_line = {per_line}",
        f"midplanes_per_rack = {places}",
        "nodes_per_midplane = 32",
        f"mirrored_rows = {sorted(draw(st.sets(st.integers(0, rows - 1))))}",
    ]
    for axis, ring in rings.items():
        text += [f"[wiring.{axis}]", f"ring = {list(ring)}"]
        length = lengths[axis]
        there = {(ring[i], ring[(i + 1) % length]) for i in range(length)}
        free = [
            (a, b) for a in range(length) for b in range(length) if a != b and (a, b) not in there
        ]
        if extra and free:
            more = draw(st.lists(st.sampled_from(free), unique=True, max_size=3))
            text.append(f"extra = {json.dumps(more)}")
    seen = set()
    for number in range(draw(st.integers(1, 4))):
        mesh = links and draw(st.booleans())
        groups = {}
        for axis, length in lengths.items():
            start, count = draw(st.integers(0, length - 1)), draw(st.integers(1, length))
            if mesh:
                group = [rings[axis][(start + step) % length] for step in range(count)]
            else:
                group = draw(st.permutations(range(length)))[:count]
            groups[axis] = sorted(group)
        key = (mesh, json.dumps(groups))
        if key in seen:
            continue
        seen.add(key)
        text += [
            "[[blocks]]",
            f'name = "block-{number}"',
            f'links = "{"mesh" if mesh else "torus"}"',
            *(f"{axis} = [{group}]" for axis, group in groups.items()),
        ]
    whole = draw(st.sampled_from(["each", "all"]))
    text += ["[[blocks]]", 'links = "torus"', f'x = "{whole}"', 'y = "each"', 'z = "each"']
    text += ["[[blocks]]", 'prefix = "LINES"', 'links = "torus"', 'x = "each"', 'y = "each"']
    return "\n".join([*text, 'z = "all"']) + "\n"
