"""What the mock PBS is set up with and told of jobs, and how it holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from foretime_estimators.jobs.jobs import Ending

from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mock_scheduler import MockJob, Phase
from foretime_sim.workloads.node_request import JobResources

FOREVER_S = 5 * 365 * 86_400
"""What PBS's scheduler plans a job with that has no walltime."""


@dataclass(frozen=True, slots=True)
class PbsSubmission:
    """What `qsub` is told of a job, and what only the log knows.

    Attributes
    ----------
    user, account, queue
        Names; ``None`` takes the mock's default.
    processors
        ``-l select=1:ncpus=N``.
    requested_time
        ``-l walltime``, seconds; ``None``: the queue's or the server's default.
    actual_runtime
        How long the job runs if nobody stops it, seconds.
    ending
        How it ends if it is not stopped at its walltime.
    array_id
        The job array that it is a sub-job of.
    resources
        More of its ``-l``, such as ``min_walltime``.
    of_nodes
        What it asks of a machine of nodes.

    Examples
    --------
    >>> from foretime_sim.mocks.pbs.pbs_job import PbsSubmission
    >>> job = PbsSubmission("ann", None, "workq", 8, requested_time=3600, actual_runtime=600)
    >>> job.queue, str(job.ending)
    ('workq', 'Ending.COMPLETED')
    """

    user: str | None
    account: str | None
    queue: str | None
    processors: int
    requested_time: int | None
    actual_runtime: int
    ending: Ending = Ending.COMPLETED
    array_id: int | None = None
    resources: Mapping[str, int | str] = field(default_factory=dict)
    of_nodes: JobResources | None = None


@dataclass(frozen=True, slots=True)
class PbsSetup:
    """The mock's server and queues.

    Attributes
    ----------
    processors
        Size of the machine.
    default_walltime_s
        ``resources_default.walltime`` by queue; under "" the server's.
    accounting_dir, server_logs_dir
        Where the logs are written; ``None``: nowhere.
    reservations
        Advance reservations, on the mock's clock.
    machine
        Nodes in place of a flat pool of processors; its slurm_partitions stand for queues.

    Examples
    --------
    >>> from foretime_sim.mocks.pbs.pbs_job import PbsSetup
    >>> setup = PbsSetup(processors=8, default_walltime_s={"workq": 3600})
    >>> setup.processors
    8
    """

    processors: int
    default_walltime_s: Mapping[str, int] = field(default_factory=dict)
    accounting_dir: Path | None = None
    server_logs_dir: Path | None = None
    reservations: tuple[AdvanceReservation, ...] = ()
    machine: Machine | None = None


@dataclass(slots=True, kw_only=True)
class PbsJob(MockJob):
    """A job as the mock's server holds it."""

    submission: PbsSubmission
    name: str
    resources: dict[str, int | str]

    @property
    def walltime(self) -> int:
        """Its walltime, seconds."""
        return int(self.resources.get("walltime", FOREVER_S))

    @property
    def planned(self) -> int:
        """What the scheduler plans with, seconds: soft_walltime, or else the walltime."""
        return max(min(int(self.resources.get("soft_walltime", self.limit)), self.limit), 1)

    @property
    def limit(self) -> int:
        """When it is killed, seconds after its start: at least 1, as PBS kills at a later look."""
        return max(self.walltime, 1)

    def estimated_soft_walltime(self, now: int) -> int | None:
        """``estimated.soft_walltime`` of a running job, seconds; ``None`` without a soft one.

        The next multiple of soft_walltime, at most the walltime.
        """
        soft = self.resources.get("soft_walltime")
        if soft is None or self.phase is not Phase.RUNNING:
            return None
        return min(int(soft) * (1 + (now - self.start_time) // int(soft)), self.walltime)
