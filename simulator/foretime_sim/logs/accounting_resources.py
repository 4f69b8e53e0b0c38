"""What accounting exports say of nodes, memory and GPUs that jobs asked for."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from foretime_sim.files.durations import is_missing
from foretime_sim.machines.machine import MAX_COUNT
from foretime_sim.workloads.job_log import labels_of, masked_column
from foretime_sim.workloads.resource_columns import ResourceRequests

MIB_PER_UNIT = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2, "P": 1024.0**3}
MEMORY = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<unit>[KMGTP]?)(?P<per>[nc]?)", re.ASCII)
PER_CPU_FLAG = 2**31
"""Slurm's mark for memory per CPU, which some versions print as part of the number."""

RESOURCE_FACTS = {
    "requested_nodes": "nodes asked for",
    "allocated_nodes": "nodes it got",
    "memory_per_node": "memory asked for on each node",
    "memory_per_cpu": "memory asked for with each CPU",
    "requested_memory": "memory asked for in all",
    "requested_gpus": "GPUs asked for in all",
    "allocated_gpus": "GPUs it got in all",
    "constraint": "features that its nodes must have, joined by &",
}
"""What can be known of a job's resources, by the name used in mappings."""
MEMORY_FACTS = ("memory_per_node", "memory_per_cpu", "requested_memory")
COUNT_FACTS = ("requested_nodes", "allocated_nodes", "requested_gpus", "allocated_gpus")


@dataclass(frozen=True, slots=True)
class Memory:
    """An amount of memory and what it is for: a ``node``, a ``cpu``, or the whole ``job``."""

    mib: int
    per: str


def parse_memory(word: str, mib_per_unit: float = 1.0) -> int | None:
    """Give MiB, rounded up, of ``4000``, ``4000M`` or ``62.50G``; ``None`` for a missing value.

    Parameters
    ----------
    word
        What the export has.
    mib_per_unit
        Of numbers without a unit.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    word = word.strip()
    if is_missing(word):
        return None
    match = MEMORY.fullmatch(word)
    if match is None or match["per"]:
        raise ValueError("not an amount of memory like 4000M or 62.5G")
    unit = MIB_PER_UNIT[match["unit"]] if match["unit"] else mib_per_unit
    return _checked(-(-float(match["value"]) * unit // 1))


def parse_requested_memory(word: str) -> Memory | None:
    """Read sacct's ReqMem: ``4000Mn`` per node, ``4000Mc`` per CPU, ``4000M`` for the job."""
    word = word.strip()
    if is_missing(word):
        return None
    match = MEMORY.fullmatch(word)
    if match is None:
        raise ValueError("not an amount of memory like 4000Mn, 4000Mc or 4000M")
    per = {"n": "node", "c": "cpu", "": "job"}[match["per"]]
    value = float(match["value"])
    if value >= PER_CPU_FLAG and match["unit"] == "M":
        value, per = value - PER_CPU_FLAG, "cpu"
    mib = _checked(-(-value * MIB_PER_UNIT[match["unit"] or "M"] // 1))
    return Memory(mib, per)


def parse_tres(word: str) -> dict[str, str]:
    """Read ``cpu=12,mem=48000M,node=1,gres/gpu=2`` as a mapping.

    Raises
    ------
    ValueError
        If a part is not of this form.
    """
    parts = {}
    for part in word.split(","):
        if not part.strip():
            continue
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError("not a list like cpu=12,mem=48000M,node=1")
        parts[name.strip()] = value.strip()
    return parts


def tres_count(name: str) -> Callable[[str], int | None]:
    """Give what reads a count from a list of trackable resources; ``None`` where it has none."""

    def read(word: str) -> int | None:
        tres = parse_tres(word)
        values = [value for key, value in tres.items() if key == name]
        if not values:  # gres/gpu:a100=2
            values = [value for key, value in tres.items() if key.startswith(f"{name}:")]
        return _checked(sum(parse_count(value) or 0 for value in values)) if values else None

    return read


def tres_memory(word: str) -> int | None:
    """Read the memory from a list of trackable resources, MiB; ``None`` where it has none."""
    return parse_memory(parse_tres(word).get("mem", ""))


def parse_count(word: str) -> int | None:
    """Read a whole number; ``None`` for a missing value, ValueError if it is none."""
    word = word.strip()
    if is_missing(word):
        return None
    try:
        value = float(word.replace("_", "?"))
    except ValueError:
        value = math.nan
    if not value >= 0 or value % 1:  # hundreds of digits are infinite, which has no remainder
        raise ValueError("not a whole number of 0 or more")
    return _checked(value)


def _checked(whole: float) -> int:
    if not whole <= MAX_COUNT:  # nan is what rounding makes of hundreds of digits
        raise ValueError(f"too large (at most {MAX_COUNT:,})")
    return int(whole)


def requests_of_facts(
    kept: Callable[[str], Sequence[object]], processors: Sequence[int | None]
) -> ResourceRequests | None:
    """Make a log's requests of what its columns say; ``None`` if they say nothing.

    A number of nodes is taken as asked for if the job got just as many, or if only one of the two
    is known. Memory for the whole job is shared out over its nodes, or over its CPUs where the
    number of nodes is not known; GPUs are shared out over its nodes.

    Parameters
    ----------
    kept
        Gives the values of a fact, ``None`` where the export says nothing.
    processors
        CPUs of each job.
    """
    nodes: list[int | None] = []
    per_node: list[int | None] = []
    per_cpu: list[int | None] = []
    gpus: list[int | None] = []
    columns = [
        kept(fact)
        for fact in ("requested_nodes", "allocated_nodes", "memory_per_node", "memory_per_cpu",
                     "requested_memory", "memory_request", "requested_gpus", "allocated_gpus")
    ]  # fmt: skip
    for cpus, row in zip(processors, zip(*columns, strict=True), strict=True):
        asked, got, node_memory, cpu_memory, total, said, asked_gpus, got_gpus = row
        count = _number(asked) or _number(got)
        agreed = count if count == (_number(got) or count) else None
        memory_of_node, memory_of_cpu = _number(node_memory), _number(cpu_memory)
        if isinstance(said, Memory) and memory_of_node is None and memory_of_cpu is None:
            if said.per == "node":
                memory_of_node = said.mib
            elif said.per == "cpu":
                memory_of_cpu = said.mib
            else:
                total = said.mib if total is None else total
        whole = _number(total)
        if whole is not None and memory_of_node is None and memory_of_cpu is None:
            if agreed is not None:
                memory_of_node = -(-whole // agreed)
            elif cpus:
                memory_of_cpu = -(-whole // cpus)
        wanted_gpus = _number(asked_gpus)
        wanted_gpus = _number(got_gpus) if wanted_gpus is None else wanted_gpus
        nodes.append(agreed)
        per_node.append(memory_of_node)
        per_cpu.append(memory_of_cpu)
        gpus.append(
            None if wanted_gpus is None else -(-wanted_gpus // (_number(got) or count or 1))
        )
    constraints = labels_of([str(word) if word else None for word in kept("constraint")])
    if constraints is None and not any(
        value is not None for column in (nodes, per_node, per_cpu, gpus) for value in column
    ):
        return None
    return ResourceRequests(
        nodes=masked_column(nodes),
        memory_per_node_mib=masked_column(per_node),
        memory_per_cpu_mib=masked_column(per_cpu),
        gpus_per_node=masked_column(gpus),
        constraints=constraints,
    )


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None
