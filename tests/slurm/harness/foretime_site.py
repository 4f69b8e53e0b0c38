"""Foretime beside a live cluster: a sidecar that a test polls, with a history of its own making."""

from __future__ import annotations

import os
import time
from typing import Any

from foretime_estimators.jobs.jobs import Ending, FinishedJob, JobRequest
from foretime_sidecar.clients.client import Cursor, FinishedRecord
from foretime_sidecar.clients.slurm.commands import SlurmCommands, SubprocessRunner
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Table, TableRow, read_table

from tests.slurm.harness.slurm_cluster import SlurmCluster
from tests.slurm.harness.slurm_conf import SLURM_UID, USERS

# Of twenty minutes asked for two were used, so t_sched of -t 20 is 2 min.
ASKED_MIN, USED_MIN = 20, 2
PLANNED = [TableRow("user", user, 0, 100_000) for user in USERS]


def _finished(number: int, user: str, used_min: int, end: int) -> FinishedRecord:
    submitted = end - ASKED_MIN * 60
    request = JobRequest(f"{10_000_000 + number}", user, None, 1, ASKED_MIN * 60, submitted, "main")
    job = FinishedJob(request, end - used_min * 60, end, used_min * 60, Ending.COMPLETED)
    return FinishedRecord(job, submitted, "COMPLETED")


class ForetimeSite:
    """A sidecar for a cluster, which acts when a test says so.

    Parameters
    ----------
    cluster
        The cluster, with the hook installed.
    breaker
        Of the section ``breaker``.
    estimator
        That of the scheme ``learned``; ``None``: the users' accuracies count.
    hook
        Of the section ``hook``; ``mode`` is enforce unless given.
    """

    def __init__(
        self,
        cluster: SlurmCluster,
        *,
        breaker: dict[str, Any] | None = None,
        estimator: str | None = None,
        **hook: Any,
    ) -> None:
        self.cluster = cluster
        off = cluster.folder / "foretime.off"
        self.settings = Settings.model_validate(
            {
                "scheduler": {
                    "commands_dir": str(cluster.commands),
                    "poll_interval_s": 1,
                    "longest_poll_interval_s": 1,
                    "attempts": 1,
                    "history_days": 1,
                },
                "table": {"path": str(cluster.table), "publish_interval_s": 1},
                "accuracy": {
                    "scheme": "user" if estimator is None else "learned",
                    "minimum_adjustment": 0.0,
                    "minimum_scheduled_time_s": 60,
                    "threshold": 10,
                    "class_bounds_s": [],
                    "imagined_job": False,
                    "within_largest_job": False,
                },
                "learned": {"estimator": estimator or "similar", "refine_interval_s": 0},
                "hook": {"mode": "enforce", "disable_file": str(off)} | hook,
                "queue_order": {"order": "none"},
                "store": {"path": str(cluster.folder / "store")},
                "breaker": breaker or {},
            }
        )
        runner = SubprocessRunner(str(cluster.commands), attempts=1)
        self.client = SlurmCommands(runner)
        self.store = Store(self.settings.store.path)
        self._remember()
        self.sidecar = Sidecar(self.settings, self.client, self.store)

    def restart(self) -> None:
        """Begin anew with nothing but the store, as a daemon that was killed."""
        self.store.close()
        self.store = Store(self.settings.store.path)
        self.sidecar = Sidecar(self.settings, self.client, self.store)

    def _remember(self) -> None:
        now = int(time.time())
        records = [
            _finished(number, USERS[number % len(USERS)], USED_MIN, now - 7200 + number)
            for number in range(40 * len(USERS))
        ]
        self.store.add_finished(records, Cursor(now - 60))

    def finish(self, user: str, *used_min: int) -> None:
        """Have jobs of a user's end now that took so many of the minutes that they asked for."""
        now, first = int(time.time()), self.store.finished_count()
        records = [
            _finished(first + number, user, minutes, now) for number, minutes in enumerate(used_min)
        ]
        self.store.add_finished(records, Cursor(now))
        self.publish()

    def look(self) -> None:
        """Look at the queue, as the daemon does at each poll."""
        self.sidecar.look(int(time.time()))

    def poll(self) -> None:
        """Look and poll; needs accounting. The table is SlurmUser's to open, as on a real site."""
        now = int(time.time())
        self.sidecar.look(now)
        self.sidecar.poll(now)
        os.chown(self.cluster.table, SLURM_UID, SLURM_UID)

    def publish(self) -> None:
        """Publish a table from the history without asking the accounting."""
        now = int(time.time())
        self.sidecar.start(now)
        self.sidecar._estimate(now)
        self.sidecar._publish(now)
        os.chown(self.cluster.table, SLURM_UID, SLURM_UID)

    def table(self) -> Table:
        """Give the table in place."""
        return read_table(self.cluster.table)
