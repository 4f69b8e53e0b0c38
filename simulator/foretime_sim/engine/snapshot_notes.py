"""What a scheduler has noted of a queue, besides its jobs: it decides by it what it does next."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_estimators.arrays import Int64Array, MaskedInt64Array

from foretime_sim import _core
from foretime_sim.engine.native.slurm_core import StepwiseNames
from foretime_sim.engine.node_snapshot import HeldNodes
from foretime_sim.sites.slurm.site import SlurmSite


@dataclass(frozen=True, slots=True)
class GuardNotes:
    """What the starvation guard has noted of pending jobs; columns of shape (jobs,).

    Attributes
    ----------
    planned_start
        Start as planned on t_req when the job was first seen blocked at the head of the queue,
        seconds; masked where it was not seen there yet.
    active
        1 where the guard is active for the job, else 0.
    """

    planned_start: MaskedInt64Array
    active: Int64Array


@dataclass(frozen=True, slots=True)
class PlanNotes:
    """What a scheduler that plans more than the head job keeps from pass to pass.

    Attributes
    ----------
    planned_start
        Shape (jobs,): start that a pending job was promised or planned for, seconds; masked where
        there is none. Conservative backfilling keeps it, or makes it earlier.
    changed, broken
        Whether since the last plan running jobs' claims have changed, or grown over what was
        promised to others.
    gained
        From when until when processors were given back since the last plan, seconds; ``None`` if
        none were. Not kept on nodes.
    slurm_partition
        On nodes, shape (jobs,): index of the slurm_partition that a job is planned in; -1 where it
        is not.
    held
        On nodes: what each job is planned to have of them.
    """

    planned_start: MaskedInt64Array
    changed: bool = False
    broken: bool = False
    gained: tuple[int, int] | None = None
    slurm_partition: Int64Array | None = None
    held: HeldNodes | None = None


@dataclass(frozen=True, slots=True)
class SlurmNotes:
    """What an engine's slurmctld has in mind: whose its jobs are, priorities, usage, its loops.

    Attributes
    ----------
    site
        Whose Slurm it is. Under another one these notes are not looked at.
    state
        As the native core keeps it.
    names
        Codes of users and accounts in it, and what jobs said, by column.
    """

    site: SlurmSite
    state: _core.SlurmState
    names: StepwiseNames
