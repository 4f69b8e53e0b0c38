"""The configuration files of a test cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.slurm.harness.port_block import PortBlock
from tests.slurm.harness.slurm_releases import SlurmRelease

SLURM_UID, MUNGE_UID, REST_UID, FIRST_USER_UID = 64030, 64031, 64032, 64041
USERS = ("alice", "bob", "carol", "dave", "erin")

# Quick decisions: real sites wait longer to save work.
SCHEDULER_PARAMETERS = {
    "bf_interval": "1",
    "bf_resolution": "60",
    "sched_interval": "2",
    "sched_min_interval": "0",
    "batch_sched_delay": "0",
    "bf_continue": None,
    "bf_max_job_test": "1000",
    "default_queue_depth": "1000",
}


@dataclass
class SlurmConfiguration:
    """What slurm.conf says; `text` writes it.

    Attributes
    ----------
    values
        Its keys, ``SchedulerParameters`` apart.
    scheduler_parameters
        By name; ``None`` for those that stand without a value.
    nodes, cpus
        How many nodes, and the CPUs of each.
    slurm_partitions
        The text of each after ``PartitionName=``.
    ports
        First of the nodes' ports.
    node_settings
        Nodes by name with what slurm.conf says of each, in the place of n1, n2, ...
    """

    values: dict[str, str]
    nodes: int
    cpus: int
    ports: int
    node_settings: dict[str, str] = field(default_factory=dict)
    scheduler_parameters: dict[str, str | None] = field(
        default_factory=lambda: dict(SCHEDULER_PARAMETERS)
    )
    slurm_partitions: list[str] = field(
        default_factory=lambda: ["main Nodes=ALL Default=YES MaxTime=INFINITE DefaultTime=60"]
    )

    @property
    def node_names(self) -> list[str]:
        """n1, n2, ...; or those that have settings."""
        return list(self.node_settings) or [f"n{number}" for number in range(1, self.nodes + 1)]

    def text(self) -> str:
        """Give slurm.conf."""
        lines = [f"{key}={value}" for key, value in self.values.items()]
        parameters = ",".join(
            name if value is None else f"{name}={value}"
            for name, value in self.scheduler_parameters.items()
        )
        if parameters:
            lines.append(f"SchedulerParameters={parameters}")
        lines += [
            f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 Port={self.ports + number}"
            f" {self.node_settings.get(name, f'CPUs={self.cpus} RealMemory=1000')} State=UNKNOWN"
            for number, name in enumerate(self.node_names)
        ]
        lines += [f"PartitionName={partition} State=UP" for partition in self.slurm_partitions]
        return "\n".join([*lines, ""])


def new_configuration(
    folder: Path, nodes: int, cpus: int, values: Mapping[str, str], ports: PortBlock
) -> SlurmConfiguration:
    """Give the configuration of a cluster whose files are all in one folder."""
    port = ports.take(nodes + 1)
    run, log = folder / "run", folder / "log"
    basic = {
        "ClusterName": "lab",
        "SlurmctldHost": "localhost(127.0.0.1)",
        "SlurmctldPort": str(port),
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={folder}/munge/socket",
        "StateSaveLocation": str(folder / "state"),
        "SlurmdSpoolDir": f"{folder}/spool/%n",
        "SlurmctldPidFile": str(run / "slurmctld.pid"),
        "SlurmdPidFile": f"{run}/slurmd-%n.pid",
        "SlurmctldLogFile": str(log / "slurmctld.log"),
        "SlurmdLogFile": f"{log}/slurmd-%n.log",
        "SlurmctldDebug": "verbose",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "MpiDefault": "none",
        "SwitchType": "switch/none",
        "ReturnToService": "2",
        "SchedulerType": "sched/backfill",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core",
        "SlurmdParameters": "config_overrides",
        "PriorityType": "priority/basic",
        "KillWait": "2",
        "MinJobAge": "3600",
    }
    return SlurmConfiguration({**basic, **values}, nodes, cpus, port + 1)


def write_accounts(folder: Path) -> None:
    """Write the cluster's own passwd and group: this machine's, and those that Slurm needs."""
    ours = {"slurm": SLURM_UID, "munge": MUNGE_UID, "slurmrest": REST_UID}
    ours |= {user: FIRST_USER_UID + number for number, user in enumerate(USERS)}
    for name, line in (
        ("passwd", "{user}:x:{uid}:{uid}::{home}:/bin/bash"),
        ("group", "{user}:x:{uid}:"),
    ):
        others = [
            text
            for text in Path(f"/etc/{name}").read_text(encoding="utf-8").splitlines()
            if text.split(":")[0] not in ours
        ]
        mine = [line.format(user=user, uid=uid, home=folder / "jobs") for user, uid in ours.items()]
        (folder / name).write_text("\n".join([*others, *mine, ""]), encoding="utf-8")


def write_configuration(
    folder: Path, configuration: SlurmConfiguration, release: SlurmRelease
) -> None:
    """Write slurm.conf and cgroup.conf, and a slurm.conf for clients run outside ``root``."""
    conf = folder / "etc" / "slurm.conf"
    _replace(conf, configuration.text())
    if release.cgroups_optional:
        _replace(folder / "etc" / "cgroup.conf", "CgroupPlugin=disabled\n")
    _replace(folder / "client.conf", f"Include {conf}\nPluginDir={release.plugins}\n")


def write_commands(folder: Path, release: SlurmRelease) -> Path:
    """Write Slurm's commands so that they can be run from outside ``root``; gives their folder.

    Programs of another Debian need that one's loader and libraries, and Slurm its plugins. Root may
    run them outside the cluster's namespace, too: they enter it.
    """
    commands = folder / "commands"
    commands.mkdir()
    loader = next(iter(sorted(release.root.glob("lib*/ld-linux*.so*"))), None)
    libraries = ":".join(map(str, [*release.files("lib/*-linux-gnu*"), release.plugins]))
    for name in COMMANDS:
        program = next(iter(release.files(f"bin/{name}")), None)
        if program is None:
            continue
        load = [] if release.root == Path("/") else [str(loader), "--library-path", libraries]
        script = commands / name
        script.write_text(
            "#!/bin/sh\n"
            f'[ "$(stat -c %i /etc/slurm 2>&1)" = {(folder / "etc").stat().st_ino} ] ||\n'
            f'  exec nsenter --target="$(cat {folder}/run/namespace.pid)" --mount --pid \\\n'
            '    -- "$0" "$@"\n'
            f'SLURM_CONF={folder}/client.conf exec {" ".join([*load, str(program)])} "$@"\n',
            encoding="utf-8",
        )
        script.chmod(0o755)
    return commands


COMMANDS: Sequence[str] = (
    "sacct",
    "sacctmgr",
    "salloc",
    "sbatch",
    "scancel",
    "scontrol",
    "sdiag",
    "sinfo",
    "sprio",
    "squeue",
    "srun",
    "sreport",
    "sshare",
)


def _replace(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
