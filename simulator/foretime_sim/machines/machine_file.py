"""A machine's description as a TOML file, and as the replies of ``scontrol`` that a site has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.near_names import nearest
from foretime_sim.files.toml_keys import (
    NAMES,
    SECONDS,
    WHOLE_NUMBER,
    YES_OR_NO,
    Key,
    lines_of,
    table_name,
    values_of,
)
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.machine import Machine, NodeGroup, Selection, SlurmPartition

GROUP_KEYS = {
    "nodes": Key("nodes", WHOLE_NUMBER, "how many nodes"),
    "cpus": Key("cpus", WHOLE_NUMBER, "CPUs of each"),
    "memory_mib": Key("memory_mib", WHOLE_NUMBER, "MiB of each; not counted if left out"),
    "gpus": Key("gpus", WHOLE_NUMBER, "GPUs of each; none if left out"),
    "features": Key("features", NAMES, "what a job's constraint may name"),
    "weight": Key("weight", WHOLE_NUMBER, "small weights are given out first; 1 if left out"),
}
"""Keys of ``[node_groups.NAME]``."""

PARTITION_KEYS = {
    "node_groups": Key("node_groups", NAMES, "the groups whose nodes it may use"),
    "priority_tier": Key("priority_tier", WHOLE_NUMBER, "a higher tier comes first; else 1"),
    "max_time": Key("max_time_s", SECONDS, "longest requested time, as text: [D-]HH:MM:SS"),
    "max_nodes": Key("max_nodes", WHOLE_NUMBER, "most nodes of a job"),
    "max_cpus": Key("max_cpus", WHOLE_NUMBER, "most CPUs of a job"),
    "max_nodes_in_use": Key("max_nodes_in_use", WHOLE_NUMBER, "most nodes of its running jobs"),
    "default_memory_per_cpu_mib": Key(
        "default_memory_per_cpu_mib", WHOLE_NUMBER, "for jobs that ask for no memory; else 0"
    ),
    "exclusive": Key("exclusive", YES_OR_NO, "jobs get whole nodes"),
    "default": Key("default", YES_OR_NO, "where jobs go that name none; else the first"),
}
"""Keys of ``[slurm_partitions.NAME]``."""


def read_machine(path: Path | str) -> Machine:
    """Read a machine's description.

    Raises
    ------
    InputError
        If the file can't be read or says something impossible; names file, table, key and value.
    """
    return parse_machine(read_text(Path(path), what="TOML file"), source=str(path))


def parse_machine(text: str, *, source: str) -> Machine:
    """Make a machine of the text of a TOML file; see `read_machine`."""
    tables = parse_toml(text, source)
    known = ("selection", "node_groups", "slurm_partitions")
    for name in tables:
        if name not in known:
            raise InputError(f"{source}: {name!r} is unknown{nearest(name, known)}")
    try:
        return Machine(
            read_groups(tables),
            tuple(
                SlurmPartition(name=name, **values)
                for name, values in read_tables(
                    tables, "slurm_partitions", PARTITION_KEYS, ("node_groups",)
                )
            ),
            read_selection(tables),
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def read_groups(tables: Mapping[str, Any]) -> tuple[NodeGroup, ...]:
    """Read the tables ``[node_groups.NAME]``; InputError names table, key and value."""
    read = read_tables(tables, "node_groups", GROUP_KEYS, ("nodes", "cpus"))
    return tuple(NodeGroup(name=name, **values) for name, values in read)


def read_selection(tables: Mapping[str, Any]) -> Selection:
    """Read ``selection``; InputError if there is no such thing."""
    name = tables.get("selection", Selection.CPU_MEMORY.value)
    for choice in Selection:
        if name == choice.value:
            return choice
    raise InputError(f"selection is {name!r}: use {' or '.join(c.value for c in Selection)}")


def read_tables(
    tables: Mapping[str, Any], kind: str, keys: Mapping[str, Key], needed: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """Read the tables ``[kind.NAME]``, at least one; InputError names table, key and value."""
    found = tables.get(kind, {})
    if not isinstance(found, dict) or not found:
        raise InputError(f"there is no table [{kind}.NAME]: add at least one")
    return [
        (name, values_of(table, keys, f"[{kind}.{name}]", needed)) for name, table in found.items()
    ]


def format_machine(machine: Machine) -> str:
    """Write a machine as the TOML that `parse_machine` reads, without limits that are not set."""
    lines = [f'selection = "{machine.selection.value}"']
    for group in machine.node_groups:
        lines += ["", *group_lines(group)]
    for part in machine.slurm_partitions:
        header = table_name("slurm_partitions", part.name)
        lines += ["", f"[{header}]", *lines_of(part, PARTITION_KEYS)]
    return "\n".join(lines) + "\n"


def group_lines(group: NodeGroup) -> list[str]:
    """Write the table of a group of nodes."""
    return [f"[{table_name('node_groups', group.name)}]", *lines_of(group, GROUP_KEYS)]
