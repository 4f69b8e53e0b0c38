"""A mock Slurm that tells when it plans to start a waiting job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foretime_sim.mocks.slurm.mock_slurm import MockSlurm


class PlanningSlurm(MockSlurm):
    """Plans the first waiting job for an hour and a half after now, and tells no plan of others."""

    def run(self, argv: Sequence[str], stdin: str | None = None) -> Any:
        """Answer one of Slurm's commands."""
        reply: Any = super().run(argv, stdin)
        if argv[0] == "squeue":
            waiting = (job for job in reply["jobs"] if job["job_state"] == "PENDING")
            for first in list(waiting)[:1]:
                first["start_time"] = self.now + 5400
        return reply
