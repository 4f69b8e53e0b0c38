"""Blue Gene/P machines from descriptions: catalogue, wires and conflicts."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import numpy as np
import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sim.machines.bluegene.geometry import Line
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition, Links
from foretime_sim.machines.bluegene.machine_file import intrepid, parse_bgp_machine
from hypothesis import given
from hypothesis import strategies as st

from tests.support.workloads.bgp_descriptions import JUGENE, SURVEYOR, TWO_ROWS, descriptions


def machine(text: str) -> BgpMachine:
    return parse_bgp_machine(text, source="made.toml")


def conflicting_pairs(described: BgpMachine) -> set[tuple[str, str]]:
    names = [part.name for part in described.bgp_partitions]
    return {(names[i], names[j]) for i, j in np.argwhere(np.triu(described.wiring_conflicts))}


def test_one_rack_has_the_partitions_of_its_midplanes() -> None:
    described = machine(SURVEYOR)
    assert (described.nodes, described.sizes) == (1_024, (512, 1_024))
    assert [(part.name, part.midplanes, len(part.wires)) for part in described.bgp_partitions] == [
        ("TORUS-R00-M0-512", (0,), 6),  # its switches in X, Y, Z: there and back
        ("TORUS-R00-M1-512", (1,), 6),
        ("MESH-R00-M0-512", (0,), 0),
        ("MESH-R00-M1-512", (1,), 0),
        ("TORUS-R00-1024", (0, 1), 14),  # and two cables in Z
        ("MESH-R00-1024", (0, 1), 6),  # switches and cables in Z alone
    ]
    assert not described.wiring_conflicts.any()


def test_eight_racks_conflict_by_overlap_and_by_wires() -> None:
    """2 x 2 x 4 midplanes, a ring in each line."""
    described = machine(TWO_ROWS)
    assert Counter(part.nodes for part in described.bgp_partitions) == {
        512: 16, 1_024: 8, 2_048: 4, 4_096: 2, 8_192: 1,
    }  # fmt: skip
    # The two racks of a line in Z want its one ring; longer ones share no line with one another.
    assert conflicting_pairs(described) == {
        ("TORUS-R00-1024", "TORUS-R01-1024"),
        ("TORUS-R02-1024", "TORUS-R03-1024"),
        ("TORUS-R10-1024", "TORUS-R11-1024"),
        ("TORUS-R12-1024", "TORUS-R13-1024"),
    }
    row = described.bgp_partitions[described.bgp_partition_index("TORUS-R10-R13-4096")]
    assert row.midplanes == tuple(range(8, 16))
    assert row.shape == (1, 2, 4)


def test_nine_rows_have_pairs_of_rows_at_any_begin() -> None:
    described = machine(JUGENE)
    assert described.nodes == 73_728
    counts = Counter(part.nodes for part in described.bgp_partitions)
    # Eight pairs of rows: two do not divide nine, so they may begin anywhere.
    assert counts == {512: 144, 1_024: 72, 2_048: 36, 4_096: 18, 8_192: 9, 16_384: 8, 32_768: 6,
                      73_728: 1}  # fmt: skip


def test_extra_cables_let_two_run_on_a_line() -> None:
    """Rows 0 and 1 beside rows 2 to 4 of Intrepid: section II.A's exception for X."""
    described = intrepid()
    first, others, across = (
        described.bgp_partition_index(name)
        for name in ("ANL-R00-R17-16384", "ANL-R20-R47-24576", "ANL-R30-R47-16384")
    )
    assert not described.conflicts[first, others]
    assert not described.conflicts[first, across]
    ring = Line((0, 2, 4, 3, 1))
    extra = Line((0, 2, 4, 3, 1), ((0, 1), (2, 3), (3, 2)))
    assert set(ring.torus_cables(frozenset({0, 1}))) == set(ring.cables)
    assert set(extra.torus_cables(frozenset({0, 1}))) == {(0, 1), (1, 0)}
    # Rows 3 and 4 pass row 2, whose own midplanes stay free.
    assert set(extra.torus_cables(frozenset({3, 4}))) == {(2, 4), (4, 3), (3, 2), (2, 3)}


def lines(described: BgpMachine) -> dict[str, set[frozenset[str]]]:
    """Find the lines of each dimension: midplanes that cables of any bgp_partition join."""
    found = {}
    for axis in "XYZ":
        groups = {frozenset({name}) for name in described.midplane_names}
        for part in described.bgp_partitions:
            for wire in part.wires:
                ends = wire.split(f"{axis}_")
                if wire[0] == axis and len(ends) == 3:
                    joined = {group for group in groups if group & set(ends)}
                    groups = (groups - joined) | {frozenset().union(*joined)}
        found[axis] = groups
    return found


