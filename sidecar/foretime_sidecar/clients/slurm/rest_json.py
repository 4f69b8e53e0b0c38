"""Pure parsers of what slurmrestd answers, as far as Slurm's commands print it otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from foretime_sidecar.clients.client import ControllerLoad, Reservation, SchedulerConfiguration
from foretime_sidecar.clients.known_shapes import known_shape
from foretime_sidecar.clients.slurm.control_texts import parse_parameters
from foretime_sidecar.clients.slurm.numbers import number
from foretime_sidecar.clients.slurm.site import expand_nodes

_UP = {"idle", "mixed", "allocated", "completing", "reserved"}
_NO_NEW_JOBS = {"drain", "down", "fail", "not_responding", "powered_down", "power_down"}


def _shapes(what: str) -> AbstractContextManager[None]:
    return known_shape(f"slurmrestd answered {what}", "the APIs v0.0.38 to v0.0.45")


def parse_rest_configuration(
    reply: Mapping[str, Any], federation: str = ""
) -> SchedulerConfiguration:
    """Read a reply of ``/slurm/conf``, which does not tell the federation.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of slurmrestd's.
    """
    with _shapes("its configuration"):
        conf = reply["slurm_conf"]
        slurm = reply["meta"]["slurm"]
        return SchedulerConfiguration(
            scheduler="slurm",
            cluster=str(conf["ClusterName"]),
            version=str(slurm["release"]),
            scheduler_type=str(conf["SchedulerType"]),
            parameters=parse_parameters(conf["SchedulerParameters"]),
            prolog_slurmctld=",".join(conf["PrologSlurmctld"]),
            priority_type=str(conf["PriorityType"]),
            site_factor_plugin=str(conf["PrioritySiteFactorPlugin"] or ""),
            qos_weight=number(conf["PriorityWeightQOS"]) or 0,
            accounting_enforce=frozenset(
                str(word).lower() for word in conf["AccountingStorageEnforce"]
            )
            - {"none"},
            federation=federation,
            private_data=frozenset(str(word).lower() for word in conf["PrivateData"]) - {"none"},
        )


def parse_rest_processors(reply: Mapping[str, Any]) -> int:
    """Read a reply of ``/slurm/nodes``: processors allocated or idle, as sinfo counts them.

    Of a node that is to take no new jobs, those count that its jobs have.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of slurmrestd's.
    """
    processors = 0
    with _shapes("its nodes"):
        for node in reply["nodes"]:
            state = node["state"]
            words = {state} if isinstance(state, str) else set(state)
            words = {word.lower() for word in [*words, *(node.get("state_flags") or ())]}
            if words & _UP and not words & _NO_NEW_JOBS:
                processors += number(node["cpus"]) or 0
            else:
                processors += number(node["alloc_cpus"]) or 0
    return processors


def parse_rest_reservations(reply: Mapping[str, Any]) -> list[Reservation]:
    """Read a reply of ``/slurm/reservations``.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of slurmrestd's.
    """
    with _shapes("its reservations"):
        return [_reservation(each) for each in reply["reservations"]]


def _reservation(each: Mapping[str, Any]) -> Reservation:
    start_time, end_time = number(each["start_time"]), number(each["end_time"])
    if start_time is None or end_time is None:
        raise ValueError(f"the times of {each['name']}")
    processors = re.search(r"\bcpu=(\d+)", each.get("tres") or "")
    return Reservation(
        name=str(each["name"]),
        start_time=start_time,
        end_time=end_time,
        processors=int(processors[1]) if processors else None,
        slurm_partition=each.get("partition") or None,
        flags=frozenset(each.get("flags") or ()),
        nodes=expand_nodes(nodes) if (nodes := each.get("node_list")) else None,
    )


def parse_rest_load(reply: Mapping[str, Any]) -> ControllerLoad:
    """Read a reply of ``/slurm/diag``.

    Raises
    ------
    SchedulerError
        If the reply has not the shape of slurmrestd's.
    """
    with _shapes("its statistics"):
        statistics = reply["statistics"]
        return ControllerLoad(
            int(statistics["server_thread_count"]),
            int(statistics["agent_queue_size"]),
            int(statistics["dbd_agent_queue_size"]),
            int(statistics["schedule_cycle_last"]) / 1e6,
        )


def task_numbers(reply: Mapping[str, Any]) -> dict[str, str]:
    """Read a reply of ``/slurm/jobs``: the job id of each task of an array by ARRAY_TASK."""
    numbers = {}
    with _shapes("its jobs"):
        for job in reply["jobs"]:
            array, task = number(job["array_job_id"]), number(job["array_task_id"])
            if array and task is not None:
                numbers[f"{array}_{task}"] = str(number(job["job_id"]))
    return numbers
