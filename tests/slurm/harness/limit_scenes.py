"""Scenes of limits, read from ``limit_scenes.toml``, and what the model says of them."""

from __future__ import annotations

import shlex
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.reference.slurm.limits.limits import Limits
from foretime_sim.sites.slurm import reasons
from foretime_sim.sites.slurm.limits import Association, Qos
from foretime_sim.sites.slurm.limits import Limits as LimitsOfGroup
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import PartitionRules, SlurmSite

NODES, CPUS = 18, 64
NODES_OF_A_SCENE = 6
LICENSES = {"tool": 10, "pen": 4}
ENDED = "ended"
"""State of a job that squeue no longer shows."""
ALL_QOS = ("normal", "other")
_FIELDS = {
    "GrpJobs": "grp_jobs",
    "GrpSubmitJobs": "grp_submit_jobs",
    "GrpTRES": "grp_tres",
    "GrpTRESMins": "grp_tres_mins",
    "GrpTRESRunMins": "grp_tres_run_mins",
    "GrpWall": "grp_wall_s",
    "MaxJobs": "max_jobs",
    "MaxJobsPerUser": "max_jobs",
    "MaxJobsPerAccount": "max_jobs_per_account",
    "MaxSubmitJobs": "max_submit_jobs",
    "MaxSubmitJobsPerUser": "max_submit_jobs",
    "MaxSubmitJobsPerAccount": "max_submit_jobs_per_account",
    "MaxTRES": "max_tres_per_job",
    "MaxTRESPerJob": "max_tres_per_job",
    "MaxTRESPerNode": "max_tres_per_node",
    "MaxTRESMins": "max_tres_mins_per_job",
    "MaxTRESMinsPerJob": "max_tres_mins_per_job",
    "MaxTRESPerUser": "max_tres_per_user",
    "MaxTRESPerAccount": "max_tres_per_account",
    "MaxTRESRunMinsPU": "max_tres_run_mins_per_user",
    "MaxTRESRunMinsPA": "max_tres_run_mins_per_account",
    "MaxWall": "max_wall_s",
    "MaxWallDurationPerJob": "max_wall_s",
    "MinTRESPerJob": "min_tres_per_job",
}
_OF_QOS = {"LimitFactor": "limit_factor", "UsageFactor": "usage_factor"}


@dataclass(frozen=True)
class Scene:
    """A scene; attributes are as ``limit_scenes.toml`` says, names have its number."""

    number: int
    name: str
    steps: tuple[str, ...]
    user: str = ""
    account: str = ""
    parent: str = ""
    qos: str = ""
    partition_qos: str = ""
    partition: str = ""
    second_partition: str = ""
    state: str = "UP"
    enforce: str = "NO"
    safe: bool = False
    looks: bool = False

    @property
    def names(self) -> dict[str, str]:
        """What its account, QOS and partition are called."""
        return {
            "qos": f"q{self.number}",
            "account": f"a{self.number}",
            "parent": f"parent{self.number}",
        }

    @property
    def nodes(self) -> str:
        """The nodes of its partitions: those that name some are not in the others' way.

        Nor are others in the way of MaxCPUsPerNode: 24.11 may count their jobs, too.
        """
        if "MaxCPUsPerNode" in self.partition:
            return "n[13-18]"
        return "n[7-12]" if any(" -w " in step for step in self.steps) else "n[1-6]"

    @property
    def slurm_partitions(self) -> dict[str, str]:
        """Its partitions, with what slurm.conf says of each."""
        words = self.partition.format(**self.names)
        if self.partition_qos:
            words += f" QOS=pq{self.number}"
        found = {f"p{self.number}": words}
        if self.second_partition:
            found[f"r{self.number}"] = self.second_partition
        return found


def read_scenes() -> list[Scene]:
    """Read all scenes."""
    path = Path(__file__).parents[1] / "model/limit_scenes.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["scene"]
    return [
        Scene(number, **{**table, "steps": tuple(table["steps"])})
        for number, table in enumerate(tables)
    ]


@dataclass(frozen=True)
class SceneJob:
    """A job of a scene as limits see it, and the options of sbatch that make it."""

    name: str
    index: int
    user: str
    account: str
    qos: str
    slurm_partitions: tuple[str, ...]
    options: tuple[str, ...]
    time_limit_s: int
    tres: Mapping[str, int]
    licenses: Mapping[str, int]
    nodes: tuple[int, ...]
    array: str | None = None
    array_most_running: int = 0
    slurm_partition: str | None = None


@dataclass
class ModelledScene:
    """A scene as the model sees it: what each of its jobs does after each step.

    Room is never short, so a job starts as soon as no limit keeps it.
    """

    scene: Scene
    version: tuple[int, int]
    states: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._limits = Limits(site_of(self.scene, self.version))
        self._jobs: dict[str, SceneJob] = {}

    def submit(self, jobs: list[SceneJob], name: str) -> None:
        """Submit the tasks of an array, or one job."""
        refused = self._limits.why_refused(jobs[0], len(jobs))
        if refused is not None:
            self.states[name] = f"refused: {refused}"
            return
        for job in jobs:
            self._limits.submitted(job)
            self._jobs[job.name] = job
            self.states[job.name] = "PENDING"
        self._start()

    def end(self, name: str) -> None:
        """End a job."""
        self._limits.ended(self._jobs.pop(name), 1)
        del self.states[name]
        self._start()

    def look(self) -> None:
        """Let the decay thread look a while after the jobs began, and end what is killed then."""
        now = 30
        self._limits.tick(now)
        for name in [name for name, job in self._jobs.items() if self._limits.is_killed(job, now)]:
            self._limits.ended(self._jobs.pop(name), now)
            self.states[name] = ENDED
        self._start()

    def _start(self) -> None:
        for name, job in self._jobs.items():
            if self.states[name] == "RUNNING":
                continue
            for slurm_partition in job.slurm_partitions:
                tried = replace(job, slurm_partition=slurm_partition)
                reason = (
                    (reasons.ARRAY_THROTTLE if self._limits.array_is_full(tried) else None)
                    or self._limits.why_not_considered(tried, 0)
                    or self._limits.why_not_started(tried, job.tres, 0, job.nodes)
                    or self._limits.why_no_licenses(tried)
                )
                if reason is None:
                    self._limits.started(tried, job.tres, 0, job.nodes)
                    self.states[name] = "RUNNING"
                    break
                self.states[name] = f"PENDING {reason}"


