"""Small Blue Genes, made up and real ones, jobs for them, and policies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_sim.machines.bluegene.machine import BgpMachine, BgpPartition
from foretime_sim.machines.bluegene.machine_file import intrepid
from foretime_sim.policies.families import Backfill, with_settings
from foretime_sim.policies.guard import parse_guard
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Correction, EventOrder, Policy, Roles
from foretime_sim.workloads.workload import Workload
from hypothesis import strategies as st

from tests.support.workloads.scheduling_intervals import intervals

NODES = 4
"""Of a midplane of those that are made up."""


@st.composite
def made_up_machines(draw: st.DrawFn) -> BgpMachine:
    """Any sets of midplanes, joined by any wires; names in another order than the catalogue's."""
    midplanes = draw(st.integers(1, 6))
    count = draw(st.integers(1, 10))
    names = draw(st.permutations([f"P{number}" for number in range(count)]))
    parts = []
    for name in names:
        of = draw(st.sets(st.integers(0, midplanes - 1), min_size=1))
        wires = draw(st.frozensets(st.sampled_from("abcd"), max_size=2))
        nodes = draw(st.sampled_from([len(of) * NODES, len(of) * NODES, 1]))
        parts.append(BgpPartition(name, nodes, tuple(sorted(of)), wires=wires))
    return BgpMachine("made up", NODES, tuple(f"M{n}" for n in range(midplanes)), tuple(parts))


@st.composite
def parts_of_intrepid(draw: st.DrawFn) -> BgpMachine:
    """Some of Intrepid's bgp_partitions, in another order."""
    offered = intrepid().bgp_partitions
    chosen = draw(st.lists(st.integers(0, len(offered) - 1), min_size=1, max_size=40, unique=True))
    return replace(intrepid(), bgp_partitions=tuple(offered[index] for index in chosen))


machines = made_up_machines() | parts_of_intrepid()


@st.composite
def workloads(draw: st.DrawFn, machine: BgpMachine, *, exact: bool = False) -> Workload:
    """Jobs that a machine holds; exact ones run for as long as they ask for."""
    jobs = draw(st.integers(1, 25))

    def column(values: st.SearchStrategy[int]) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=jobs, max_size=jobs)), dtype=np.int64)

    gaps = column(st.sampled_from([0, 0, 1, 7, 30]))
    nodes = column(st.sampled_from(machine.sizes) | st.integers(1, machine.sizes[-1]))
    requested = column(st.integers(1, 300))
    runtimes = requested if exact else column(st.integers(0, 400))
    return Workload(
        "random", machine.nodes, None, np.arange(jobs), np.cumsum(gaps), nodes, runtimes,
        requested, machine=machine,
    )  # fmt: skip


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    event_order = draw(st.sampled_from(EventOrder))
    return Policy(
        order=draw(st.sampled_from(Order)),
        backfill=with_settings(
            draw(st.sampled_from([Backfill.NONE, Backfill.EASY, Backfill.EASY])),
            guard=parse_guard(draw(st.none() | st.integers(0, 200))),
        ),
        correction=draw(st.sampled_from(Correction)),
        roles=draw(st.builds(Roles, st.booleans(), st.booleans(), st.booleans())),
        event_order=event_order,
        scheduling_interval_s=draw(intervals(event_order)),
    )
