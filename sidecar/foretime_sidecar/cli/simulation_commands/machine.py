"""``foretime machine``: look at the description of a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from foretime_sim.files.toml_keys import format_time
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.machine_file import read_machine
from rich.console import Group
from rich.table import Table

from foretime_sidecar.cli.options.json_option import JsonTablesOption
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.wording.numbers import counted


def machine(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="TOML file.")],
    as_json: JsonTablesOption = False,
) -> None:
    """Show the nodes and partitions that a file for --machine describes.

    Example: [bold]foretime machine cluster.toml[/bold]
    """
    described = read_machine(file)
    if as_json:
        typer.echo(json.dumps(_as_json(described), indent=2))
        return
    print_uncut(Group(_groups(described), "", _partitions(described), ""))
    typer.echo(
        f"{counted(described.nodes, 'node')}, {counted(described.cpus, 'CPU')}; "
        f"counted: {described.selection.value}"
    )


def _table(title: str) -> Table:
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        padding=(0, 2, 0, 0),
    )


def _groups(described: Machine) -> Table:
    table = _table("Nodes")
    for name in ("group", "features"):
        table.add_column(name, overflow="fold")
    for name in ("nodes", "CPUs", "MiB", "GPUs", "weight"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in described.node_groups:
        memory = f"{group.memory_mib:,}" if group.memory_mib else "not counted"
        numbers = (f"{group.nodes:,}", str(group.cpus), memory, str(group.gpus), str(group.weight))
        table.add_row(group.name, ", ".join(group.features), *numbers)
    return table


def _partitions(described: Machine) -> Table:
    table = _table("Slurm partitions")
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


def _as_json(described: Machine) -> dict[str, Any]:
    return {
        "selection": described.selection.value,
        "nodes": described.nodes,
        "cpus": described.cpus,
        "node_groups": [
            {
                "name": group.name,
                "nodes": group.nodes,
                "cpus": group.cpus,
                "memory_mib": group.memory_mib or None,
                "gpus": group.gpus,
                "features": list(group.features),
                "weight": group.weight,
            }
            for group in described.node_groups
        ],
        "slurm_partitions": [
            {
                "name": part.name,
                "node_groups": list(part.node_groups),
                "priority_tier": part.priority_tier,
                "max_time_s": part.max_time_s,
                "max_nodes": part.max_nodes,
                "max_cpus": part.max_cpus,
                "max_nodes_in_use": part.max_nodes_in_use,
                "default_memory_per_cpu_mib": part.default_memory_per_cpu_mib,
                "exclusive": part.exclusive,
                "default": index == described.default_partition,
            }
            for index, part in enumerate(described.slurm_partitions)
        ],
    }
