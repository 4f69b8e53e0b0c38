"""The daemon, ``foretime serve``, beside a test cluster, with a history to learn from."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.safety.heartbeat import heartbeat_path
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.settings.settings_file import to_toml
from foretime_sidecar.store.store import Store

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import SLURM_UID

_REQUESTED_S = 12_000
_READY_S = 120


class LiveSidecar:
    """A running daemon whose users have jobs behind them that ran for a fifth of their limit.

    Parameters
    ----------
    cluster
        The cluster, which has slurmdbd.
    users
        Users with a history: their jobs are planned with a fifth, whole minutes.
    more
        Settings by section and key.
    pyslurm
        The folder that pyslurm is installed in, which then asks Slurm.

    Attributes
    ----------
    settings
        The daemon's.
    log
        What it wrote to stderr.
    """

    def __init__(
        self,
        cluster: SlurmCluster,
        users: tuple[str, ...] = ("alice",),
        more: dict[str, dict[str, object]] | None = None,
        pyslurm: Path | None = None,
    ) -> None:
        self.cluster = cluster
        self.folder = cluster.folder / "sidecar"
        self.folder.mkdir()
        self.log = self.folder / "log"
        # What the daemon writes there slurmctld may read.
        os.chown(cluster.table.parent, 0, SLURM_UID)
        cluster.table.parent.chmod(0o2770)
        mechanism = "slurm-soft-limit" if cluster.release.soft_limit else "rewrite-limit"
        # Under rewrite-limit t_sched must outlast the watchdog.
        least_s = 60 if cluster.release.soft_limit else 180
        settings = {
            "scheduler": {
                "commands_dir": str(cluster.commands),
                "client": "commands" if pyslurm is None else "pyslurm",
                "poll_interval_s": 1,
                "longest_poll_interval_s": 1,
            },
            "store": {"path": str(self.folder / "store")},
            "accuracy": {
                "scheme": "user",
                "percentile": 0.5,
                "minimum_adjustment": 0.0,
                "minimum_scheduled_time_s": least_s,
                "class_bounds_s": [],
                "imagined_job": False,
                "within_largest_job": False,
            },
            "table": {
                "path": str(cluster.table),
                "publish_interval_s": 1,
                "valid_for_s": 60,
                "watchdog_after_s": 60,
            },
            "hook": {"mode": "enforce", "mechanism": mechanism},
            "queue_order": {"order": "none"},
            "api": {"listen": f"unix:{self.folder}/socket"},
        }
        for section, values in (more or {}).items():
            settings[section] = {**settings.get(section, {}), **values}  # type: ignore[dict-item]
        self.settings = Settings.model_validate(settings)
        self.settings_file = self.folder / "foretime.toml"
        self.settings_file.write_text(to_toml(self.settings))
        self._environment = {} if pyslurm is None else {"PYTHONPATH": str(pyslurm)}
        self._learn(users)
        self._daemon: subprocess.Popen[bytes] | None = None
        self.start()

    def _learn(self, users: tuple[str, ...]) -> None:
        now = int(time.time())
        store = Store(self.folder / "store")
        records = []
        for number, user in enumerate(user for user in users for _ in range(100)):
            end = now - 3600 + number
            submitted = end - _REQUESTED_S
            request = JobRequest(
                f"{10_000_000 + number}", user, None, 1, _REQUESTED_S, submitted, "main", None
            )
            runtime = _REQUESTED_S // 5
            job = FinishedJob(request, end - runtime, end, runtime, Ending.COMPLETED)
            records.append(FinishedRecord(job, submitted, "COMPLETED"))
        store.add_finished(records, Cursor(now - 60))
        store.close()

    def start(self) -> None:
        """Start the daemon and wait until it has published a table."""
        before = self.table_inode()
        daemon = self.launch()

        def published() -> bool:
            if daemon.poll() is not None:
                raise RuntimeError(f"the daemon ended: {self.log.read_text()}")
            return self.table_inode() not in ("", before)

        self.cluster.wait_for(published, "the daemon to publish a table", _READY_S)

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the daemon within the cluster's namespace, and don't wait for it."""
        program = Path(sys.executable).with_name("foretime")
        command = f"echo $$ >{self._pid_file}; exec {program} serve --settings {self.settings_file}"
        self._daemon = self.cluster.namespace.start(
            ["sh", "-c", command],
            log=self.log,
            in_root=False,
            environment=self._environment,
        )
        return self._daemon

    @property
    def _pid_file(self) -> Path:
        return self.cluster.folder / "run/sidecar.pid"

    def wait_for_look(self) -> None:
        """Wait until a look that began after now has done what it had to do."""
        signs = {self._last_look()}

        def looked() -> bool:
            signs.add(self._last_look())
            return len(signs) >= 3  # The first new one may be of a look that had begun.

        self.cluster.wait_for(looked, "the daemon to look")

    def _last_look(self) -> str:
        alive = str(heartbeat_path(self.settings.table))
        return self.cluster.run(["stat", "--format=%y", alive]).stdout.strip()

    def table_inode(self) -> str:
        """Tell one table from the next; empty without one."""
        return self.cluster.run(["stat", "--format=%i", str(self.cluster.table)]).stdout.strip()

    def end(self) -> None:
        """End it with SIGTERM."""
        self._send("TERM")

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._send("KILL")

    def _send(self, signal: str) -> None:
        if self._daemon is not None:
            self.cluster.run(["kill", f"-{signal}", self._pid_file.read_text().strip()])
            self._daemon.wait(_READY_S)
            self._daemon = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
