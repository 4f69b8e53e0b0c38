"""Blue Genes as the native core takes them."""

from __future__ import annotations

import numpy as np
from foretime_estimators.arrays import Int32Array, Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.native.node_core import refuse_of_flat_pool
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.policies.policy import Policy


def use_bgp_machine(
    core: _core.Engine, machine: BgpMachine, policy: Policy, *, reserved: bool
) -> None:
    """Give the core its bgp_partitions.

    Raises
    ------
    InputError
        If there are advance reservations or a policy in Python, which are for a flat pool, or a
        backfilling policy that there is not on a Blue Gene.
    """
    check_bgp_policy(machine, policy)
    refuse_of_flat_pool(policy, reserved=reserved)
    order = by_size_and_name(machine)
    nodes = np.array([machine.bgp_partitions[index].nodes for index in order], dtype=np.int64)
    core.use_bgp(nodes, np.ascontiguousarray(machine.conflicts[np.ix_(order, order)]))


def check_bgp_policy(machine: BgpMachine, policy: Policy) -> None:
    """Check that a Blue Gene can be scheduled by a policy.

    Raises
    ------
    InputError
        For any backfilling but none and easy with a depth of 1.
    """
    if not policy.backfill.on_blue_genes:
        raise InputError(
            f"backfilling is {policy.backfill.described}: on a Blue Gene ({machine.name}) use easy"
            " (draining for the head job) or none"
        )


def by_size_and_name(machine: BgpMachine) -> Int64Array:
    """Give the indices of the bgp_partitions as the core has them: by size, then by name."""
    parts = machine.bgp_partitions
    order = sorted(range(len(parts)), key=lambda index: (parts[index].nodes, parts[index].name))
    return np.array(order, dtype=np.int64)


def bgp_partitions(core: _core.Engine, machine: BgpMachine) -> Int32Array:
    """Give the index of the bgp_partition on which each job ran, in the machine's own order."""
    return by_size_and_name(machine).astype(np.int32)[core.bgp_partitions()]
