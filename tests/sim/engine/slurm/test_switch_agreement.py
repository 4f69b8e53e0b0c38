"""The native core chooses nodes by switches as the specification does."""

from __future__ import annotations

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.switches import Switch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sim.engine.slurm.test_slurm_agreement import check_same
from tests.support.slurm.loop_settings import VERSIONS
from tests.support.slurm.slurm_sites import switches
from tests.support.workloads.node_workloads import workloads

WITHOUT_BACKFILL = SlurmParameters(backfill=False)


@st.composite
def wide_machines(draw: st.DrawFn) -> Machine:
    """Many groups of nodes, of which some are alike, in one slurm_partition."""
    groups = tuple(
        NodeGroup(f"g{number}", nodes, cpus, weight=weight)
        for number, (nodes, cpus, weight) in enumerate(
            draw(
                st.lists(
                    st.tuples(st.integers(1, 5), st.integers(1, 4), st.sampled_from([1, 1, 5])),
                    min_size=2,
                    max_size=7,
                )
            )
        )
    )
    return Machine(groups, (SlurmPartition("all", tuple(group.name for group in groups)),))


@st.composite
def trees(draw: st.DrawFn, machine: Machine) -> tuple[Switch, ...]:
    """A tree of three levels with a leaf for each group, in some order."""
    found = [Switch(f"leaf {group.name}", (group.name,)) for group in machine.node_groups]
    rows: dict[int, list[str]] = {}
    for leaf in found:
        rows.setdefault(draw(st.integers(0, 3)), []).append(leaf.name)
    found += [Switch(f"row {row}", switches=tuple(names)) for row, names in rows.items()]
    found.append(Switch("top", switches=tuple(f"row {row}" for row in rows)))
    return tuple(draw(st.permutations(found)))


@settings(max_examples=150)
@given(st.data(), VERSIONS)
def test_trees_are_followed_alike(data: st.DataObject, version: tuple[int, int]) -> None:
    machine = data.draw(wide_machines())
    site = SlurmSite(machine, version, WITHOUT_BACKFILL, switches=data.draw(trees(machine)))
    check_same(data.draw(workloads(machine, most_jobs=15)), site)


@settings(max_examples=100)
@given(st.data(), VERSIONS)
def test_odd_switches_are_followed_alike(data: st.DataObject, version: tuple[int, int]) -> None:
    machine = data.draw(wide_machines())
    groups = [group.name for group in machine.node_groups]
    some = data.draw(switches(groups).filter(bool))
    site = SlurmSite(machine, version, WITHOUT_BACKFILL, switches=some)
    check_same(data.draw(workloads(machine, most_jobs=15)), site)
