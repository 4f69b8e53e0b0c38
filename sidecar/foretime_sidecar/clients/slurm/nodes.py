"""Pure parsers of Slurm's nodes and slurm_partitions, and of what jobs ask and have of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from foretime_estimators.jobs.errors import SchedulerError

from foretime_sidecar.clients.cluster import (
    AskedNodes,
    Cluster,
    ClusterNode,
    ClusterPartition,
    HeldNode,
)
from foretime_sidecar.clients.known_shapes import known_shape
from foretime_sidecar.clients.slurm.numbers import number
from foretime_sidecar.clients.slurm.site import expand_nodes, fields_of, parse_max_time

Json = Mapping[str, Any]

# A node in any of these states starts no job, whatever else it is.
_NO_NEW_JOBS = {
    "DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "UNKNOWN", "FUTURE",
    "NOT_RESPONDING", "INVAL", "INVALID_REG",
}  # fmt: skip
_GPU = re.compile(r"(?:gres[:/])?gpu(?::([^:=(,\s]+))??(?:[:=](\d+))?(?:\(.*?\))?", re.ASCII)

_OTHER_GRES = re.compile(r"gres[:/](?!gpu(?:[:=(]|$))")


# A replay's nodes never change; what a live Slurm says of them tells their load, too.
@lru_cache(maxsize=1)
def parse_cluster(nodes: str, partitions: str, configuration: str) -> Cluster:
    """Read ``scontrol show node``, ``show partition`` (both ``--oneliner``) and ``show config``.

    Raises
    ------
    SchedulerError
        If there is no node or slurm_partition, or a value can't be read.
    """
    answered = "scontrol answered a node or partition"
    with known_shape(answered, "scontrol of Slurm 22.05 and newer"):
        found = [
            _node(fields_of(line)) for line in nodes.splitlines() if line.startswith("NodeName=")
        ]
        defaults = {
            name: _setting(configuration, name) for name in ("DefMemPerCPU", "DefMemPerNode")
        }
        parts = [
            _partition(_with_defaults(fields_of(line), defaults))
            for line in partitions.splitlines()
            if line.startswith("PartitionName=")
        ]
    if not found or not parts:
        raise SchedulerError(
            f"scontrol show node and show partition named no node or no partition: "
            f"{(nodes + partitions)[:120]!r}; check slurmctld"
        )
    selection = _setting(configuration, "SelectTypeParameters").upper()
    return Cluster(
        tuple(found),
        tuple(parts),
        counts_memory="MEMORY" in selection,
        counts_cpus="linear" not in _setting(configuration, "SelectType").lower(),
    )


def _setting(configuration: str, name: str) -> str:
    match = re.search(rf"^{name}\s*=\s*(.*)$", configuration, re.MULTILINE)
    return match[1].strip() if match else ""


def _node(values: Mapping[str, str]) -> ClusterNode:
    state = set(re.split(r"[+*~#!%$@^-]+", values["State"].upper()))
    gpus, types = 0, []
    for part in words_of(values.get("Gres", "")):
        if match := _GPU.fullmatch(part):
            gpus += int(match[2] or 1)
            types += [f"gpu:{match[1]}"] if match[1] else []
    features = words_of(values.get("AvailableFeatures", ""))
    return ClusterNode(
        values["NodeName"],
        # Cores set aside for the system are not given out.
        int(values.get("CPUEfctv") or values["CPUTot"]),
        int(values.get("RealMemory", "1")) - int(values.get("MemSpecLimit", "0")),
        gpus,
        (*features, *dict.fromkeys(types)),
        int(values.get("Weight", "1")),
        takes_jobs=not state & _NO_NEW_JOBS and not values["State"].endswith("*"),
    )


def words_of(text: str) -> list[str]:
    """Split at commas outside of brackets; ``(null)`` is nothing."""
    if text in ("", "(null)", "N/A"):
        return []
    return [word for word in re.split(r",(?![^(]*\))", text) if word]


def _with_defaults(values: dict[str, str], defaults: Mapping[str, str]) -> dict[str, str]:
    """Give a slurm_partition's fields with the cluster's memory where it has none of its own.

    As ``_get_def_mem`` in job_mgr.c; scontrol tells none as DefMemPerNode=UNLIMITED.
    """
    if any(values.get(name, "").isdecimal() for name in defaults):
        return values
    return {**values, **{name: value for name, value in defaults.items() if value.isdecimal()}}


def _partition(values: Mapping[str, str]) -> ClusterPartition:
    nodes = values.get("Nodes", "(null)")

    def limit(name: str) -> int | None:
        text = values.get(name, "UNLIMITED")
        return int(text) if text.isdecimal() else None

    return ClusterPartition(
        values["PartitionName"],
        frozenset() if nodes == "(null)" else expand_nodes(nodes),
        limit("PriorityTier") or 0,
        parse_max_time(values.get("MaxTime", "UNLIMITED"), values["PartitionName"]),
        limit("MaxNodes"),
        limit("DefMemPerCPU"),
        limit("DefMemPerNode"),
        # 26.05 tells OverSubscribe=EXCLUSIVE as Exclusive=NODE, with OverSubscribe=NO.
        exclusive="EXCLUSIVE" in values.get("OverSubscribe", "")
        or values.get("Exclusive", "") == "NODE",
        default=values.get("Default") == "YES",
        is_up=values.get("State", "UP") == "UP",
        hidden=values.get("Hidden") == "YES",
    )


NODE_FIELDS = (
    "burst_buffer", "contiguous", "cpus", "cpus_per_task", "excluded_nodes", "features",
    "gres_detail", "job_resources", "licenses", "max_nodes", "memory_per_cpu", "memory_per_node",
    "network", "node_count", "required_nodes", "required_switches", "shared", "submit_line",
    "tasks", "tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task",
)  # fmt: skip
"""What `asked_nodes` and `held_nodes` read of a job."""


def asked_nodes(job: Json) -> AskedNodes:
    """Give what a job asks of nodes, as ``squeue --json`` or slurmrestd tells."""
    least, most = number(job.get("node_count")) or 0, number(job.get("max_nodes")) or 0
    # Slurm works numbers out for jobs that name none: from 1 to as many as tasks, on 26.05.
    nodes = least if least > 1 or (least and least == most) else None
    cpus = max(number(job.get("cpus")) or 1, 1)
    tasks = max(number(job.get("tasks")) or 1, 1)
    per_task = number(job.get("cpus_per_task")) or max(cpus // tasks, 1)  # 22.05 does not tell it
    tasks = max(tasks, -(-cpus // per_task))
    features, other = _features(str(job.get("features") or ""))
    gpus, gpu_types, assumed = _gpus(job, nodes, tasks)
    other += _other_resources(job)
    for name, words in (
        ("contiguous", "--contiguous"),
        ("required_switches", "--switches"),
        ("licenses", "--licenses"),
        ("network", "--network"),
        ("burst_buffer", "burst buffers"),
    ):
        if job.get(name):
            other.append(words)
    required = expand_nodes(str(job.get("required_nodes") or ""))
    if required and (nodes or 1) > len(required):
        other.append("--nodelist with more nodes than it names")
    return AskedNodes(
        nodes,
        tasks,
        per_task,
        number(job.get("memory_per_node")) or None,
        number(job.get("memory_per_cpu")) or None,
        gpus,
        (*features, *gpu_types),
        required,
        expand_nodes(str(job.get("excluded_nodes") or "")),
        exclusive=_is_exclusive(job),
        assumed=tuple(assumed),
        not_modelled=tuple(other),
    )


def _features(text: str) -> tuple[list[str], list[str]]:
    """Give the features that all nodes must have; and what of them can't be said so."""
    if not text:
        return [], []
    if set(text) & set("|[]()*"):
        return [], [f"--constraint={text}"]
    return [word for word in re.split("[&,]", text) if word], []


