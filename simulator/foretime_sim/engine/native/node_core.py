"""Machines and requests as the native core takes them."""

from __future__ import annotations

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim import _core
from foretime_sim.engine.node_allocation import NodeAllocation
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import has_python
from foretime_sim.workloads.node_request import Request, counts_memory
from foretime_sim.workloads.resource_requests import check_all_fit, fit_requests
from foretime_sim.workloads.workload import Workload


def use_machine(
    core: _core.Engine, machine: Machine, policy: Policy, *, reserved: bool, record: bool
) -> None:
    """Give the core its nodes.

    Raises
    ------
    InputError
        If there are advance reservations, which are of processors of a flat pool, or a policy in
        Python, which sees a flat pool.
    """
    refuse_of_flat_pool(policy, reserved=reserved)
    groups = [core_group(machine, number) for number in range(len(machine.node_groups))]
    core.use_nodes(groups, [part.max_nodes_in_use for part in machine.slurm_partitions], record)


def core_group(machine: Machine, number: int) -> _core.NodeGroup:
    """Give a group of nodes as the core has it."""
    group, counted = machine.node_groups[number], counts_memory(machine, number)
    return _core.NodeGroup(
        nodes=group.nodes,
        cpus=group.cpus,
        memory=group.memory_mib if counted else 0,
        gpus=group.gpus,
        memory_size=0 if counted else group.memory_mib,
        weight=group.weight,
        whole=machine.is_whole(number),
    )


def refuse_of_flat_pool(policy: Policy, *, reserved: bool) -> None:
    """Refuse what only a flat pool of processors has; `use_machine` says what."""
    if reserved:
        raise InputError(
            "advance reservations are of a flat pool's processors: leave them out, or the machine"
        )
    if has_python(policy):
        raise InputError("policies in Python see a flat pool: take another, or no machine")
    policy.check_in(Place.NODES)


def core_request(request: Request) -> _core.ResourceRequest:
    """Give a request as the core has it.

    Examples
    --------
    >>> from foretime_sim.engine.native.node_core import core_request
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.workloads.node_request import JobResources, fit_request
    >>> request = fit_request(Machine.flat(8), JobResources(tasks=4), 4, 3600)
    >>> type(core_request(request)).__name__
    'ResourceRequest'
    """
    choices = [
        _core.PartitionChoice(
            slurm_partition=choice.slurm_partition,
            groups=list(choice.node_groups),
            most_nodes=choice.most_nodes,
            memory_per_task=choice.memory_per_task_mib,
            exclusive=choice.exclusive,
            closures=[
                _core.Closure(closure.start, closure.end, list(closure.node_groups))
                for closure in choice.closures
            ],
            groups_by_size=list(choice.groups_by_size),
        )
        for choice in request.choices
    ]
    return _core.ResourceRequest(
        tasks=request.tasks,
        cpus_per_task=request.cpus_per_task,
        nodes=request.nodes,
        memory_per_node=request.memory_per_node_mib,
        gpus_per_node=request.gpus_per_node,
        tier=request.priority_tier,
        choices=choices,
        chunks=request.chunks,
        place=request.place,
    )


def recorded_allocation(core: _core.Engine) -> NodeAllocation | None:
    """Give what was recorded; ``None`` if nothing was."""
    recorded = core.allocated()
    return NodeAllocation.of_rows(recorded) if len(recorded) else None


def add_requests(core: _core.Engine, workload: Workload) -> None:
    """Tell the core what each job of a workload asks for.

    Raises
    ------
    InputError
        If a job could never run.
    """
    fitted = fit_requests(workload)
    check_all_fit(workload, fitted)
    for request in fitted.requests:
        core.add_request(core_request(request))
    core.set_requests(fitted.request_of.astype(np.int64))
