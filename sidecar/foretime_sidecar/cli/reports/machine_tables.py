"""A machine's nodes and slurm_partitions as tables."""

from __future__ import annotations

from foretime_sim.files.toml_keys import format_time
from foretime_sim.machines.machine import Machine
from rich.table import Table


def plain_table(title: str) -> Table:
    """Give a table without rules, to which columns are added."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )


def group_table(described: Machine) -> Table:
    """Give the nodes of a machine."""
    table = plain_table("Nodes")
    for name in ("group", "features"):
        table.add_column(name, overflow="fold")
    for name in ("nodes", "CPUs", "MiB", "GPUs", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in described.node_groups:
        memory = f"{group.memory_mib:,}" if group.memory_mib else "not counted"
        numbers = (f"{group.nodes:,}", str(group.cpus), memory, str(group.gpus), str(group.weight))
        table.add_row(group.name, ", ".join(group.features), *numbers)
    return table


def partition_table(described: Machine) -> Table:
    """Give the slurm_partitions of a machine."""
    table = plain_table("Slurm partitions")
    for name in ("\nname", "\nnode groups"):
        table.add_column(name, overflow="fold")
    limits = ("\ntier", "max\ntime", "max\nnodes", "max\nCPUs", "nodes\nin use", "MiB per\nCPU")
    for name in limits:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("", overflow="fold")

    def limit(value: int | None) -> str:
        return "" if value is None else f"{value:,}"

    for index, part in enumerate(described.slurm_partitions):
        marks = ["default"] if index == described.default_partition else []
        marks += ["exclusive"] if part.exclusive else []
        table.add_row(
            part.name,
            ", ".join(part.node_groups),
            str(part.priority_tier),
            "" if part.max_time_s is None else format_time(part.max_time_s),
            limit(part.max_nodes),
            limit(part.max_cpus),
            limit(part.max_nodes_in_use),
            limit(part.default_memory_per_cpu_mib),
            ", ".join(marks),
        )
    return table