def jobs_of(scene: Scene, step: str, first_index: int) -> list[SceneJob]:
    """Give the jobs that a step submits: tasks of an array, or one."""
    name, user, *options = shlex.split(step)
    said = dict(_options(options))
    nodes = int(said.get("-N", 1))
    asked = {"cpu": max(int(said.get("-n", 1)), nodes), "node": nodes}
    asked["mem"] = int(said["--mem"]) * nodes if "--mem" in said else asked["cpu"]
    licenses = {}
    if "-L" in said:
        what, _, count = said["-L"].partition(":")
        licenses[what] = int(count)
    tasks, _, most = said.get("--array", "").partition("%")
    numbers = range(int(tasks[0]), int(tasks[-1]) + 1) if tasks else [0]
    return [
        SceneJob(
            name=f"{name}_{number}" if tasks else name,
            index=first_index + place,
            user=user,
            account=f"b{scene.number}" if user == "carol" else f"a{scene.number}",
            qos=said.get("--qos", f"q{scene.number}" if scene.qos else "normal"),
            slurm_partitions=tuple(scene.slurm_partitions),
            options=tuple(options),
            time_limit_s=int(said.get("-t", 10)) * 60,
            tres=asked,
            licenses=licenses,
            nodes=(int(said["-w"][1:]),) if "-w" in said else (),
            array=name if tasks else None,
            array_most_running=int(most or 0),
        )
        for place, number in enumerate(numbers)
    ]


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    waiting = ""
    for word in words:
        if waiting:
            yield waiting, word
            waiting = ""
        elif word.startswith("--"):
            key, _, value = word.partition("=")
            yield key, value
        elif len(word) > 2:
            yield word[:2], word[2:]
        else:
            waiting = word


def site_of(scene: Scene, version: tuple[int, int]) -> SlurmSite:
    """Give the site of a scene."""
    groups = (NodeGroup("all", NODES_OF_A_SCENE, CPUS, 1000),)
    partitions, rules = [], {}
    for name, text in scene.slurm_partitions.items():
        words = dict(word.split("=", 1) for word in text.split())
        partitions.append(
            SlurmPartition(
                name, ("all",),
                max_time_s=int(words["MaxTime"]) * 60 if "MaxTime" in words else None,
                max_nodes=int(words["MaxNodes"]) if "MaxNodes" in words else None,
            )
        )  # fmt: skip
        lists: dict[str, Any] = {
            key: frozenset(words[word].split(",")) if word in words else None
            for key, word in (
                ("allow_qos", "AllowQos"),
                ("deny_qos", "DenyQos"),
                ("allow_accounts", "AllowAccounts"),
                ("deny_accounts", "DenyAccounts"),
            )
        }
        per_node = int(words["MaxCPUsPerNode"]) if "MaxCPUsPerNode" in words else None
        rules[name] = PartitionRules(
            qos=words.get("QOS"),
            min_nodes=int(words.get("MinNodes", 0)),
            max_cpus_per_node=per_node,
            state=scene.state,
            **lists,
        )
    number, (limits, more) = scene.number, _limits(scene.qos)
    qos = {name: Qos(name) for name in ALL_QOS}
    qos[f"q{number}"] = Qos(f"q{number}", limits=limits, **more)
    limits, more = _limits(scene.partition_qos)
    qos[f"pq{number}"] = Qos(f"pq{number}", limits=limits, **more)
    allowed = ("normal", f"q{number}")
    below, beside = f"a{number}", f"b{number}"
    associations = (
        Association("root"),
        Association(f"parent{number}", parent="root", limits=_limits(scene.parent)[0]),
        Association(below, parent=f"parent{number}", limits=_limits(scene.account)[0]),
        Association(beside, parent=f"parent{number}"),
        Association(below, "alice", limits=_limits(scene.user)[0], qos=allowed),
        Association(below, "bob", qos=allowed),
        Association(beside, "carol", qos=allowed),
    )
    return SlurmSite(
        Machine(groups, tuple(partitions)),
        version=version,
        priority=SlurmPriority(multifactor=scene.looks),
        rules=rules,
        qos=qos,
        associations=associations,
        enforced=frozenset({"limits", "qos", *(["safe"] if scene.safe else [])}),
        licenses=LICENSES,
        enforce_part_limits=scene.enforce,
    )


def _limits(words: str) -> tuple[LimitsOfGroup, dict[str, Any]]:
    """Read limits as sacctmgr takes them; with what else a QOS has."""
    limits: dict[str, Any] = {}
    more: dict[str, Any] = {}
    for word in words.split():
        key, _, value = word.partition("=")
        if key == "Flags":
            more["flags"] = frozenset(value.split(","))
        elif key in _OF_QOS:
            more[_OF_QOS[key]] = float(value)
        elif "TRES" in key:
            counts = (item.split("=") for item in value.split(","))
            limits[_FIELDS[key]] = {kind: int(count) for kind, count in counts}
        else:
            limits[_FIELDS[key]] = int(value) * (60 if _FIELDS[key].endswith("_s") else 1)
    return LimitsOfGroup(**limits), more
