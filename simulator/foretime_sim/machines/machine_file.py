"""A machine's description as a TOML file, and as the replies of ``scontrol`` that a site has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretime_estimators.jobs.errors import InputError

from foretime_sim.files.compressed_files import read_text
from foretime_sim.files.durations import parse_duration
from foretime_sim.files.toml_text import parse_toml
from foretime_sim.machines.machine import (
    Machine,
    NodeGroup,
    Selection,
    SlurmPartition,
    format_limit,
    nearest,
)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a table: which attribute it gives, and how its value is read."""

    attribute: str
    read: Callable[[object], Any]
    meaning: str


def _whole_number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("give a whole number")
    return value


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("give true or false")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise TypeError('give a list of names, like ["a", "b"]')
    return tuple(value)


def _time(value: object) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else None
    if seconds is None:
        raise ValueError('give a time as text, like "1-12:00:00"')
    return seconds


GROUP_KEYS = {
    "nodes": Key("nodes", _whole_number, "how many nodes"),
    "cpus": Key("cpus", _whole_number, "CPUs of each"),
    "memory_mib": Key("memory_mib", _whole_number, "MiB of each; not counted if left out"),
    "gpus": Key("gpus", _whole_number, "GPUs of each; none if left out"),
    "features": Key("features", _names, "what a job's constraint may name"),
    "weight": Key("weight", _whole_number, "small weights are given out first; 1 if left out"),
}
"""Keys of ``[node_groups.NAME]``."""

PARTITION_KEYS = {
    "node_groups": Key("node_groups", _names, "the groups whose nodes it may use"),
    "priority_tier": Key("priority_tier", _whole_number, "a higher tier comes first; else 1"),
    "max_time": Key("max_time_s", _time, "longest requested time, as text: [D-]HH:MM:SS"),
    "max_nodes": Key("max_nodes", _whole_number, "most nodes of a job"),
    "max_cpus": Key("max_cpus", _whole_number, "most CPUs of a job"),
    "max_nodes_in_use": Key("max_nodes_in_use", _whole_number, "most nodes of its running jobs"),
    "default_memory_per_cpu_mib": Key(
        "default_memory_per_cpu_mib", _whole_number, "for jobs that ask for no memory; else 0"
    ),
    "exclusive": Key("exclusive", _yes_or_no, "jobs get whole nodes"),
    "default": Key("default", _yes_or_no, "where jobs go that name none; else the first"),
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
        groups = [
            NodeGroup(name=name, **values)
            for name, values in _tables(tables, "node_groups", GROUP_KEYS, ("nodes", "cpus"))
        ]
        partitions = [
            SlurmPartition(name=name, **values)
            for name, values in _tables(
                tables, "slurm_partitions", PARTITION_KEYS, ("node_groups",)
            )
        ]
        return Machine(tuple(groups), tuple(partitions), _selection(tables))
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _selection(tables: Mapping[str, Any]) -> Selection:
    name = tables.get("selection", Selection.CPU_MEMORY.value)
    for choice in Selection:
        if name == choice.value:
            return choice
    raise InputError(f"selection is {name!r}: use {' or '.join(c.value for c in Selection)}")


def _tables(
    tables: Mapping[str, Any], kind: str, keys: Mapping[str, Key], needed: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    """Read the tables ``[kind.NAME]``."""
    found = tables.get(kind, {})
    if not isinstance(found, dict) or not found:
        raise InputError(f"there is no table [{kind}.NAME]: add at least one")
    read = []
    for name, table in found.items():
        where = f"[{kind}.{name}]"
        if not isinstance(table, dict):
            raise InputError(f"{kind}.{name} is {table!r}: make it a table {where}")
        values = {}
        for key, value in table.items():
            if key not in keys:
                raise InputError(f"{where}: {key!r} is unknown{nearest(key, keys)}")
            try:
                values[keys[key].attribute] = keys[key].read(value)
            except (TypeError, ValueError) as error:
                raise InputError(f"{where}: {key} is {value!r}: {error}") from None
        for key in needed:
            if key not in table:
                raise InputError(f"{where}: {key} is missing ({keys[key].meaning})")
        read.append((name, values))
    return read


def format_machine(machine: Machine) -> str:
    """Write a machine as the TOML that `parse_machine` reads, without limits that are not set."""
    lines = [f'selection = "{machine.selection.value}"']
    for group in machine.node_groups:
        lines += ["", f"[node_groups.{_quoted(group.name)}]", *_lines(group, GROUP_KEYS)]
    for part in machine.slurm_partitions:
        lines += ["", f"[slurm_partitions.{_quoted(part.name)}]", *_lines(part, PARTITION_KEYS)]
    return "\n".join(lines) + "\n"


def _lines(table: NodeGroup | SlurmPartition, keys: Mapping[str, Key]) -> list[str]:
    lines = []
    for key, how in keys.items():
        value = getattr(table, how.attribute)
        if value is None or value is False or value == ():
            continue
        if how.read is _time:
            text = f'"{format_limit(value)}"'
        elif isinstance(value, tuple):
            text = "[" + ", ".join(_quoted(name) for name in value) + "]"
        else:
            text = str(value).lower()
        lines.append(f"{key} = {text}")
    return lines


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
