"""Cobalt's configurations: what is read of them, and their faults by name."""

from __future__ import annotations

from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.bluegene.cobalt_partitions import read_cobalt_partitions
from foretime_sim.machines.bluegene.machine import Links


def partition(name: str, midplanes: list[str], wires: list[str], cards: int = 16) -> str:
    lines = [f"<NodeCard id='{m}-N{card:02}' />" for m in midplanes for card in range(cards)]
    lines += [f"<Wire id='{wire}' />" for wire in wires] + [f"<Switch id='X_{midplanes[0]}' />"]
    return f"<Partition name='{name}'>{''.join(lines)}</Partition>"


def written(tmp_path: Path, *partitions: str, head: str = "") -> Path:
    path = tmp_path / "small-partitions.xml"
    path.write_text(f"<BG>{head}<PartitionList>{''.join(partitions)}</PartitionList></BG>")
    return path


def ports(midplane: str) -> list[str]:
    return [f"{midplane}{axis}_{midplane}" for axis in "XYZ"]


def test_a_small_configuration_gives_nodes_links_and_conflicts(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        partition("both", ["R00-M0", "R00-M1"], [*ports("R00-M0"), *ports("R00-M1"), "cable"]),
        partition("other", ["R01-M0"], [*ports("R01-M0"), "cable"]),
        partition("open", ["R01-M0"], []),
        partition("low", ["R00-M0"], [], cards=4),
        partition("alike", ["R00-M0"], [], cards=2),
    )
    machine = read_cobalt_partitions(path)
    assert (machine.name, machine.nodes, machine.cores_per_node) == ("small", 1_536, 4)
    both, other, mesh, low, _ = machine.bgp_partitions
    assert (both.nodes, both.midplanes, both.links) == (1_024, (0, 1), Links.TORUS)
    assert (other.links, mesh.links, low.links) == (Links.TORUS, Links.MESH, None)
    assert (low.nodes, low.midplanes, len(low.node_cards)) == (128, (0,), 4)
    assert machine.wiring_conflicts[0].tolist() == [False, True, False, False, False]
    assert machine.overlaps[0].tolist() == [True, False, False, True, True]
    assert machine.overlaps[3, 4]  # they share two node cards


def test_only_the_schedulable_ones_are_taken(tmp_path: Path) -> None:
    path = written(tmp_path, *(partition(name, ["R00-M0"], []) for name in ("a", "b", "c")))
    assert [part.name for part in read_cobalt_partitions(path, ["c", "a"]).bgp_partitions] == [
        "a", "c",
    ]  # fmt: skip
    listed = tmp_path / "list.txt"
    listed.write_text("b\nd\n")
    with pytest.raises(InputError, match=r"list\.txt: name 2: .* has no partition 'd'"):
        read_cobalt_partitions(path, listed)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<BG><Part", "not XML"),
        ("<Machine/>", "begins with <Machine>, not <BG>"),
        ("<BG></BG>", "has no Partition"),
        ("<BG><BGType>bgl</BGType></BG>", "BGType is 'bgl': use one of bgp, bgq"),
        ("<BG><Partition/></BG>", "Partition None: give each its own name"),
        ("<BG><Partition name='a'/></BG>", "Partition a has no NodeCard"),
        ("<BG><Partition name='a'><NodeCard/></Partition></BG>", "Partition a: a NodeCard has no"),
        ("<BG><Partition name='a'><NodeCard id='R0'/></Partition></BG>", "NodeCard 'R0': expected"),
        ("<BG>" + partition("a", ["R00-M0"], []) * 2 + "</BG>", "Partition 'a': give each its own"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><BG>&a;</BG>", "declares entities"),
    ],
)
def test_a_fault_is_refused_by_what_it_is(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "faulty.xml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_cobalt_partitions(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
