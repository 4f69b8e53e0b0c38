"""What is told of waits, so that an answer does not contradict itself.

Bounds, probabilities and plans come from several sources, each right on average: samples of the
queue, a calibration, the scheduler's own plan. The answer for one job must still make sense.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import BoolArray
from foretime_sim.engine.snapshot import Snapshot
from foretime_sim.policies.families import Conservative, Easy, NoBackfilling
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.role_times import RoleTimes
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.waits.forecaster import LEVELS, WaitForecasts

from foretime_sidecar.forecasts.adaptive_forward_runs import NOW_S

_STEPS = np.array([0.0, *LEVELS, 1.0])


def keeps_the_head_first(
    snapshot: Snapshot, policy: Policy, site: SlurmSite | PbsSite | None
) -> bool:
    """Say whether the plan of the queue's first job, made of what jobs ask for, is a bound.

    It is where nobody who comes later can go before it, and no job is planned with less than it
    asked for, as such a job may still be there when the first one is to start.
    """
    for jobs in (snapshot.running, snapshot.pending):
        planned = jobs.scheduled_time
        if isinstance(planned, RoleTimes) or (
            planned is not None and (planned < jobs.requested_time).any()
        ):
            return False
    machine = snapshot.machine
    if machine is not None and len({p.priority_tier for p in machine.slurm_partitions}) > 1:
        return False  # whoever comes for a higher tier goes first
    if isinstance(site, SlurmSite):
        return site.priority.goes_by_age_alone
    if site is not None:
        return False
    return policy.order is Order.FCFS and policy.backfill in (
        NoBackfilling(),
        Easy(),
        Conservative(),
    )


def told(made: WaitForecasts, at_most: BoolArray) -> WaitForecasts:
    """Give forecasts as they are told.

    Parameters
    ----------
    made
        As the forecaster gave them.
    at_most
        Of which jobs the plan is a bound, shape (asked,).

    Returns
    -------
    WaitForecasts
        Their waits are within the plan where that is a bound, and the probability of a start at
        once is one that the quantiles leave open.
    """
    wait_s = made.wait_s
    if made.planned_s is not None:
        bound_s = np.where(at_most & ~np.isnan(made.planned_s), made.planned_s, np.inf)
        wait_s = np.minimum(wait_s, bound_s[:, np.newaxis])
    # Levels at which the job has started by now lie below the probability of that, others above.
    starts = (np.ceil(wait_s) <= NOW_S).sum(axis=1)
    starts_now = np.clip(made.starts_now, _STEPS[starts], _STEPS[starts + 1])
    return replace(made, wait_s=wait_s, starts_now=starts_now)
