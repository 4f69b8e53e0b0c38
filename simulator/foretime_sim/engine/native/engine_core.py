"""The native core as Python uses it: made of a policy, read out as a schedule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from foretime_sim import _core
from foretime_sim.engine.native.bgp_core import bgp_partitions
from foretime_sim.engine.native.node_core import recorded_allocation
from foretime_sim.engine.schedule import NEVER, Counters, Schedule
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.machine import Machine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.advance_reservations import check_interval, check_reservations
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.choices import NamedChoice
from foretime_sim.policies.families import Slack
from foretime_sim.policies.order import Order
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import PolicyCalls
from foretime_sim.policies.policy_switching import TABLE_1_CASES, PolicySwitching
from foretime_sim.policies.python_policy import PythonBackfill
from foretime_sim.policies.slack import SlackJobs
from foretime_sim.policies.slurm import Slurm
from foretime_sim.policies.switching_counters import SwitchingCounters


def core_engine(
    machine_processors: int,
    policy: Policy,
    now: int,
    reservations: Sequence[AdvanceReservation],
    calls: PolicyCalls | None,
) -> _core.Engine:
    """Make a native engine of a flat pool; ``calls`` asks the policies in Python.

    Raises
    ------
    InputError
        If more than the machine is reserved, or a plain EASY runs beside where anything is.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.engine.native.engine_core import core_engine
    >>> core = core_engine(8, Policy(), 0, (), None)
    >>> core.free_processors
    8
    """
    check_reservations(reservations, machine_processors)
    check_interval(policy, reservations)
    if reservations:
        policy.check_in(Place.RESERVATIONS)
    claims = [(claim.start, claim.duration, claim.processors) for claim in reservations]
    core = _core.Engine(machine_processors, core_policy(policy), now, claims)
    if calls is not None:
        core.ask(calls)
    return core


_IN_PYTHON = "outside"
"""What the core calls an order or a backfilling that it asks for."""


def core_policy(policy: Policy) -> _core.Policy:
    """Give the policy as the native core takes it: choices by their names."""
    core, family, guard = _core.Policy(), policy.backfill, policy.guard
    core.order = str(policy.order) if isinstance(policy.order, Order) else _IN_PYTHON
    core.correction = str(policy.correction)
    core.correction_steps = policy.correction_steps
    core.event_order = str(policy.event_order)
    core.scheduling_interval_s = policy.scheduling_interval_s
    core.backfill = _IN_PYTHON if isinstance(family, PythonBackfill) else family.name
    if guard is not None:
        core.guard = _core.Guard(guard.bound_s, str(guard.by), guard.share)
    core.settings = {
        name: str(value) if isinstance(value, NamedChoice) else value
        for name, value in family.core_settings.items()
        if value is not None
    }
    if policy.switching is not None:
        core.switching = _core_switching(policy.switching)
    return core


def _core_switching(switching: PolicySwitching) -> _core.PolicySwitching:
    core = _core.PolicySwitching()
    core.decider = str(switching.decider)
    core.orders = [str(order) for order in switching.orders]
    core.qualities = [(str(quality), weight) for quality, weight in switching.weighted_qualities]
    core.lower_bound_s = switching.lower_bound_s
    core.upper_bound_s = switching.upper_bound_s
    core.least_waiting = switching.asked_from
    core.slackness = switching.slackness
    core.first_starts = switching.first_starts
    core.horizon_s = switching.horizon_s
    core.slowdown_bound_s = switching.slowdown_bound_s
    core.interactive_s = switching.interactive_s
    core.saturation = switching.saturation
    core.one_list = switching.one_list
    return core


def core_switching_counters(
    core: _core.Engine, switching: PolicySwitching | None
) -> SwitchingCounters | None:
    """Give what a decider has done so far; ``None`` without one."""
    counted = core.switching_counters
    if counted is None or switching is None:
        return None
    tuned = switching.tunes_itself and len(switching.orders) == 3
    return SwitchingCounters(
        orders=switching.orders,
        started_under=core.started_under(),
        tries=counted.tries,
        switches=tuple(counted.switches),
        waiting_at_tries=counted.waiting_at_tries,
        cases=dict(zip(TABLE_1_CASES, counted.cases, strict=True)) if tuned else None,
    )


def describe_for_slack(core: _core.Engine, jobs: SlackJobs) -> None:
    """Tell a core what slack-based backfilling goes by, before any job is submitted."""
    wait = jobs.average_wait_s
    core.describe_for_slack(
        np.ascontiguousarray(jobs.user_priority, dtype=np.float64),
        np.ascontiguousarray(jobs.political_priority, dtype=np.float64),
        None if wait is None else np.ascontiguousarray(wait, dtype=np.float64),
    )


def core_counters(core: _core.Engine) -> Counters:
    """Give what a core has done so far."""
    counted = core.counters
    return Counters(
        passes=counted.passes,
        completions=counted.completions,
        expiries=counted.expiries,
        submissions=counted.submissions,
        guard_activations=counted.guard_activations,
        deepest_queue=counted.deepest_queue,
    )


def core_schedule(
    core: _core.Engine,
    policy: Policy,
    machine: Machine | BgpMachine | None,
    why_never: Callable[[int], str] | None = None,
) -> Schedule:
    """Give the schedule of a core that has run to its end.

    Parameters
    ----------
    machine
        ``None`` for a flat pool.
    why_never
        Gives the reason of a job, by its index, that was refused or that nothing lets start; of a
        site alone, as otherwise every job has run.

    Examples
    --------
    >>> from foretime_sim import Policy
    >>> from foretime_sim.engine.native.engine_core import core_engine, core_schedule
    >>> core = core_engine(8, Policy(), 0, (), None)
    >>> len(core_schedule(core, Policy(), None))
    0
    """
    of_nodes = isinstance(machine, Machine)
    start, end, started_by = core.start_times(), core.end_times(), core.started_by()
    killed = end - start < core.actual_runtimes()
    never_ran: dict[int, str] = {}
    if why_never is not None:
        left = np.flatnonzero(core.states() != _core.State.FINISHED.value)
        never_ran = {job: why_never(job) for job in left.tolist()}
        start[left] = end[left] = NEVER
        killed[left], started_by[left] = False, 0
    return Schedule(
        start_time=start,
        end_time=end,
        started_by=started_by,
        corrections=core.corrections(),
        killed=killed,
        counters=core_counters(core),
        slurm_partition=core.slurm_partitions() if of_nodes else None,
        bgp_partition=bgp_partitions(core, machine) if isinstance(machine, BgpMachine) else None,
        allocation=recorded_allocation(core) if of_nodes else None,
        first_planned_start=core.first_planned_starts()
        if policy.backfill.plans_every_job
        else None,
        switching=core_switching_counters(core, policy.switching),
        latest_start=core.latest_starts() if isinstance(policy.backfill, Slack) else None,
        never_ran=never_ran,
        used_up=core.used_up().astype(bool) if isinstance(policy.backfill, Slurm) else None,
    )
