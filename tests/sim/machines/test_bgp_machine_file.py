"""The description of a Blue Gene/P: what may be written, and its faults by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.bluegene import machine_file as bgp_machine_file
from foretime_sim.machines.bluegene.machine_file import (
    intrepid,
    parse_bgp_machine,
    read_bgp_machine,
)
from pydantic import BaseModel

from tests.support.workloads.bgp_descriptions import TWO_ROWS

BLOCKS = """
name = "m"
rows = 2
racks_per_row = 2
[[blocks]]
links = "torus"
x = "each"
y = "each"
z = "all"
"""


def test_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "m.toml"
    path.write_text(BLOCKS)
    described = read_bgp_machine(path)
    assert [part.name for part in described.bgp_partitions] == [
        "TORUS-R00-1024", "TORUS-R01-1024", "TORUS-R10-1024", "TORUS-R11-1024",
    ]  # fmt: skip


def test_a_partition_is_named_by_its_first_and_last_rack() -> None:
    """First and last rack, or midplane where a rack is not whole; a prefix or a name of its own."""
    text = (
        BLOCKS + '[[blocks]]\nlinks = "torus"\nprefix = "P"\nx = [[0, 1]]\ny = [[1]]\nz = [[1]]\n'
    )
    text += '[[blocks]]\nlinks = "mesh"\nname = "middle"\nx = [[0]]\ny = [[0]]\nz = [[1]]\n'
    names = [part.name for part in parse_bgp_machine(text, source="m").bgp_partitions]
    assert names[4:] == ["P-R01-M1-R11-M1-1024", "middle"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("rows = 2", "rows =", "m.toml:3: not TOML: Invalid value (column "),
        ("rows = 2", "rows = 0", "m.toml: rows is 0: give 1 or more"),
        ("rows = 2", "rows = 2.5", "m.toml: rows is 2.5: give a whole number"),
        ("rows = 2", "", "m.toml: rows is missing (rows of racks; X leads from row to row)"),
        ("rows = 2", "row = 2", "m.toml: 'row' is unknown; did you mean 'rows'?"),
        ("rows = 2", "rows = 37", "m.toml: rows is 37: give at most 36"),
        ('"m"', '"a b"', "m.toml: name is 'a b'"),
        ("rows = 2", "rows = 2\nracks_per_z_line = 4", "racks_per_z_line is 4: give a divisor of"),
        ("rows = 2", "rows = 2\nmirrored_rows = [2]", "mirrored_rows: there is no row 2"),
        ("rows = 2", "rows = 2\nsizes = [512]", "sizes and [[blocks]] are both there"),
        ("links", "link", "[[blocks]] number 1: 'link' is unknown; did you mean 'links'?"),
        ("torus", "ring", "links is 'ring': give 'torus' or 'mesh'"),
        ('z = "all"', "", "[[blocks]] number 1: z is missing (positions in Z, likewise)"),
        ('z = "all"', 'z = "some"', "[[blocks]] number 1: z is 'some': give \"each\", "),
        ('z = "all"', "z = [[]]", "number 1: z is [[]]: give \"each\", \"all\", or groups"),
        ('z = "all"', "z = [[0, 0]]", "z has the group [0, 0]: give each position once, of 0 to 1"),
        ('z = "all"', "z = [[2]]", "[[blocks]] number 1: z has the group [2]"),
        ('z = "all"', 'z = "all"\nname = "n"', "name is for one partition; here are 4"),
        ('x = "each"\ny = "each"', 'x = [[0]]\ny = [[0]]\nname = "n"\nprefix = "p"',
         "number 1: name and prefix are both there"),
        ('z = "all"', 'z = "all"\n[[blocks]]\nlinks = "torus"\nx = "each"\ny = "each"\nz = "all"',
         "partition 'TORUS-R00-1024' is there twice"),
        ("[[blocks]]", "[wiring.x]\nring = [0, 0]\n[[blocks]]",
         "[wiring.x]: ring is [0, 0]: give each position 0 to 1 once"),
        ("[[blocks]]", "[wiring.x]\nextra = [[0, 2]]\n[[blocks]]",
         "[wiring.x]: extra has [0, 2]: give two of the positions 0 to 1"),
        ("[[blocks]]", "[wiring.x]\nextra = [[0, 1]]\n[[blocks]]",
         "[wiring.x]: extra has [0, 1], a cable that is there already"),
        ("[[blocks]]", "[wiring.x]\nextra = [[0, 1, 1]]\n[[blocks]]", "[wiring.x]: extra is "),
        ("[[blocks]]", "[wiring.w]\nring = [0, 1]\n[[blocks]]", "'w' is unknown"),
        ("[[blocks]]", "[wiring.x]\nrings = [0, 1]\n[[blocks]]",
         "[wiring.x]: 'rings' is unknown; did you mean 'ring'?"),
        ("rows = 2", "rows = 2\nwiring = 3", "m.toml: wiring is 3"),
        ("[[blocks]]", "[blocks]", "m.toml: blocks is "),
    ],
)  # fmt: skip
def test_a_fault_is_refused_by_its_key(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bgp_machine(BLOCKS.replace(old, new, 1), source="m.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith(("m.toml: ", "m.toml:3: "))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("512, 1024", "512, 1000", "sizes: no cuboid of midplanes that fills Z, then Y, then X"),
        ("512, 1024", "512, 1000", "nodes; there are: 512, 1,024, 1,536, 2,048, 4,096, 8,192"),
        ("sizes = [512, 1024, 2048, 4096, 8192]", "", "neither sizes nor [[blocks]] is there"),
        ("512, 1024", "512, 0", "sizes is 0"),
        ("rows = 2", 'rows = 2\nlinks = ["all"]', "links is 'all'"),
    ],
)  # fmt: skip
def test_a_fault_in_sizes_is_refused_with_those_there_are(old: str, new: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_bgp_machine(TWO_ROWS.replace(old, new, 1), source="m.toml")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("heading", "model"),
    [
        ("key of the file", bgp_machine_file.Description),
        ("key of `[wiring.x]`, `[wiring.y]`, `[wiring.z]`", bgp_machine_file.Wiring),
        ("key of `[[blocks]]`", bgp_machine_file.Blocks),
    ],
)
def test_every_key_is_documented(heading: str, model: type[BaseModel], repository: Path) -> None:
    """The page's tables have every key with what the reader says of it, and no others."""
    page = (repository / "docs" / "bluegene.md").read_text(encoding="utf-8")
    table = page.split(f"| {heading} | meaning |\n|---|---|\n")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \|$", table, re.MULTILINE)
    tables = {"wiring", "blocks"} if model is bgp_machine_file.Description else set()
    fields = model.model_fields.items()
    assert rows == [(key, field.description) for key, field in fields if key not in tables]


def test_the_documented_machine_is_what_the_page_says(repository: Path) -> None:
    page = (repository / "docs" / "bluegene.md").read_text(encoding="utf-8")
    block = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert block is not None
    described = parse_bgp_machine(block[1], source="bluegene.md")
    assert (described.nodes, len(described.bgp_partitions)) == (8_192, 31)


def test_the_page_counts_intrepid(repository: Path) -> None:
    page = (repository / "docs" / "bluegene.md").read_text(encoding="utf-8")
    machine = intrepid()
    assert f"gives all {len(machine.bgp_partitions)} that Intrepid's jobs" in page
    pairs = int(machine.wiring_conflicts.sum()) // 2
    assert f"the same {pairs} pairs that conflict by wires alone" in page
