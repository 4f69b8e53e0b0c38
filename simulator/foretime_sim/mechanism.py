"""How t_sched reaches a scheduler."""

from __future__ import annotations

import enum


class Mechanism(enum.Enum):
    """How t_sched reaches the scheduler, and so which roles and correction it has.

    ``SLURM_SOFT_LIMIT``: `time_min` with ``time_min_as_soft_limit`` (Slurm 23.11 and newer).
    ``REWRITE_LIMIT``: `time_limit` lowered, raised again by PrologSlurmctld when the job starts.
    ``PBS_SOFT_WALLTIME``: PBS's ``Resource_List.soft_walltime``.
    """

    SLURM_SOFT_LIMIT = "slurm-soft-limit"
    REWRITE_LIMIT = "rewrite-limit"
    PBS_SOFT_WALLTIME = "pbs-soft-walltime"
