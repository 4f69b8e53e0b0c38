"""What one look asks Slurm for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from foretime_sidecar.clients.slurm.commands import SlurmCommands
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


def test_a_look_asks_nothing_twice(tmp_path: Path) -> None:
    """Each command is a request to slurmctld, and jobs start as late as the look ends."""
    machine = Machine.flat(4)
    policy = Policy(backfill=Slurm(SlurmSite(machine)))
    slurm = MockSlurm(SlurmSetup(4, machine=machine), policy, None, NOW)
    slurm.submit(submission(4, 3600, user="ann"))
    slurm.submit(submission(4, 3600, user="bob"))
    slurm.advance(NOW + 60)
    asked: Counter[str] = Counter()

    def run(argv: Sequence[str], stdin: str | None = None) -> object:
        asked[" ".join(argv)] += 1
        return slurm.run(argv, stdin)

    settings = Settings.model_validate(
        {
            "hook": {"mode": "enforce"},
            "store": {"path": ":memory:"},
            "table": {"path": str(tmp_path / "table")},
        }
    )
    sidecar = Sidecar(settings, SlurmCommands(run), Store(":memory:"))
    sidecar.poll(slurm.now)
    asked.clear()
    sidecar.look(slurm.now)
    assert asked["squeue --all --json"] == 1
    assert max(asked.values()) == 1, asked
