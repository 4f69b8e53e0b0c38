"""A live cluster whose head job waits beside idle CPUs, and a daemon that changes its order.

The daemon looks when a test says so. What it is told and what it does can be spoilt.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from foretime_estimators.jobs.errors import ForetimeError
from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord, JobChange
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.clients.slurm.controller import SlurmController
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.safety.planning_switch import give_back_on_slurm, switch_off
from foretime_sidecar.safety.watchdog import WatchdogResult, watch
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.store.store import Store

from tests.slurm.harness.slurm_cluster import SlurmCluster

LIMIT_MIN = 120
_HOURS_AGO = 8 * 3600
_TIMEOUT_S = 120


class WithoutAccounting(SlurmCommands):
    """A client of a Slurm whose past is in the store already.

    Attributes
    ----------
    before_update
        What is done before the next change, once.
    """

    def __init__(self, runner: SubprocessRunner) -> None:
        super().__init__(runner, 0)
        self.before_update: list[Callable[[], None]] = []

    def update(self, changes: Sequence[JobChange]) -> None:
        """Make changes, after what is to be done before."""
        while self.before_update:
            self.before_update.pop()()
        super().update(changes)

    def finished_since(
        self, cursor: Cursor, until: int | None = None
    ) -> tuple[list[FinishedRecord], Cursor]:
        """Nothing has finished since."""
        del until
        return [], cursor


def learn_alice_and_bob(store: Store) -> None:
    """Let alice's jobs of two hours have taken a minute, and bob's two hours."""
    now = int(time.time())
    records = []
    for number in range(80):
        user, runtime = (("alice", 60), ("bob", LIMIT_MIN * 60))[number % 2]
        submitted = now - _HOURS_AGO + 60 * number
        asked = JobRequest(
            f"{10_000_000 + number}", user, None, 1, LIMIT_MIN * 60, submitted, "main"
        )
        done = FinishedJob(asked, submitted, submitted + runtime, runtime, Ending.COMPLETED)
        records.append(FinishedRecord(done, submitted, "COMPLETED"))
    store.add_finished(records, Cursor(now - 60))


def leave_two_cpus_idle(cluster: SlurmCluster) -> str:
    """Have two of eight CPUs idle for an hour, until the job at the head can start; give that."""
    cluster.wait_for_state(cluster.sbatch("-n6", "-t60", user="bob"), "RUNNING")
    return cluster.sbatch("-n8", "-t10", user="bob")


def look(sidecar: Sidecar) -> None:
    """Have a daemon do what it does at each look."""
    sidecar.look(int(time.time()))
    sidecar.poll(int(time.time()))


class RaisingSite:
    """Foretime beside a cluster of two nodes with four CPUs each, two of which are idle.

    Attributes
    ----------
    cluster
        The cluster, with priority/multifactor.
    order
        How it changes the queue's order (``queue_order.order``).
    table, store, off
        The files of the settings.
    """

    def __init__(self, cluster: SlurmCluster, order: str) -> None:
        self.cluster = cluster
        self.order = order
        folder = cluster.folder / "foretime"
        folder.mkdir()
        self.table, self.store, self.off = (folder / name for name in ("table", "store", "off"))
        self._commands, self._spoilt = folder / "commands", folder / "spoilt"
        for each in (self._commands, self._spoilt):
            each.mkdir()
        for real in cluster.commands.iterdir():
            command = self._commands / real.name
            command.write_text(
                f"#!/bin/sh\nREAL={real}\n[ -e {self._spoilt / real.name} ] && . "
                f'{self._spoilt / real.name}\nexec $REAL "$@"\n'
            )
            command.chmod(0o755)
        self._stores: list[Store] = []
        self.write_settings("enforce")

    def write_settings(self, mode: str) -> None:
        """Write the settings that the next daemon, and every command, goes by."""
        self.settings = Settings.model_validate(
            {
                "scheduler": {"commands_dir": str(self._commands), "attempts": 1},
                "store": {"path": str(self.store)},
                "table": {"path": str(self.table)},
                "hook": {
                    "mode": mode if self.order == "start-now" else "observe",
                    "disable_file": str(self.off),
                },
                "queue_order": {"order": self.order if mode == "enforce" else "none"},
                "api": {"listen": f"unix:{self.table.parent}/socket"},
            }
        )
        (self.table.parent / "foretime.toml").write_text(to_toml(self.settings))

    def start(self) -> Sidecar:
        """Start a daemon, which has learned but not looked."""
        if not self.store.exists():
            store = Store(self.store)
            learn_alice_and_bob(store)
            store.close()
        self._stores.append(Store(self.store))
        runner = SubprocessRunner(str(self._commands), attempts=1)
        sidecar = Sidecar(self.settings, WithoutAccounting(runner), self._stores[-1])
        with contextlib.suppress(ForetimeError):  # it learns with its first poll
            sidecar.poll(int(time.time()))
        return sidecar

    def kill(self) -> None:
        """Lose the daemon, as by SIGKILL."""
        while self._stores:
            self._stores.pop().close()

    def watch(self) -> WatchdogResult:
        """Do what ``foretime watchdog`` does."""
        runner = SubprocessRunner(str(self._commands), attempts=1)
        return watch(self.settings, SlurmCommands(runner), time.time())

    def disable(self) -> list[str]:
        """Do what ``foretime disable`` does; give the jobs that got back what they had."""
        switch_off(self.off)
        return give_back_on_slurm(SlurmController(str(self._commands)), self.store)

    def run(self, *words: str) -> str:
        """Run ``foretime ...`` by the settings; it must succeed. Gives its output."""
        reply = subprocess.run(
            [
                *(str(Path(sys.executable).with_name("foretime")), *words),
                *("--settings", str(self.table.parent / "foretime.toml")),
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
        if reply.returncode:
            raise RuntimeError(f"foretime {' '.join(words)}: {reply.stdout}{reply.stderr}")
        return reply.stdout

    @contextlib.contextmanager
    def spoilt(self, command: str, script: str) -> Iterator[None]:
        """Run lines of shell in the place of a command, or before it; ``$REAL`` is the real one."""
        file = self._spoilt / command
        file.write_text(f"{script}\n")
        try:
            yield
        finally:
            file.unlink()

    def let_jobs_start(self, *, may: bool) -> None:
        """Drain all nodes, which outlasts a start of slurmctld, or put them back.

        Until both have answered, the head job fits nowhere, and does not stand before others: so
        none starts before.
        """
        state = "RESUME" if may else "DRAIN"
        self._update("PartitionName=main", "State=DOWN")
        self._update("NodeName=n[1-2]", f"State={state}", "Reason=test")
        self.cluster.wait_for(
            lambda: "*" not in self.cluster.run(["sinfo", "-h", "-N", "-o", "%T"]).stdout,
            "the nodes to respond",
        )
        self._update("PartitionName=main", "State=UP")

    def _update(self, *words: str) -> None:
        self.cluster.run(["scontrol", "update", *words])

    def factors(self) -> dict[str, int]:
        """Give the site factor of each job that Slurm weighs, as sprio prints it."""
        text = self.cluster.checked(["sprio", "--noheader", "--format=%i|%S"])
        return {
            name.strip(): int(factor)
            for name, factor in (line.split("|") for line in text.splitlines())
        }

    def submit(self, *options: str) -> str:
        """Submit a job that is expected to end within minutes, and asks for two hours."""
        job = self.cluster.sbatch("-n1", f"-t{LIMIT_MIN}", *options)
        self.cluster.wait_for(lambda: job in self.factors(), "its priority")
        return job
