"""What the mock Slurm is set up with and told of jobs, and how it holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_estimators.jobs.jobs import Ending

from foretime_sim.logs.accounting import STATE_OF_ENDING
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.mocks.mechanism import Mechanism
from foretime_sim.mocks.mock_scheduler import MockJob, Phase
from foretime_sim.workloads.node_request import JobResources
from foretime_sim.workloads.site_jobs import SiteJob


@dataclass(frozen=True, slots=True)
class Submission:
    """What `sbatch` is told of a job, and what only the log knows.

    Attributes
    ----------
    user, account, slurm_partition
        Names; ``None`` takes the mock's default.
    processors
        Processors asked for.
    requested_time
        ``--time``, seconds.
    actual_runtime
        How long the job runs if nobody stops it, seconds.
    ending
        How it ends if it is not stopped at its limit.
    comment
        ``--comment``.
    time_min
        ``--time-min``, seconds; ``None`` if not given.
    array_id
        The job array that it is a task of.
    resources
        What it asks of a machine of nodes.
    said
        What it says to the site, its QOS for one; ``None`` where the mock has no site.

    Examples
    --------
    >>> from foretime_sim.mocks.slurm.slurm_job import Submission
    >>> job = Submission("ann", "physics", "short", 8, requested_time=3600, actual_runtime=600)
    >>> job.account, job.requested_time
    ('physics', 3600)
    """

    user: str | None
    account: str | None
    slurm_partition: str | None
    processors: int
    requested_time: int
    actual_runtime: int
    ending: Ending = Ending.COMPLETED
    comment: str | None = None
    time_min: int | None = None
    array_id: int | None = None
    resources: JobResources | None = None
    said: SiteJob | None = None


@dataclass(frozen=True, slots=True)
class SlurmSetup:
    """The mock's slurm.conf.

    Attributes
    ----------
    processors
        Size of the machine.
    mechanism
        How the hook's word reaches the planning.
    max_time_min
        MaxTime by slurm_partition, minutes; one that is not named has no limit.
    soft_limit_parameter
        Whether ``SchedulerParameters`` has ``time_min_as_soft_limit``. Without it, time_min is a
        limit that jobs are killed at, as on a real Slurm.
    prolog_works
        Whether PrologSlurmctld raises the limits that the hook lowered.
    machine
        Nodes in place of a flat pool of processors.
    reservations
        Advance reservations, on the mock's clock.
    qos_weight
        PriorityWeightQOS; the QOS normal and high lie a whole tier apart.
    private_data
        PrivateData, such as "jobs,usage"; "" for none.
    changes_take_s
        How long after a call of ``scontrol`` its changes are made, seconds: what a daemon takes to
        read the queue, to decide and to write, in which the queue goes on. What is refused by then
        nobody is told.

    Examples
    --------
    >>> from foretime_sim.mocks.slurm.slurm_job import SlurmSetup
    >>> setup = SlurmSetup(processors=8, max_time_min={"short": 60})
    >>> str(setup.mechanism)
    'Mechanism.SLURM_SOFT_LIMIT'
    """

    processors: int
    mechanism: Mechanism = Mechanism.SLURM_SOFT_LIMIT
    max_time_min: Mapping[str, int] = field(default_factory=dict)
    soft_limit_parameter: bool = True
    prolog_works: bool = True
    machine: Machine | None = None
    reservations: tuple[AdvanceReservation, ...] = ()
    qos_weight: int = 0
    private_data: str = ""
    changes_take_s: int = 0


@dataclass(slots=True, kw_only=True)
class SlurmJob(MockJob):
    """A job as slurmctld holds it; limits in whole minutes.

    Attributes
    ----------
    planned
        What it is planned with, or was as it started, seconds.
    """

    submission: Submission
    time_limit_min: int
    time_min_min: int = 0
    admin_comment: str = ""
    comment: str = ""
    site_factor: int = 0
    planned: int = 0

    @property
    def state(self) -> str:
        """Slurm's word for where it stands."""
        return _PHASES[self.phase] if self.ending is None else STATE_OF_ENDING[self.ending]


_PHASES = {Phase.WAITING: "PENDING", Phase.RUNNING: "RUNNING"}
