"""A live Slurm on this machine for a test: munge, slurmctld and several slurmd on loopback.

Everything is in one folder below /tmp and in namespaces of its own (`slurm_namespace`), so any
number of clusters run side by side and none leaves anything.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
from foretime_sidecar.table.table import (
    Mechanism,
    Mode,
    Table,
    TableRow,
    TableSettings,
    write_table,
)

from tests.slurm.harness import slurm_accounting, slurm_conf, slurm_rest
from tests.slurm.harness.port_block import PortBlock
from tests.slurm.harness.slurm_conf import MUNGE_UID, SLURM_UID
from tests.slurm.harness.slurm_namespace import SlurmNamespace
from tests.slurm.harness.slurm_releases import SlurmRelease
from tests.slurm.harness.slurm_rest import SlurmRest

PLUGIN = Path(__file__).resolve().parents[3] / "plugin/slurm"
READY_S = 30
_POLL_S = 0.05
_ENDED = ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "DEADLINE", "NODE_FAIL", "PREEMPTED")


class SlurmCluster:
    """A running cluster; `stop` ends it and removes all of it.

    Parameters
    ----------
    release
        Which Slurm.
    nodes, cpus
        Nodes n1, n2, ... and the CPUs that each pretends to have.
    conf
        More of slurm.conf.
    scheduler_parameters
        More of SchedulerParameters; ``None`` as the value of those that have none.
    quick
        Decide within a second or two; otherwise SchedulerParameters are these alone.
    slurm_partitions
        Of each the text after ``PartitionName=``.
    node_settings
        Other nodes in the place of n1, n2, ...: what slurm.conf says of each, by name.
    files
        More files beside slurm.conf, by name; ``FOLDER`` in them is the cluster's, which has files
        gpu0, gpu1, ... for devices.
    slurmd
        Whether the nodes have their daemons; without them they stay unknown.

    Attributes
    ----------
    folder
        Its folder; ``etc`` in it is /etc/slurm to the cluster.
    jobs_folder
        Where every user may write.
    commands
        Folder of squeue, sbatch, ..., as the sidecar's ``commands_dir``.
    table, disable_file
        The hook's table, and the file that switches it off.
    slurmctld
        The process that slurmctld was started with, and that ends with it.
    """

    def __init__(
        self,
        release: SlurmRelease,
        *,
        nodes: int = 4,
        cpus: int = 4,
        conf: Mapping[str, str] | None = None,
        scheduler_parameters: Mapping[str, str | None] | None = None,
        quick: bool = True,
        slurm_partitions: Sequence[str] | None = None,
        node_settings: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        slurmd: bool = True,
    ) -> None:
        self.release = release
        self._slurmd = slurmd
        nodes = len(node_settings) if node_settings else nodes
        self.folder = Path(tempfile.mkdtemp(prefix="foretime-slurm-", dir="/tmp"))
        self.jobs_folder = self.folder / "jobs"
        self.table = self.folder / "table" / "foretime.table"
        self.disable_file = self.folder / "foretime.off"
        self._generation = 0
        self._ports = PortBlock()
        try:
            self.conf = slurm_conf.new_configuration(
                self.folder, nodes, cpus, conf or {}, self._ports
            )
            self.conf.node_settings = dict(node_settings or {})
            self._make_folders()
            for name, text in (files or {}).items():
                placed = text.replace("FOLDER", str(self.folder))
                (self.folder / "etc" / name).write_text(placed, encoding="utf-8")
            for number in range(8):
                (self.folder / f"gpu{number}").touch()
            if not quick:
                self.conf.scheduler_parameters.clear()
            self.conf.scheduler_parameters |= scheduler_parameters or {}
            if slurm_partitions is not None:
                self.conf.slurm_partitions = list(slurm_partitions)
            slurm_conf.write_accounts(self.folder)
            slurm_conf.write_configuration(self.folder, self.conf, release)
            self.commands = slurm_conf.write_commands(self.folder, release)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            self._ports.close()
            raise
        self.namespace = SlurmNamespace(self.folder, release)
        try:
            (self.folder / "run/namespace.pid").write_text(str(self.namespace.pid))
            self._start_munge()
            self.start_slurmctld("-c")
            if slurmd:
                for name in self.conf.node_names:
                    self.start_slurmd(name)
                self.wait_for(self._all_idle, "the nodes to be idle", READY_S)
        except BaseException:
            self.stop()
            raise

    # Bringing it up -------------------------------------------------------------------------------

    def _make_folders(self) -> None:
        self.folder.chmod(0o755)
        owners = {"etc": 0, "munge": MUNGE_UID, "jobs": 0, "log": SLURM_UID, "run": SLURM_UID}
        owners |= {"state": SLURM_UID, "table": SLURM_UID, "spool": SLURM_UID}
        for name, owner in owners.items():
            (self.folder / name).mkdir()
            os.chown(self.folder / name, owner, owner)
        self.jobs_folder.chmod(0o1777)
        for name in self.conf.node_names:
            (self.folder / "spool" / name).mkdir()

    def _start_munge(self) -> None:
        munge = self.folder / "munge"
        key = munge / "key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        os.chown(key, MUNGE_UID, MUNGE_UID)
        self.namespace.start(
            [
                *("munged", "--foreground", "--num-threads=2", f"--key-file={key}"),
                *(f"--socket={munge}/socket", f"--pid-file={munge}/pid"),
                *(f"--log-file={munge}/log", f"--seed-file={munge}/seed"),
            ],
            "munge",
            log=self.folder / "log/munged.out",
        )
        self.wait_for((munge / "socket").exists, "munge", READY_S)

    def start_slurmctld(self, *options: str) -> None:
        """Start slurmctld and wait until it answers."""
        self.slurmctld = self.namespace.start(
            ["slurmctld", "-D", *options], log=self.folder / "log/slurmctld.out"
        )
        self.wait_for(self.answers, "slurmctld to answer", READY_S)

    def stop_slurmctld(self, signal: str = "TERM") -> None:
        """End slurmctld and wait until it is gone."""
        pid = (self.folder / "run/slurmctld.pid").read_text().strip()
        self.namespace.run(["kill", f"-{signal}", pid])
        self.slurmctld.wait(READY_S)

    def restart_slurmctld(self) -> None:
        """End slurmctld and start it anew; jobs stay. Waits until it knows its nodes again."""
        self.stop_slurmctld()
        self.start_slurmctld()
        self._wait_for_nodes()

    def _wait_for_nodes(self) -> None:
        if not self._slurmd:
            return

        def known() -> bool:
            states = self.run(["sinfo", "-h", "-N", "-o", "%T"]).stdout.split()
            return bool(states) and not any("unk" in state or "*" in state for state in states)

        self.wait_for(known, "the nodes to register", READY_S)

    def start_slurmd(self, name: str) -> None:
        """Start the daemon of a node."""
        self.namespace.start(
            ["slurmd", "-D", "-N", name], log=self.folder / f"log/slurmd-{name}.out"
        )

    def answers(self) -> bool:
        """Say whether slurmctld answers."""
        if self.slurmctld.poll() is not None:
            raise RuntimeError(f"slurmctld ended:\n{self.log_tail()}")
        return " is UP" in self.run(["scontrol", "ping"]).stdout

    def _all_idle(self) -> bool:
        states = self.run(["sinfo", "-h", "-N", "-o", "%T"]).stdout.split()
        return len(states) >= self.conf.nodes and set(states) == {"idle"}

    def stop(self) -> None:
        """End every process of the cluster and remove its folder."""
        self.namespace.end()
        self._ports.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Using it -------------------------------------------------------------------------------------

    def run(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        stdin: str | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a user on the cluster; one of Slurm's is this release's."""
        own = self.commands / argv[0]
        program = [str(own), *argv[1:]] if own.exists() else list(argv)
        return self.namespace.run(
            program,
            user,
            stdin=stdin,
            environment={"PWD": str(self.jobs_folder), **(environment or {})},
            timeout_s=timeout_s,
        )

    def checked(
        self,
        argv: Sequence[str],
        user: str = "root",
        *,
        stdin: str | None = None,
        timeout_s: float = 60,
    ) -> str:
        """Run a command that must succeed; gives its output."""
        reply = self.run(argv, user, stdin=stdin, timeout_s=timeout_s)
        if reply.returncode:
            raise RuntimeError(
                f"{' '.join(argv)} as {user} answered {reply.returncode}:"
                f" {reply.stdout}{reply.stderr}\n{self.log_tail()}"
            )
        return reply.stdout

    def sbatch(self, *options: str, user: str = "alice", script: str = "sleep 3600") -> str:
        """Submit a job that must be accepted; gives its id."""
        return self.checked(
            ["sbatch", "--parsable", f"--chdir={self.jobs_folder}", "--output=/dev/null", *options],
            user,
            stdin=f"#!/bin/bash\n{script}\n",
        ).strip()

    def try_sbatch(
        self,
        *options: str,
        user: str = "alice",
        script: str = "sleep 3600",
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[str]:
        """Submit a job that may be refused."""
        return self.run(
            ["sbatch", "--parsable", f"--chdir={self.jobs_folder}", "--output=/dev/null", *options],
            user,
            stdin=f"#!/bin/bash\n{script}\n",
            timeout_s=timeout_s,
        )

    def job(self, job_id: str) -> dict[str, str]:
        """Give what ``scontrol show job`` says of one job, times in epoch seconds."""
        return self._records("job", job_id)[0]

    def jobs(self, job_id: str = "") -> list[dict[str, str]]:
        """Give what it says of all jobs, or of an array's or a heterogeneous job's parts."""
        return self._records("job", job_id)

    def _records(self, kind: str, name: str) -> list[dict[str, str]]:
        text = self.run(
            ["scontrol", "--oneliner", "show", kind, *filter(None, [name])],
            environment={"SLURM_TIME_FORMAT": "%s"},
        ).stdout
        return records_of(text)

    def scontrol(self, *words: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Run scontrol; the reply may be a refusal."""
        return self.run(["scontrol", *words], user)

    def sacct(self, *fields: str, job_id: str = "") -> list[dict[str, str]]:
        """Give accounting's records of all jobs, or of one (needs `add_accounting`)."""
        names = fields or ("JobID", "State", "Timelimit", "ElapsedRaw")
        text = self.checked(
            [
                *("sacct", "--noheader", "--parsable2", "--allocations", "--starttime=2020-01-01"),
                *(f"--format={','.join(names)}", f"--jobs={job_id}" if job_id else "--allusers"),
            ]
        )
        return [dict(zip(names, line.split("|"), strict=True)) for line in text.splitlines()]

    def wait_for(self, condition: Callable[[], object], what: str, timeout_s: float = 60) -> None:
        """Wait until a condition holds.

        Raises
        ------
        TimeoutError
            If it doesn't in time; with the end of slurmctld's log.
        """
        until = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"waited {timeout_s} s for {what}\n{self.log_tail()}")
            time.sleep(_POLL_S)

    def wait_for_state(self, job_id: str, *states: str, timeout_s: float = 60) -> dict[str, str]:
        """Wait until a job, with all of its tasks, is in one of these states; gives it."""
        self.wait_for(
            lambda: all(job["JobState"] in states for job in self.jobs(job_id)),
            f"job {job_id} to be {' or '.join(states)}",
            timeout_s,
        )
        return self.job(job_id)

    def wait_for_end(self, job_id: str, timeout_s: float = 60) -> dict[str, str]:
        """Wait until a job has ended; gives it."""
        return self.wait_for_state(job_id, *_ENDED, timeout_s=timeout_s)

    def log_tail(self, lines: int = 30) -> str:
        """Give the end of slurmctld's log."""
        path = self.folder / "log/slurmctld.log"
        if not path.exists():
            path = self.folder / "log/slurmctld.out"
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])

    # Changing it ----------------------------------------------------------------------------------

    def set_conf(
        self,
        values: Mapping[str, str | None] | None = None,
        *,
        scheduler_parameters: Mapping[str, str | bool | None] | None = None,
        slurm_partitions: Sequence[str] | None = None,
        restart: bool = False,
    ) -> None:
        """Change slurm.conf and have slurmctld read it again, or restart it.

        Parameters
        ----------
        values
            Keys and values; ``None`` takes the key out.
        scheduler_parameters
            Names and values, ``None`` for a name without one; ``False`` takes the name out.
        slurm_partitions
            All of them, anew.
        restart
            Restart slurmctld, which else reads it anew: some keys count from a start on alone.
        """
        for key, value in (values or {}).items():
            if value is None:
                self.conf.values.pop(key, None)
            else:
                self.conf.values[key] = value
        for name, setting in (scheduler_parameters or {}).items():
            if setting is False:
                self.conf.scheduler_parameters.pop(name, None)
            else:
                self.conf.scheduler_parameters[name] = None if setting is True else setting
        if slurm_partitions is not None:
            self.conf.slurm_partitions = list(slurm_partitions)
        slurm_conf.write_configuration(self.folder, self.conf, self.release)
        if restart:
            self.restart_slurmctld()
        else:
            self.checked(["scontrol", "reconfigure"])
            self.wait_for(self.answers, "slurmctld to answer", READY_S)
            self._wait_for_nodes()

    def add_accounting(self, *mariadb_options: str) -> None:
        """Add MariaDB and slurmdbd, and the cluster to it; skips the test if they are missing."""
        _skip_if(slurm_accounting.why_no_accounting())
        values = slurm_accounting.start_accounting(
            self.folder, self.namespace, self.wait_for, self._ports.take(), *mariadb_options
        )
        self.conf.values |= values
        slurm_conf.write_configuration(self.folder, self.conf, self.release)
        self.wait_for(
            lambda: self.run(["sacctmgr", "-n", "show", "cluster"]).returncode == 0,
            "slurmdbd to answer",
            slurm_accounting.READY_S,
        )
        # On a busy machine slurmdbd has answered a first change with "Unspecified error".
        self.wait_for(
            lambda: (
                self.checked(["sacctmgr", "-n", "show", "cluster"]).strip()
                or self.run(["sacctmgr", "-i", "add", "cluster", "lab"]).returncode == 0
            ),
            "slurmdbd to know the cluster",
            slurm_accounting.READY_S,
        )
        self.stop_slurmctld()
        # Newer ones note an id of their own there, which isn't the one that slurmdbd gives.
        (self.folder / "state/clustername").unlink(missing_ok=True)
        self.start_slurmctld()
        self._wait_for_nodes()

    def sacctmgr(self, *words: str) -> str:
        """Change accounting's associations and QOS; it must succeed. Gives what is answered."""
        return self.checked(["sacctmgr", "-i", *words])

    def add_rest(self) -> SlurmRest:
        """Add slurmrestd, with JWT; skips the test if it is missing."""
        _skip_if(slurm_rest.why_no_rest(self.release))
        self.set_conf(slurm_rest.write_jwt_key(self.folder), restart=True)
        rest = slurm_rest.start_rest(self.folder, self.namespace, self._ports.take())
        self.wait_for(rest.socket.exists, "slurmrestd", READY_S)
        return rest

    def token(self, user: str = "slurm") -> str:
        """Give a JSON Web Token for a user (needs `add_rest`)."""
        reply = self.checked(["scontrol", "token", f"username={user}", "lifespan=3600"])
        return reply.strip().removeprefix("SLURM_JWT=")

    def install_hook(
        self,
        rows: Sequence[TableRow] = (),
        settings: TableSettings | None = None,
        *,
        soft_limit: bool = True,
    ) -> None:
        """Install the hook as shipped, and publish a table.

        With the mechanism time-min ``SchedulerParameters`` gets time_min_as_soft_limit, unless
        ``soft_limit`` is false; with rewrite-limit PrologSlurmctld becomes Foretime's.
        """
        chosen = settings or self.default_settings()
        rewriting = chosen.mechanism is Mechanism.REWRITE_LIMIT
        etc = self.folder / "etc"
        shutil.copy(PLUGIN / "foretime.lua", etc)
        script = (PLUGIN / "job_submit.lua").read_text(encoding="utf-8")
        for shipped, ours in (
            ("/var/lib/foretime/table/foretime.table", self.table),
            ("/etc/foretime/foretime.off", self.disable_file),
        ):
            assert shipped in script
            script = script.replace(shipped, str(ours))
        (etc / "job_submit.lua").write_text(script, encoding="utf-8")
        self.publish(rows, chosen)
        values = {"JobSubmitPlugins": "lua"}
        parameters: dict[str, str | bool | None] = {}
        if rewriting:
            shutil.copy(PLUGIN / "prolog_slurmctld", etc)
            values["PrologSlurmctld"] = "/etc/slurm/prolog_slurmctld"
        elif soft_limit:
            parameters["time_min_as_soft_limit"] = True
        restart = rewriting and "PrologSlurmctld" not in self.conf.values
        self.set_conf(values, scheduler_parameters=parameters, restart=restart)

    def default_settings(self) -> TableSettings:
        """Settings that change jobs from one minute on, by the mechanism that suits the release."""
        native = self.release.soft_limit
        return TableSettings(
            mode=Mode.ENFORCE,
            mechanism=Mechanism.TIME_MIN if native else Mechanism.REWRITE_LIMIT,
            minimum_adjustment=0.0,
            minimum_scheduled_time_s=60,
        )

    def publish(
        self, rows: Sequence[TableRow], settings: TableSettings | None = None, **table: object
    ) -> None:
        """Publish a table with these rows; ``table``: other fields of `Table`."""
        self._generation += 1
        now = int(time.time())
        content = Table(
            self._generation,
            now,
            now + 86_400,
            settings or self.default_settings(),
            rows=tuple(rows),
        )
        write_table(self.table, replace(content, **table))  # type: ignore[arg-type]
        os.chown(self.table, SLURM_UID, SLURM_UID)

    def remove_hook(self) -> None:
        """Take the hook out of slurm.conf; jobs stay as they are."""
        self.set_conf(
            {"JobSubmitPlugins": None, "PrologSlurmctld": None},
            scheduler_parameters={"time_min_as_soft_limit": False},
            restart="PrologSlurmctld" in self.conf.values,
        )


def records_of(text: str) -> list[dict[str, str]]:
    """Read what ``scontrol --oneliner show`` prints."""
    return [dict(re.findall(r"(\S+?)=(\S*)", line)) for line in text.splitlines() if "=" in line]


def _skip_if(missing: str) -> None:
    if missing:
        pytest.skip(missing)
