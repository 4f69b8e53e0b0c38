"""A mock Slurm whose queue is put in order: what is sent to it, and how it may refuse."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_estimators.jobs.errors import SchedulerError
from foretime_sidecar.clients.slurm.commands import SlurmCommands
from foretime_sim.mocks.slurm.mock_slurm import MockSlurm
from foretime_sim.mocks.slurm.slurm_job import Submission


class Noting:
    """Runs the mock's commands, notes what is sent, and may fail."""

    def __init__(self, slurm: MockSlurm) -> None:
        self.slurm = slurm
        self.sent: list[str] = []
        self.config: dict[str, str] = {}
        self.qos: dict[str, str] = {}  # of jobs, by the name of a job or its array
        self.dies_at_update = False
        self.refuses = False

    def __call__(self, argv: Sequence[str], stdin: str | None = None) -> object:
        if stdin is not None:
            if self.dies_at_update:
                raise KeyboardInterrupt
            if self.refuses:
                raise SchedulerError("scontrol failed: Access/permission denied")
            self.sent += stdin.splitlines()[:-1]
        reply = self.slurm.run(argv, stdin)
        if argv[0] == "squeue" and self.qos and isinstance(reply, dict):
            for job in reply["jobs"]:
                array = job["array_job_id"]
                name = f"{array['number'] if isinstance(array, dict) else array or job['job_id']}"
                job["qos"] = self.qos.get(name, "normal")
        if list(argv) == ["scontrol", "show", "config"]:
            for name, value in self.config.items():
                reply = f"{reply}{name} = {value}\n"
        if argv[-1] == "federation" and "Federation" in self.config:
            return f"Federation: {self.config['Federation']}\n"
        return reply


def submission(
    processors: int, requested: int, array_id: int | None = None, user: str = "ann"
) -> Submission:
    return Submission(user, "p", None, processors, requested, requested, array_id=array_id)


def factors_of(world: Noting) -> dict[str, int]:
    return dict(SlurmCommands(world).site_factors())


def in_order(world: Noting) -> list[str]:
    """Give the jobs that wait, by site factor, highest first."""
    factors = factors_of(world)
    return sorted(factors, key=lambda name: -factors[name])
