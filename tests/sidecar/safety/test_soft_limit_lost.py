"""When Slurm loses the soft limit, waiting jobs lose their time_min (docs/left_alone.md: V2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.client import QueueState
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sidecar.table.table import Mode, read_table
from foretime_sim.mocks.slurm.hook import Fields, HookReply
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup, Submission
from foretime_sim.policies.policy import Correction, Policy

START = 1_700_000_000


class Planning:
    """A hook that gives every job of an hour ten minutes, but dave's, who asked for it himself."""

    def submit(
        self, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        if job["user_name"] == "dave" or job.get("time_min"):
            return HookReply(0, {}, [])
        note = "foretime:treq=60,tmin=10,generation=1"
        return HookReply(0, {"time_min": 10, "admin_comment": note}, [])

    def modify(
        self, request: Fields, job: Fields, partitions: Mapping[str, Fields], uid: int, now: int
    ) -> HookReply:
        return HookReply(0, {}, [])


class Cluster:
    """One running job, three waiting ones; the soft limit can be taken from slurm.conf."""

    def __init__(self, folder: Path, mode: str = "enforce") -> None:
        policy = Policy(correction=Correction.SLURM)
        self.slurm = MockSlurm(SlurmSetup(8), policy, Planning(), START)
        self.soft_limit, self.refuses, self.no_accounting = True, False, False
        self.folder = folder
        self.store = Store(folder / "store.sqlite")
        self.sidecar = self.begin(mode)
        for user, time_min in (("ann", None), ("ann", None), ("dave", None), ("dave", 300)):
            self.slurm.submit(Submission(user, "p", None, 8, 3600, 3000, time_min=time_min))
        self.slurm.advance(START + 60)
        self.now = START + 60

    def begin(self, mode: str) -> Sidecar:
        settings = Settings.model_validate(
            {
                "scheduler": {"history_days": 1},
                "table": {"path": str(self.folder / "table")},
                "hook": {"mode": mode, "disable_file": str(self.folder / "off")},
                "queue_order": {"order": "none"},
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
    assert cluster.time_min(QueueState.PENDING) == [600, None, 300]
    cluster.soft_limit = False
    cluster.poll()  # long before the next table was due
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300]
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
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300]


def test_also_if_it_was_lost_while_the_daemon_was_down(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit = False
    # Even if the administrator told the hook to observe meanwhile.
    cluster.sidecar = cluster.begin("observe")
    cluster.poll()
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300]


def test_it_waits_neither_for_the_accounting_nor_for_the_disk(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit, cluster.no_accounting = False, True
    with pytest.raises(SchedulerError, match="slurmdbd"):
        cluster.poll()
    assert cluster.mode() is Mode.ENFORCE, "no new table yet"
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300]
    cluster.slurm.submit(Submission("bob", "p", None, 8, 3600, 3000))
    cluster.no_accounting = False
    cluster.poll()
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300, None]


@pytest.mark.parametrize("restarts", [0, 2])
def test_waiting_jobs_are_mended_when_enforce_becomes_observe(
    restarts: int, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.refuses = True
    for _ in range(restarts):
        cluster.sidecar = cluster.begin("observe")
        with pytest.raises(SchedulerError):
            cluster.poll()
    cluster.refuses = False
    cluster.store.close()
    cluster.store = Store(":memory:")  # it is the jobs themselves that tell
    cluster.sidecar = cluster.begin("observe")
    cluster.poll()
    assert cluster.mode() is Mode.OBSERVE
    assert cluster.time_min(QueueState.PENDING) == [None, None, 300], "a user's own stays"
    assert cluster.time_min(QueueState.RUNNING) == [600]


def test_enforcing_goes_on_when_the_soft_limit_is_back(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    cluster.poll()
    cluster.soft_limit = False
    cluster.poll()
    cluster.soft_limit = True
    cluster.poll()
    assert cluster.mode() is Mode.ENFORCE
    assert cluster.time_min(QueueState.PENDING) == [600, None, 300], "and its jobs are planned"
