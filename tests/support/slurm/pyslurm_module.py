"""A pyslurm that gives the jobs which squeue printed.

The names are those of pyslurm 25.11.2's own source, which can only be installed beside its Slurm;
the values are what squeue printed, in the shapes that its properties give.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from foretime_sidecar.clients.client import QueuedJob
from foretime_sidecar.clients.slurm.numbers import number

ASSETS = Path(__file__).parents[2] / "assets/slurm"


class PyslurmError(Exception):
    """As pyslurm's own."""


class RecordedCommands:
    """Slurm's commands as recorded, of a Slurm of pyslurm's release."""

    def __init__(self, folder: Path, version: str = "25.11.7") -> None:
        self.folder, self.version = folder, version

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        assert stdin is None
        name = argv[0] if argv[0] != "scontrol" else f"scontrol-{argv[2]}"
        if "--json" in argv:
            return json.loads((self.folder / f"{name}.json").read_text())
        text = (self.folder / f"{name}.txt").read_text()
        return text.replace("26.05.5", self.version)


def _value(job: Mapping[str, Any], name: str) -> Any:
    return number(job[name]) or None


def shown_by_pyslurm(job: Mapping[str, Any]) -> dict[str, Any]:
    """What pyslurm's properties give for what squeue printed: None for unset, minutes, names."""
    tasks = job["array_task_string"].partition("%")[0]
    return {
        "id": job["job_id"],
        "state": job["job_state"][0],
        "state_reason": job["state_reason"],
        "user_name": job["user_name"],
        "account": job["account"] or None,
        "cpus": _value(job, "cpus"),
        "time_limit": _value(job, "time_limit"),
        "time_limit_min": _value(job, "time_minimum"),
        "submit_time": _value(job, "submit_time"),
        "eligible_time": _value(job, "eligible_time"),
        "start_time": _value(job, "start_time"),
        "suspend_time": _value(job, "suspend_time"),
        "pre_suspension_time": _value(job, "pre_sus_time"),
        "deadline": _value(job, "deadline"),
        "priority": number(job["priority"]),
        "partition": job["partition"],
        "array_id": _value(job, "array_job_id"),
        "array_task_id": number(job["array_task_id"]),
        "array_tasks_waiting": tasks or None,
        "dependencies": {"afterok": [1]} if job["dependency"] else None,
        "heterogeneous_id": number(job["het_job_id"]),
        "qos": job["qos"],
        "reservation": job["resv_name"] or None,
        "admin_comment": job["admin_comment"] or None,
        "comment": job["comment"] or None,
    }


def told_by_pyslurm(job: QueuedJob) -> QueuedJob:
    """Leave out what the client does not read: nodes, and what forward runs on them need else."""
    untold: dict[str, Any] = {"name": "", "dependency": "", "array_limit": None, "asked": None}
    untold |= {"nice": 0, "licenses": "", "ages_since": None, "has_nodes": ()}
    return replace(job, **untold)


def pyslurm_of(jobs: Iterable[Mapping[str, Any]]) -> SimpleNamespace:
    """Give a module with classes that have pyslurm's attributes, and no other.

    Parameters
    ----------
    jobs
        As ``squeue --json`` prints them.
    """
    names = json.loads((ASSETS / "pyslurm-25.11.2.json").read_text())
    classes = {
        name: type(name, (), {"__slots__": tuple(names[name])})
        for name in ("Job", "Node", "Statistics")
    }

    def build(name: str, values: Mapping[str, Any]) -> Any:
        built = classes[name]()
        for key, value in values.items():
            setattr(built, key, value)
        return built

    built = {job["job_id"]: build("Job", shown_by_pyslurm(job)) for job in jobs}
    states = ("ALLOCATED", "MIXED", "IDLE", "MIXED+DRAIN", "DOWN*")
    nodes = {
        state: build("Node", {"state": state, "total_cpus": 4, "allocated_cpus": place})
        for place, state in enumerate(states)
    }
    statistics = {
        "server_thread_count": 3,
        "agent_queue_size": 1,
        "dbd_agent_queue_size": 2,
        "schedule_cycle_last": 1_500_000,
    }
    return SimpleNamespace(
        __version__=names["version"],
        PyslurmError=PyslurmError,
        Jobs=SimpleNamespace(load=lambda preload_passwd_info=False: built),
        Nodes=SimpleNamespace(load=lambda: nodes),
        slurmctld=SimpleNamespace(diag=lambda: build("Statistics", statistics)),
    )