def _gpus(job: Json, nodes: int | None, tasks: int) -> tuple[int | None, list[str], list[str]]:
    """Give GPUs per node, their types, and what is assumed for that."""
    types: list[str] = []

    def count(name: str) -> int:
        total = 0
        if not (text := job.get(name)):
            return total
        for part in str(text).split(","):
            match = _GPU.fullmatch(part.strip())
            if match is None:
                continue
            total += int(match[2] or 1)
            if match[1]:
                types.append(f"gpu:{match[1]}")
        return total

    if per_node := count("tres_per_node"):
        return per_node, types, []
    if in_all := count("tres_per_job"):
        assumed = [] if nodes else ["--gpus without --nodes: taken to be on one node"]
        return -(-in_all // (nodes or 1)), types, assumed
    if per_task := count("tres_per_task"):
        one = not nodes and tasks > 1
        assumed = ["--gpus-per-task without --nodes: taken for one node"] if one else []
        return per_task * -(-tasks // (nodes or 1)), types, assumed
    return None, [], []


def _other_resources(job: Json) -> list[str]:
    """Name the generic resources other than GPUs, and GPUs by socket."""
    asked = (str(job.get(f"tres_per_{of}") or "") for of in ("job", "node", "task"))
    parts = (part.strip() for text in asked for part in text.split(","))
    found = [f"--gres={part[5:]}" for part in parts if _OTHER_GRES.match(part)]
    return [*found, *(["--gpus-per-socket"] if job.get("tres_per_socket") else [])]


def _is_exclusive(job: Json) -> bool:
    """Say whether a job asks for whole nodes: 22.05 tells, 26.05 only by the line it came with."""
    if "none" in (job.get("shared") or ()):
        return True
    line = str(job.get("submit_line"))
    return "--exclusive" in line and any(word.startswith("--exclusive") for word in line.split())


def held_nodes(job: Json) -> tuple[HeldNode, ...]:
    """Give what a running job has of each node; nothing if Slurm does not tell."""
    resources = job.get("job_resources") or {}
    nodes = resources.get("nodes")
    gpus = [_gpus_of(str(text)) for text in job.get("gres_detail") or ()]
    if isinstance(nodes, Mapping):  # from 23.11 on
        rows = [
            (
                str(node["name"]),
                number(node["cpus"]["count"]) or 0,
                number(node["memory"]["allocated"]) or 0,
            )
            for node in nodes.get("allocation") or ()
        ]
    else:
        rows = _by_cores(resources.get("allocated_nodes") or (), number(job.get("cpus")) or 0)
    return tuple(
        HeldNode(name, cpus, memory, gpus[place] if place < len(gpus) else 0)
        for place, (name, cpus, memory) in enumerate(rows)
    )


def _by_cores(nodes: object, cpus: int) -> list[tuple[str, int, int]]:
    """Give name, CPUs and memory of each node, where cores are told: all have as many CPUs."""
    rows = []
    for node in nodes if isinstance(nodes, list) else ():
        cores = sum(
            1
            for socket in (node.get("sockets") or {}).values()
            for state in socket["cores"].values()
            if "allocated" in str(state)
        )
        rows.append((str(node["nodename"]), cores, number(node.get("memory_allocated")) or 0))
    cores_in_all = sum(cores for _, cores, _ in rows)
    if not cores_in_all:
        return []
    return [(name, -(-cores * cpus // cores_in_all), memory) for name, cores, memory in rows]


def _gpus_of(text: str) -> int:
    """Count the GPUs of ``gpu:a100:2(IDX:0-1)``."""
    return sum(int(match[2] or 1) for part in words_of(text) if (match := _GPU.fullmatch(part)))
