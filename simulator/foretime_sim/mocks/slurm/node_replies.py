"""What the mock Slurm's commands print of a machine of nodes, and of what jobs ask and have there.

Nodes are named after their groups, ``cpu.1``, ``cpu.2``, ...
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

from foretime_sim.engine.node_snapshot import HeldNodes
from foretime_sim.machines.machine import Machine, Selection
from foretime_sim.machines.reservations import NodeReservation
from foretime_sim.mocks.slurm.slurm_job import Submission
from foretime_sim.workloads.node_request import JobResources


class NodeReplies:
    """The words of one machine.

    Parameters
    ----------
    machine
        Nodes and slurm_partitions.
    reservations
        Of groups of nodes, on the mock's clock.
    """

    def __init__(self, machine: Machine, reservations: Sequence[NodeReservation] = ()) -> None:
        self._machine = machine
        self._counts_memory = machine.selection is Selection.CPU_MEMORY and any(
            group.memory_mib for group in machine.node_groups
        )
        self._reservations = tuple(reservations)
        self._of_group = {
            group.name: tuple(f"{group.name}.{number + 1}" for number in range(group.nodes))
            for group in machine.node_groups
        }
        self._names = tuple(self._named(self._of_group))
        self._nodes = "".join(self._node_lines())
        self._partitions = "".join(self._partition_lines())
        self._had: dict[int, tuple[dict[str, Any], list[int]]] = {}
        self._taken: set[int] = set()  # of nodes that are alike

    def _named(self, groups: Iterable[str]) -> list[str]:
        return [name for group in groups for name in self._of_group[group]]

    @property
    def default_partition(self) -> str:
        """Where jobs go that name none."""
        return self._machine.slurm_partitions[self._machine.default_partition].name

    @property
    def configuration(self) -> str:
        """Lines of ``scontrol show config``."""
        counted = "CR_CPU_MEMORY" if self._counts_memory else "CR_CPU"
        return f"SelectType              = select/cons_tres\nSelectTypeParameters    = {counted}\n"

    def nodes(self) -> str:
        """Give ``scontrol show node --oneliner``."""
        return self._nodes

    def _node_lines(self) -> Iterable[str]:
        for group in self._machine.node_groups:
            inside = [
                part.name
                for part in self._machine.slurm_partitions
                if group.name in part.node_groups
            ]
            gpus = f"gpu:{group.gpus}" if group.gpus else "(null)"
            for name in self._of_group[group.name]:
                yield (
                    f"NodeName={name} Arch=x86_64 CPUAlloc=0 CPUEfctv={group.cpus}"
                    f" CPUTot={group.cpus} AvailableFeatures={','.join(group.features) or '(null)'}"
                    f" Gres={gpus} RealMemory={group.memory_mib} State=IDLE Weight={group.weight}"
                    f" Partitions={','.join(inside)}\n"
                )

    def partitions(self) -> str:
        """Give ``scontrol show partition --oneliner``."""
        return self._partitions

    def _partition_lines(self) -> Iterable[str]:
        default = self.default_partition
        for part in self._machine.slurm_partitions:
            time = "UNLIMITED" if part.max_time_s is None else f"{-(-part.max_time_s // 60)}:00"
            nodes = "UNLIMITED" if part.max_nodes is None else part.max_nodes
            memory = part.default_memory_per_cpu_mib
            default_memory = f"DefMemPerCPU={memory}" if memory else "DefMemPerNode=UNLIMITED"
            yield (
                f"PartitionName={part.name} Default={'YES' if part.name == default else 'NO'}"
                f" QoS=N/A MaxNodes={nodes} MaxTime={time}"
                f" Nodes={','.join(self._named(part.node_groups))}"
                f" PriorityTier={part.priority_tier} {default_memory}"
                f" OverSubscribe={'EXCLUSIVE' if part.exclusive else 'NO'} State=UP\n"
            )

    def reservations(self, now: int) -> str:
        """Give those that have not ended, as ``--oneliner`` with epoch seconds does."""
        return "".join(
            f"ReservationName={each.name} StartTime={each.start} EndTime={each.end}"
            f" Nodes={','.join(self._named(each.node_groups))} PartitionName=(null)"
            f" Flags=SPEC_NODES State={'ACTIVE' if each.start <= now else 'INACTIVE'}\n"
            for each in self._reservations
            if each.end > now
        )

    def asked(self, submission: Submission) -> dict[str, Any]:
        """Give what a job asks of nodes, as ``squeue --json`` does."""
        asked = submission.resources or JobResources()
        per_task = asked.cpus_per_task or 1
        fields: dict[str, Any] = {
            "partition": ",".join(asked.slurm_partitions or (self.default_partition,)),
            "node_count": asked.nodes or 1,
            "max_nodes": asked.nodes or 0,
            "tasks": asked.tasks or max(submission.processors // per_task, 1),
            "cpus_per_task": per_task,
            "memory_per_node": asked.memory_per_node_mib or self._least_memory(asked),
            "memory_per_cpu": asked.memory_per_cpu_mib,
            "features": asked.constraint,
            "shared": ["none"] if asked.exclusive else [],
            "resv_name": asked.reservation or "",
        }
        if asked.gpus_per_node:
            fields["tres_per_node"] = f"gres:gpu:{asked.gpus_per_node}"
        if asked.node_groups is not None:
            others = [name for name in self._of_group if name not in asked.node_groups]
            fields["excluded_nodes"] = ",".join(self._named(others))
        return fields

    def _least_memory(self, asked: JobResources) -> int | None:
        """Give 1 MiB for a job that asks for no memory: to Slurm that would be all of a node."""
        names = asked.slurm_partitions or (self.default_partition,)
        part = self._machine.slurm_partitions[self._machine.partition_index(names[0])]
        says = asked.memory_per_cpu_mib or part.default_memory_per_cpu_mib
        return 1 if self._counts_memory and not says else None

    def had(
        self, running: Sequence[int], held_by: Callable[[Sequence[int]], HeldNodes]
    ) -> list[dict[str, Any]]:
        """Give what running jobs have, in their order, as ``squeue --json`` does.

        Parameters
        ----------
        running
            Their indices.
        held_by
            Gives what some of them have. A job keeps its nodes until it ends, so each is asked
            about once.
        """
        for gone in self._had.keys() - set(running):
            _, taken = self._had.pop(gone)
            self._taken.difference_update(taken)
        if new := [job for job in running if job not in self._had]:
            self._note(new, held_by(new))
        return [self._had[job][0] for job in running]

    def _note(self, jobs: Sequence[int], held: HeldNodes) -> None:
        first = self._machine.first_nodes
        rows: list[list[tuple[int, int, int, int]]] = [[] for _ in jobs]
        for job, node, nodes, cpus, memory, gpus in held.rows().tolist():
            group = bisect_right(first, node) - 1
            numbers: Iterable[int] = range(node, node + nodes)
            if self._machine.is_whole(group):  # of nodes that are alike only the number counts
                last = first[group] + self._machine.node_groups[group].nodes
                free = (at for at in range(first[group], last) if at not in self._taken)
                numbers = list(islice(free, nodes))
                self._taken.update(numbers)
            rows[job] += [(number, cpus, memory, gpus) for number in numbers]
        for job, has in zip(jobs, rows, strict=True):
            told = [(self._names[number], cpus, memory, gpus) for number, cpus, memory, gpus in has]
            fields = {
                "job_resources": {
                    "nodes": {
                        "count": len(told),
                        "list": ",".join(name for name, *_ in told),
                        "allocation": [
                            {"name": name, "cpus": {"count": cpus}, "memory": {"allocated": memory}}
                            for name, cpus, memory, _ in told
                        ],
                    }
                },
                "gres_detail": [f"gpu:{gpus}" if gpus else "" for *_, gpus in told],
            }
            self._had[job] = fields, [number for number, *_ in has]
