"""``foretime machine``: look at the description of a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.machine_file import read_machine
from rich.console import Group

from foretime_sidecar.cli.frame.printable_text import say
from foretime_sidecar.cli.options.json_option import JsonTablesOption
from foretime_sidecar.cli.reports.machine_tables import group_table, partition_table
from foretime_sidecar.cli.reports.whole_tables import print_uncut
from foretime_sidecar.wording.counts import counted


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
    print_uncut(Group(group_table(described), "", partition_table(described), ""))
    say(
        f"{counted(described.nodes, 'node')}, {counted(described.cpus, 'CPU')}; "
        f"counted: {described.selection.value}"
    )


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
