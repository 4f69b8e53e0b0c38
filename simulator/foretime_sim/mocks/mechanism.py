"""How t_sched reaches a scheduler."""

from __future__ import annotations

import enum
from dataclasses import replace

from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Correction, Policy, Roles
from foretime_sim.policies.slurm import Slurm


class Mechanism(enum.Enum):
    """How t_sched reaches the scheduler, and so which roles and correction it has.

    ``SLURM_SOFT_LIMIT``: `time_min` with ``time_min_as_soft_limit`` (Slurm 23.11 and newer).
    ``REWRITE_LIMIT``: `time_limit` lowered, raised again by PrologSlurmctld when the job starts.
    ``PBS_SOFT_WALLTIME``: PBS's ``Resource_List.soft_walltime``.

    Examples
    --------
    >>> from foretime_sim.mocks.mechanism import Mechanism
    >>> Mechanism("pbs-soft-walltime")
    <Mechanism.PBS_SOFT_WALLTIME: 'pbs-soft-walltime'>
    """

    SLURM_SOFT_LIMIT = "slurm-soft-limit"
    REWRITE_LIMIT = "rewrite-limit"
    PBS_SOFT_WALLTIME = "pbs-soft-walltime"


def mechanism_policy(mechanism: Mechanism, policy: Policy) -> Policy:
    """Give a policy the roles and the correction rule that a mechanism has.

    A limit that is rewritten is raised again when the job starts, so running jobs are planned with
    t_req: Tang's selective scheme S110. The soft limits are used in all roles. A site under Slurm
    plans by TimeMin if the mechanism is a soft limit, and by limits if it is not.

    Raises
    ------
    InputError
        If the mechanism is PBS's, and the site under Slurm, or the other way round.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.mocks.mechanism import Mechanism, mechanism_policy
    >>> policy = mechanism_policy(Mechanism.SLURM_SOFT_LIMIT, Policy())
    >>> str(policy.roles), str(policy.correction)
    ('111', 'slurm')
    """
    if isinstance(policy.backfill, Slurm):
        policy = replace(policy, backfill=_slurm(policy.backfill, mechanism))
    if isinstance(policy.backfill, Pbs) and mechanism is not Mechanism.PBS_SOFT_WALLTIME:
        raise InputError(
            f"the mechanism is {mechanism.value}, and the scheduler PBS: take"
            f" {Mechanism.PBS_SOFT_WALLTIME.value}, or another scheduler"
        )
    match mechanism:
        case Mechanism.SLURM_SOFT_LIMIT:
            return replace(policy, roles=Roles.parse("111"), correction=Correction.SLURM)
        case Mechanism.REWRITE_LIMIT:
            return replace(policy, roles=Roles.parse("110"), correction=Correction.REQUESTED)
        case Mechanism.PBS_SOFT_WALLTIME:
            return replace(policy, roles=Roles.parse("111"), correction=Correction.PBS)


def _slurm(slurm: Slurm, mechanism: Mechanism) -> Slurm:
    if mechanism is Mechanism.PBS_SOFT_WALLTIME:
        raise InputError(
            f"the mechanism is {mechanism.value}, and the scheduler Slurm: take one of Slurm's"
            " mechanisms, or another scheduler"
        )
    soft = mechanism is Mechanism.SLURM_SOFT_LIMIT
    parameters = replace(slurm.site.parameters, time_min_as_soft_limit=soft)
    return Slurm(replace(slurm.site, parameters=parameters))
