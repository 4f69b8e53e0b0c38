"""When Slurm loses time_min_as_soft_limit, waiting jobs lose their time_min (SCHEDULERS: V2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.errors import SchedulerError
from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.clients.slurm_commands import SlurmCommands
from foretime_sidecar.settings import Settings
from foretime_sidecar.sidecar import Sidecar
from foretime_sidecar.store import Store
from foretime_sidecar.table import Mode, read_table
from foretime_sim.mock_slurm import MockSlurm, SlurmSetup, Submission
from foretime_sim.policy import Correction, Policy

START = 1_700_000_000


class Cluster:
    """One running job, three waiting ones; the soft limit can be taken from slurm.conf."""

    def __init__(self, folder: Path, mode: str = "enforce") -> None:
        policy = Policy(correction=Correction.SLURM)
        self.slurm = MockSlurm(SlurmSetup(8), policy, None, START)
        self.soft_limit, self.refuses, self.no_accounting = True, False, False
        self.folder = folder
        self.store = Store(folder / "store.sqlite")
        self.sidecar = self.begin(mode)
        for time_min in (600, 600, None, 3600):
            self.slurm.submit(Submission("ann", "p", None, 8, 3600, 3000, time_min=time_min))
        self.slurm.advance(START + 60)
        self.now = START + 60

    def begin(self, mode: str) -> Sidecar:
        settings = Settings.model_validate(
            {
                "scheduler": {"history_days": 1},
                "table": {"path": str(self.folder / "table")},
                "hook": {"mode": mode},
            }
        )
        return Sidecar(settings, SlurmCommands(self, 0), self.store)

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        if stdin is not None and self.refuses:
            raise SchedulerError("scontrol failed")
        if argv[0] == "sacct" and self.no_accounting:
            raise SchedulerError("sacct failed; check slurmdbd")
        reply = self.slurm.run(argv, stdin)
        if isinstance(reply, str) and not self.soft_limit:
            return reply.replace(",time_min_as_soft_limit", "")
        return reply

    def poll(self) -> None:
        self.now += 1
        self.slurm.advance(self.now)
        try:
            self.sidecar.look(self.now)
        finally:  # as the daemon does it
            self.sidecar.poll(self.now)

    def time_min(self, state: QueueState) -> list[Any]:
        jobs = SlurmCommands(self.slurm.run).queue().jobs
        return [job.time_min for job in jobs if job.state is state]

    def mode(self) -> Mode:
        return read_table(self.folder / "table").settings.mode


def test_waiting_jobs_lose_their_time_min_at_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    assert cluster.mode() is Mode.ENFORCE
    assert cluster.time_min(QueueState.PENDING) == [600, None, 3600]
    cluster.soft_limit = False
    cluster.poll()  # long before the next table was due
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]
    assert cluster.time_min(QueueState.RUNNING) == [600]


def test_it_is_tried_again_until_it_is_done(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit, cluster.refuses = False, True
    with pytest.raises(SchedulerError):
        cluster.poll()
    assert cluster.mode() is Mode.OBSERVE
    cluster.refuses = False
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]


def test_also_if_it_was_lost_while_the_daemon_was_down(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit = False
    # Even if the administrator told the hook to observe meanwhile.
    cluster.sidecar = cluster.begin("observe")
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]


def test_it_waits_neither_for_the_accounting_nor_for_the_disk(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit, cluster.no_accounting = False, True
    with pytest.raises(SchedulerError, match="slurmdbd"):
        cluster.poll()
    assert cluster.mode() is Mode.ENFORCE, "no new table yet"
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]
    cluster.slurm.submit(Submission("bob", "p", None, 8, 3600, 3000, time_min=600))
    cluster.no_accounting = False
    cluster.poll()
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600, None]


def test_to_observe_after_enforcing_clears_once(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.sidecar = cluster.begin("observe")
    cluster.refuses = True
    with pytest.raises(SchedulerError):
        cluster.poll()
    # A restart in between does not make it forget.
    cluster.sidecar = cluster.begin("observe")
    cluster.refuses = False
    cluster.poll()
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]
    assert cluster.time_min(QueueState.RUNNING) == [600]
    cluster.slurm.submit(Submission("bob", "p", None, 8, 3600, 3000, time_min=600))
    for _ in range(2):
        cluster.sidecar = cluster.begin("observe")
        cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600, 600], "a user's own stays"


def test_enforcing_is_remembered_over_restarts(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.refuses = True
    for _ in range(2):
        cluster.sidecar = cluster.begin("observe")
        with pytest.raises(SchedulerError):
            cluster.poll()
    cluster.soft_limit, cluster.refuses = False, False
    cluster.sidecar = cluster.begin("observe")
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]


def test_the_table_in_place_tells_it_to_a_new_store(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.store.close()
    cluster.store = Store(":memory:")
    cluster.sidecar = cluster.begin("observe")
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 3600]


def test_users_keep_their_own_time_min_where_the_hook_never_gave_one(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, mode="observe")
    cluster.poll()
    cluster.soft_limit = False
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [600, None, 3600]


def test_enforcing_goes_on_when_the_soft_limit_is_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit = False
    cluster.poll()
    cluster.soft_limit = True
    cluster.poll()
    assert cluster.mode() is Mode.ENFORCE