@given(text=descriptions(extra=False))
def test_one_ring_serves_one_torus_at_a_time(text: str) -> None:
    """Section II.A's rule for lines without extra wiring, told without looking at single wires.

    Two without a common midplane conflict exactly where both are longer than one midplane on a line
    that they share, unless both are meshes: those use the cables between their own midplanes.
    """
    described = machine(text)
    of_axis = lines(described)
    for (i, a), (j, b) in itertools.combinations(enumerate(described.bgp_partitions), 2):
        names = [{described.midplane_names[m] for m in part.midplanes} for part in (a, b)]
        apart = not set(a.midplanes) & set(b.midplanes)
        shared = any(
            len(line & names[0]) > 1 and len(line & names[1]) > 1
            for groups in of_axis.values()
            for line in groups
        )
        torus = Links.TORUS in (a.links, b.links)
        assert described.wiring_conflicts[i, j] == (apart and shared and torus), (a, b)


@given(text=descriptions(), seed=st.integers(0, 2**32))
def test_what_runs_together_shares_nothing(text: str, seed: int) -> None:
    described = machine(text)
    conflicts = described.conflicts
    np.testing.assert_array_equal(conflicts, conflicts.T)
    assert described.overlaps.diagonal().all()
    assert not (described.overlaps & described.wiring_conflicts).any()
    order = list(range(len(described.bgp_partitions)))
    random.Random(seed).shuffle(order)
    running: list[int] = []
    for index in order:
        if not conflicts[index, running].any():
            running.append(index)
    parts = [described.bgp_partitions[index] for index in running]
    midplanes = [midplane for part in parts for midplane in part.midplanes]
    wires = [wire for part in parts for wire in part.wires]
    assert len(set(midplanes)) == len(midplanes)
    assert len(set(wires)) == len(wires)
    for waiting in set(order) - set(running):  # and what waits does so for a reason
        part = described.bgp_partitions[waiting]
        assert set(part.midplanes) & set(midplanes) or part.wires & set(wires)


@given(data=st.data(), ring=st.integers(2, 6).flatmap(lambda n: st.permutations(range(n))))
def test_a_torus_takes_the_shortest_closed_route(data: st.DataObject, ring: list[int]) -> None:
    """All orders of all sets of switches, tried one by one."""
    length = len(ring)
    pairs = [(a, b) for a in range(length) for b in range(length) if a != b]
    plain = Line(tuple(ring))
    free = [pair for pair in pairs if pair not in plain.cables]
    extra = data.draw(st.lists(st.sampled_from(free), unique=True, max_size=4)) if free else []
    line = Line(tuple(ring), tuple(extra))
    group = frozenset(data.draw(st.sets(st.integers(0, length - 1), min_size=2)))
    cables = set(line.cables)

    def closed(order: tuple[int, ...]) -> bool:
        return all(pair in cables for pair in zip(order, order[1:] + order[:1], strict=True))

    routes = {
        frozenset(order)
        for count in range(len(group), length + 1)
        for order in itertools.permutations(range(length), count)
        if group <= set(order) and closed(order)
    }
    fewest = min(map(len, routes))
    allowed = [
        {(a, b) for a, b in cables if a in touched and b in touched}
        for touched in routes
        if len(touched) == fewest
    ]
    assert set(line.torus_cables(group)) in allowed


def test_a_mesh_passes_no_midplane() -> None:
    line = Line((0, 1, 3, 2))
    assert line.mesh_cables(frozenset({0, 1})) == ((0, 1),)
    with pytest.raises(InputError, match="would pass other midplanes"):
        line.mesh_cables(frozenset({0, 3}))


def test_arrays_are_read_only() -> None:
    described = intrepid()
    for array in (described.overlaps, described.wiring_conflicts, described.conflicts):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = False


def test_an_unknown_bgp_partition_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="did you mean 'ANL-R00-R07-8192'"):
        intrepid().bgp_partition_index("ANL-R00-R07-8129")


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((), "there are no partitions"),
        ((BgpPartition("a", 512, (0,)), BgpPartition("a", 512, (1,))), "'a' is there twice"),
        ((BgpPartition("a", 512, (2,)),), "give some of 0 to 1"),
        ((BgpPartition("a", 512, ()),), "give some of 0 to 1"),
        ((BgpPartition("a", 1_024, (1, 0)),), "don't ascend"),
        ((BgpPartition("a", 1_024, (0,)),), "1024 nodes on 1 midplanes of 512"),
    ],
)
def test_an_impossible_catalogue_is_refused(parts: tuple[BgpPartition, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BgpMachine("m", 512, ("R00-M0", "R00-M1"), parts)


def test_sizes_alone_give_what_the_page_says_of_intrepid() -> None:
    """What geometry alone offers on Intrepid's floor: docs/bluegene.md says so."""
    text = """
    name = "floor"
    rows = 5
    racks_per_row = 8
    racks_per_z_line = 2
    mirrored_rows = [1, 2]
    sizes = [512, 1024, 2048, 4096, 8192, 16384, 24576, 32768, 40960]
    """
    counts = Counter(part.nodes for part in machine(text).bgp_partitions)
    assert list(counts.values()) == [80, 40, 20, 10, 5, 4, 3, 2, 1]
    real = {part.midplanes for part in intrepid().bgp_partitions}
    ours = {part.midplanes for part in machine(text).bgp_partitions}
    assert len(ours - real) == 3  # rows 1 and 2, and two of three rows
