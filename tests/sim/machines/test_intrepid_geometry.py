"""Intrepid's description gives what Intrepid really had: bgp_partitions, wires, and conflicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions
from foretime_sim.machines.bluegene.machine import BgpMachine, Links
from foretime_sim.machines.bluegene.machine_file import intrepid

COUNTS = {512: 82, 1_024: 81, 2_048: 21, 4_096: 27, 8_192: 8, 16_384: 4, 24_576: 1, 32_768: 2,
          40_960: 1}  # fmt: skip
"""How many bgp_partitions of each size Intrepid's jobs were scheduled on."""


@pytest.fixture(scope="module")
def real(bluegene: Callable[[str], Path]) -> BgpMachine:
    return read_cobalt_partitions(
        bluegene("intrepid-partitions.xml.gz"), bluegene("intrepid-schedulable.txt")
    )


def test_intrepid_has_the_sizes_of_the_paper() -> None:
    machine = intrepid()
    assert Counter(part.nodes for part in machine.bgp_partitions) == COUNTS
    assert machine.sizes == tuple(COUNTS)
    assert (machine.nodes, len(machine.midplane_names)) == (40_960, 80)
    assert machine.nodes * machine.cores_per_node == 163_840  # section II.B


def test_every_bgp_partition_is_the_real_one(real: BgpMachine) -> None:
    described = {part.name: part for part in intrepid().bgp_partitions}
    assert described.keys() == {part.name for part in real.bgp_partitions}
    assert real.midplane_names == intrepid().midplane_names
    for part in real.bgp_partitions:
        ours = described[part.name]
        assert (ours.nodes, ours.midplanes) == (part.nodes, part.midplanes), part.name
        assert ours.wires == part.wires, part.name
        # A mesh of one midplane's length needs no switch, nor does Cobalt list one for it.
        assert ours.links is part.links, part.name
        assert part.links is (Links.MESH if part.name.startswith("MESH") else Links.TORUS)


def test_every_conflict_is_the_real_one(real: BgpMachine) -> None:
    machine = intrepid()
    place = [machine.bgp_partition_index(part.name) for part in real.bgp_partitions]
    for relation in ("overlaps", "wiring_conflicts", "conflicts"):
        ours = getattr(machine, relation)[np.ix_(place, place)]
        np.testing.assert_array_equal(ours, getattr(real, relation), err_msg=relation)
    assert np.triu(machine.wiring_conflicts).sum() == 84


def test_wires_conflict_as_the_configuration_says_them(bluegene: Callable[[str], Path]) -> None:
    """Conflicts once more, from the file's own words and pair by pair."""
    import gzip
    import itertools
    import re

    with gzip.open(bluegene("intrepid-partitions.xml.gz"), "rt") as file:
        texts = re.findall(r"<Partition name='([^']+)'>(.*?)</Partition>", file.read(), re.DOTALL)
    listed = set(bluegene("intrepid-schedulable.txt").read_text().split())
    cards = {name: set(re.findall("NodeCard id='(.*?)'", text)) for name, text in texts}
    wires = {name: set(re.findall("Wire id='(.*?)'", text)) for name, text in texts}
    machine = intrepid()
    for a, b in itertools.combinations(sorted(listed), 2):
        i, j = machine.bgp_partition_index(a), machine.bgp_partition_index(b)
        overlap = bool(cards[a] & cards[b])
        assert machine.overlaps[i, j] == overlap, (a, b)
        assert machine.wiring_conflicts[i, j] == (bool(wires[a] & wires[b]) and not overlap), (a, b)


def test_the_whole_configuration_loads(bluegene: Callable[[str], Path]) -> None:
    """All 1,467, most of them parts of a midplane: those overlap by node cards."""
    machine = read_cobalt_partitions(bluegene("intrepid-partitions.xml.gz"))
    assert len(machine.bgp_partitions) == 1_467
    first, second, whole = (
        machine.bgp_partition_index(name)
        for name in ("ANL-R04-M0-N10-64", "ANL-R04-M0-N06-64", "ANL-R04-M0-512")
    )
    assert machine.bgp_partitions[first].nodes == 64
    assert not machine.conflicts[first, second]
    assert machine.overlaps[first, whole]
    assert machine.overlaps[second, whole]


def test_miras_configuration_is_read_whole(bluegene: Callable[[str], Path]) -> None:
    machine = read_cobalt_partitions(bluegene("mira-partitions.xml.gz"))
    assert (machine.name, machine.nodes, machine.cores_per_node) == ("mira", 49_152, 16)
    assert len(machine.bgp_partitions) == 294
    assert Counter(part.nodes for part in machine.bgp_partitions)[512] == 96
    everything = machine.bgp_partition_index("MIR-00000-7BFF1-49152")
    assert machine.overlaps[everything].all()
