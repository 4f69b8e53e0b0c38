"""The scheduling engine: a whole log in one call of the native core.

`foretime_sim.engine.stepwise` runs the same core with Python in the loop;
`foretime_sim.reference.flat` says in plain Python what it does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from foretime_estimators.arrays import Int64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.native.bgp_core import use_bgp_machine
from foretime_sim.engine.native.engine_core import core_engine, core_schedule, describe_for_slack
from foretime_sim.engine.native.node_core import (
    add_requests,
    refuse_of_flat_pool,
    use_machine,
)
from foretime_sim.engine.native.pbs_core import (
    describe_for_pbs,
    use_pbs_site,
    why_pbs_never,
)
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.engine.native.slurm_core import (
    describe_for_slurm,
    machine_of_site,
    use_slurm_site,
    whole_minutes,
    why_slurm_never,
)
from foretime_sim.engine.schedule import Schedule
from foretime_sim.engine.schedule import check as check_schedule
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls, has_python
from foretime_sim.policies.role_times import ScheduledTimes, job_times
from foretime_sim.policies.slack import Overruns, SlackJobs
from foretime_sim.policies.slurm import Slurm
from foretime_sim.workloads.bgp_jobs import too_large
from foretime_sim.workloads.workload import Workload


def simulate(
    workload: Workload,
    policy: Policy | None = None,
    scheduled_time: ScheduledTimes = None,
    time_limit: Int64Array | None = None,
    priority: Int64Array | None = None,
    *,
    reservations: Sequence[AdvanceReservation] = (),
    slack_jobs: SlackJobs | None = None,
    check: bool = False,
    allocation: bool = False,
) -> Schedule:
    """Schedule a whole workload in one native call, without the interpreter's lock.

    A policy in Python is asked at each pass (docs/policies.md); an error in it ends the run.

    Parameters
    ----------
    workload
        Jobs in submission order, on a flat pool of processors or, if it has a machine
        (`foretime_sim.workloads.resource_requests.with_machine`,
        `foretime_sim.workloads.bgp_jobs.with_bgp_machine`), on its nodes or bgp_partitions.
    policy
        What the scheduler does; ``None`` for FCFS with EASY.
    scheduled_time
        t_sched: shape (jobs,), seconds, used in the roles that ``policy.roles`` names, or a
        `RoleTimes`. Held within 1 <= t_sched <= t_req. ``None`` for the requested times.
    time_limit
        Shape (jobs,), seconds: the kill limit that the scheduler really holds; ``None`` for the
        requested times. A job ends at start + min(actual_runtime, time_limit).
    priority
        Shape (jobs,), for the queue order ``priority``; larger first.
    reservations
        Processors claimed from outside. Where there are any, jobs are planned around them on their
        time limits, whatever their scheduled times are.
    slack_jobs
        Under slack-based backfilling: the priorities of each job, and its average wait if it has
        one of its own; ``None`` for a priority of 0 each.
    check
        Check the conservation laws on the result (`foretime_sim.engine.schedule.check`).
    allocation
        On a machine of nodes, say in the schedule what each job had of which nodes.

    Raises
    ------
    InputError
        If a job is wider than the machine or can never run on it, a column has missing, unsorted or
        impossible values, or more than the machine is reserved.
    ScheduleError
        If a checked schedule breaks a law.

    Notes
    -----
    Under a site's own rules a job may be refused, or wait for ever. It has no start then:
    `Schedule.never_ran` says why.

    Examples
    --------
    >>> from foretime_sim import Backfill, Policy, generate, simulate
    >>> workload = generate("lublin2003", jobs=500, load=0.9, seed=1)
    >>> schedule = simulate(workload, Policy(backfill=Backfill.CONSERVATIVE))
    >>> waits = schedule.start_time - workload.submit_time
    >>> print(f"{waits.mean() / 3600:.0f} hours")
    17 hours
    """
    policy = policy or Policy()
    policy.check_slack_jobs(slack_jobs, workload)
    if time_limit is not None:
        policy.check_in(Place.TIME_LIMITS)
    slurm = policy.backfill if isinstance(policy.backfill, Slurm) else None
    pbs = policy.backfill.site if isinstance(policy.backfill, Pbs) else None
    if isinstance(policy.backfill, Slurm | Pbs):
        workload = machine_of_site(workload, policy.backfill.site.machine)
        if slurm is not None and time_limit is None:
            time_limit = whole_minutes(np.asarray(workload.requested_time))
    times = job_times(workload, policy.roles, scheduled_time, time_limit, priority)
    begin = int(workload.submit_time[0]) if len(workload) else 0
    calls = PolicyCalls.of_workload(policy, workload, reservations) if has_python(policy) else None
    core = core_engine(workload.machine_processors, policy, begin, reservations, calls)
    if isinstance(workload.machine, BgpMachine):
        if refusal := too_large(workload, workload.machine):
            raise InputError(refusal)
        use_bgp_machine(core, workload.machine, policy, reserved=bool(reservations))
    elif slurm is not None:
        refuse_of_flat_pool(policy, reserved=bool(reservations))
        record = allocation or check
        use_slurm_site(core, slurm, workload.epoch_of_zero, record=record, keep_plans=False)
        describe_for_slurm(core, workload, slurm.site)
    elif pbs is not None:
        refuse_of_flat_pool(policy, reserved=bool(reservations))
        names = PbsNames(pbs)
        use_pbs_site(core, pbs, workload.epoch_of_zero, names, record=allocation or check)
        describe_for_pbs(core, workload, names)
    elif workload.machine is not None:
        use_machine(
            core,
            workload.machine,
            policy,
            reserved=bool(reservations),
            record=allocation or check,
        )
        add_requests(core, workload)
    if slack_jobs is not None:
        describe_for_slack(core, slack_jobs)
    core.submit_all(
        np.ascontiguousarray(workload.submit_time, dtype=np.int64),
        np.ascontiguousarray(workload.processors, dtype=np.int64),
        np.ascontiguousarray(workload.actual_runtime, dtype=np.int64),
        np.ascontiguousarray(workload.requested_time, dtype=np.int64),
        times.queue,
        times.backfill,
        times.drain,
        times.time_limit,
        times.priority,
    )
    core.finish()
    why = why_slurm_never(core, slurm.site) if slurm is not None else None
    schedule = core_schedule(
        core, policy, workload.machine, why_pbs_never if pbs is not None else why
    )
    if check:
        overruns = policy.overruns is not Overruns.KILL
        limit = times.time_limit
        if slurm is not None and schedule.slurm_partition is not None:
            parts = slurm.site.machine.slurm_partitions
            over = np.array([slurm.site.over_time_limit_s(part.name) for part in parts])
            limit = limit + over[schedule.slurm_partition]
        check_schedule(
            workload,
            schedule,
            limit,
            reservations,
            may_overrun=overruns,
            whole_nodes=pbs is None,
        )
    return schedule
