"""What one look asks Slurm for."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.slurm.commands import CommandRunner, SlurmCommands
from foretime_sidecar.daemon.sidecar import Sidecar
from foretime_sidecar.settings.settings import Settings
from foretime_sidecar.store.store import Store
from foretime_sim.machines.machine import Machine
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.site import SlurmSite

from tests.support.slurm.ordered_slurm import submission

NOW = 1_800_000_000


def _slurm() -> MockSlurm:
    """Give a Slurm with one job that runs and one that waits."""
    machine = Machine.flat(4)
    policy = Policy(backfill=Slurm(SlurmSite(machine)))
    slurm = MockSlurm(SlurmSetup(4, machine=machine), policy, None, NOW)
    slurm.submit(submission(4, 3600, user="ann"))
    slurm.submit(submission(4, 3600, user="bob"))
    slurm.advance(NOW + 60)
    return slurm


def _sidecar(tmp_path: Path, run: CommandRunner) -> Sidecar:
    settings = Settings.model_validate(
        {
            "hook": {"mode": "enforce"},
            "store": {"path": ":memory:"},
            "table": {"path": str(tmp_path / "table")},
        }
    )
    return Sidecar(settings, SlurmCommands(run), Store(":memory:"))


def test_a_look_asks_nothing_twice(tmp_path: Path) -> None:
    """Each command is a request to slurmctld, and jobs start as late as the look ends."""
    slurm = _slurm()
    asked: Counter[str] = Counter()

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        asked[" ".join(argv)] += 1
        return slurm.run(argv, stdin)

    sidecar = _sidecar(tmp_path, run)
    sidecar.poll(slurm.now)
    asked.clear()
    sidecar.look(slurm.now)
    assert asked["squeue --all --json"] == 1
    assert max(asked.values()) == 1, asked


def test_garbage_is_searched_for_after_a_look_alone(tmp_path: Path) -> None:
    """Also after one that failed."""
    slurm = _slurm()
    down = searches = False

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        nonlocal searches
        searches |= gc.isenabled()
        if down and argv[0] == "squeue":
            raise SchedulerError("squeue failed")
        return slurm.run(argv, stdin)

    sidecar = _sidecar(tmp_path, run)
    sidecar.poll(slurm.now)
    searches = False
    sidecar.look(slurm.now)
    assert gc.isenabled()
    down = True
    with pytest.raises(SchedulerError, match="squeue failed"):
        sidecar.look(slurm.now + 30)
    assert gc.isenabled()
    assert not searches
