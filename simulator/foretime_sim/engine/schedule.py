"""A schedule: what a simulation decided for each job, and the laws that any schedule obeys."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from foretime_estimators.arrays import (
    BoolArray,
    Int8Array,
    Int32Array,
    Int64Array,
    MaskedInt64Array,
)
from foretime_estimators.jobs.errors import ForetimeError

from foretime_sim.engine.node_allocation import NodeAllocation, broken_law
from foretime_sim.machines.bluegene.machine import BgpMachine
from foretime_sim.machines.reservations import AdvanceReservation
from foretime_sim.policies.switching_counters import SwitchingCounters
from foretime_sim.workloads.bgp_jobs import broken_bgp_law
from foretime_sim.workloads.resource_requests import fit_requests
from foretime_sim.workloads.workload import Workload

NEVER = 2**62
"""Start and end of a job that never ran, on whichever clock: far beyond any time."""


def that_ran(start_time: Int64Array) -> BoolArray:
    """Say which jobs ever started; shape (jobs,)."""
    return np.asarray(start_time < NEVER // 2)


def known_waits(wait: Int64Array) -> MaskedInt64Array:
    """Mask the waits of jobs that never ran; shape (jobs,), seconds."""
    return np.ma.MaskedArray(wait, mask=wait >= NEVER // 2)


def why_never(never_ran: Mapping[int, str]) -> dict[str, int]:
    """Count the jobs that never ran by the reason, the most frequent first.

    >>> from foretime_sim.engine.schedule import why_never
    >>> why_never({3: "Licenses", 5: "QOSGrpCpuLimit", 9: "QOSGrpCpuLimit"})
    {'QOSGrpCpuLimit': 2, 'Licenses': 1}
    """
    return dict(Counter(never_ran.values()).most_common())


class ScheduleError(ForetimeError):
    """A schedule breaks a law of conservation: a fault of ours, not of the input."""


class StartedBy(enum.IntEnum):
    """How a job came to start: the three kinds of Tang 2010, figure 4c.

    On a Blue Gene they are as in the paper (`foretime_sim.reference.bgp`); below, what they are on
    other machines.

    The usual number of "backfilled jobs" of the EASY literature is the last two together.
    """

    HEAD = 1
    """It was at the head of the queue."""
    OUT_OF_ORDER = 2
    """Behind a blocked head job, but it fitted into the extra processors, those that the head job
    will not need at its planned start: no estimate of its runtime was needed."""
    BACKFILLED = 3
    """On processors that the head job will need, because it was expected to end by then."""


@dataclass(frozen=True, slots=True)
class Counters:
    """What a run did, in numbers."""

    passes: int
    completions: int
    expiries: int
    """Events in which an estimate expired while its job went on."""
    submissions: int
    guard_activations: int
    """Jobs for which the starvation guard became active."""
    deepest_queue: int
    """Most jobs pending at once, those that start in the next pass included."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """When each job of a workload ran; arrays of shape (jobs,) in the workload's order.

    Attributes
    ----------
    start_time, end_time
        Seconds, int64, same clock as ``submit_time``; `NEVER` both where the job never ran.
    started_by
        int8, a `StartedBy` for each job; 0 where it never ran.
    corrections
        int32: how often the job outlived its estimate and was given another; 0 for a job that
        ended within t_sched(drain).
    killed
        True where the job was ended by its time limit before its actual runtime, or ``used_up``.
    guard_activations
        Number of jobs for which the starvation guard became active.
    counters
        What the run did.
    slurm_partition
        int32: on a machine of nodes, the index of the slurm_partition in which each job ran.
    bgp_partition
        int32: on a Blue Gene, the index in `BgpMachine.bgp_partitions` of what each job ran on.
    allocation
        On a machine of nodes and if asked for, what each job had of which nodes.
    first_planned_start
        Seconds, int64: the planned start that each job was given in its first scheduling pass;
        ``None`` unless every job is planned (conservative, planning, slack).
    latest_start
        Seconds, int64: the promise of slack-based backfilling, first planned start + initial slack,
        which is kept as long as no job outlives its estimate;
        `foretime_sim.policies.slack.INFINITE_SLACK` where nothing is promised (a priority of minus
        infinity). ``None`` of any other policy.
    switching
        What a decider that switches between queue orders did; ``None`` without one.
    never_ran
        Jobs that the site's rules never let run, by index, and why: the scheduler's own word where
        it has one (``AssocGrpCpuLimit``). They count in no score.
    used_up
        True where Slurm ended the job because minutes that it, or its account or QOS, may use were
        used up; ``None`` of other schedulers.

    Examples
    --------
    >>> from foretime_sim import generate, simulate
    >>> workload = generate("lublin2003", jobs=500, load=0.9, seed=1)
    >>> schedule = simulate(workload)
    >>> len(schedule), bool((schedule.start_time >= workload.submit_time).all())
    (500, True)
    """

    start_time: Int64Array
    end_time: Int64Array
    started_by: Int8Array
    corrections: Int32Array
    killed: BoolArray
    counters: Counters
    slurm_partition: Int32Array | None = None
    bgp_partition: Int32Array | None = None
    allocation: NodeAllocation | None = None
    first_planned_start: Int64Array | None = None
    latest_start: Int64Array | None = None
    switching: SwitchingCounters | None = None
    never_ran: Mapping[int, str] = field(default_factory=dict)
    used_up: BoolArray | None = None

    @property
    def guard_activations(self) -> int:
        """Number of jobs for which the starvation guard became active."""
        return self.counters.guard_activations

    def __len__(self) -> int:
        return len(self.start_time)


def check(
    workload: Workload,
    schedule: Schedule,
    time_limit: Int64Array,
    reservations: Sequence[AdvanceReservation] = (),
    *,
    may_overrun: bool = False,
    whole_nodes: bool = True,
) -> None:
    """Check the conservation laws.

    No job starts before its submission; each runs for its actual runtime or is killed exactly at
    its time limit, or if it may overrun that, not before, unless it never runs, or is ended before
    both because a limit's minutes are used up; at no moment are
    more processors in use than there are, those of advance reservations included, and in the end
    none. Where the schedule has an allocation, the laws of `foretime_sim.engine.node_allocation`
    hold, too; on a Blue Gene that of `foretime_sim.workloads.bgp_jobs.broken_bgp_law`.

    Parameters
    ----------
    workload, schedule
        Jobs, and when they ran.
    time_limit
        Shape (jobs,), seconds: the limits that the scheduler held.
    reservations
        Processors that were claimed from outside.
    may_overrun
        Whether jobs may be left running beyond their limits
        (`foretime_sim.policies.slack.Overruns`).
    whole_nodes
        As for `foretime_sim.engine.node_allocation.broken_law`.

    Raises
    ------
    ScheduleError
        Naming the law and the first job or moment that breaks it.
    """
    ran_at_all = that_ran(schedule.start_time)

    def first(wrong: BoolArray, what: str) -> None:
        wrong = wrong & ran_at_all
        if wrong.any():
            job = int(np.flatnonzero(wrong)[0])
            raise ScheduleError(
                f"{workload.name}: job {workload.job_id[job]} {what}: submitted at"
                f" {workload.submit_time[job]}, started at {schedule.start_time[job]}, ended at"
                f" {schedule.end_time[job]}, time limit {time_limit[job]} s,"
                f" actual runtime {workload.actual_runtime[job]} s"
            )

    ran = schedule.end_time - schedule.start_time
    over_limit = workload.actual_runtime > time_limit
    first(schedule.start_time < workload.submit_time, "started before its submission")
    off_limit = ran < time_limit if may_overrun else ran != time_limit
    used_up = np.zeros(len(workload), dtype=bool) if schedule.used_up is None else schedule.used_up
    late = ran >= np.minimum(time_limit, workload.actual_runtime)
    first(used_up & late, "was ended for used minutes after it was over")
    first(schedule.killed & off_limit & ~used_up, "was killed, but not at its time limit")
    spared = over_limit & ~schedule.killed & (not may_overrun)
    against = (schedule.killed & ~over_limit & ~used_up) | spared
    first(against, "was killed or spared against its time limit")
    first(~schedule.killed & (ran != workload.actual_runtime), "did not run for its actual runtime")
    first(~np.isin(schedule.started_by, [how.value for how in StartedBy]), "never started")
    untold = ~ran_at_all
    untold[list(schedule.never_ran)] = False
    if untold.any():
        job = int(np.flatnonzero(untold)[0])
        raise ScheduleError(f"{workload.name}: job {workload.job_id[job]} never ran, untold")

    lasting = ran > 0
    claims = [(claim.start, claim.end, claim.processors) for claim in reservations]
    claim_start, claim_end, claimed = np.array(claims, dtype=np.int64).reshape(-1, 3).T
    begins = np.concatenate([schedule.start_time[lasting], claim_start])
    ends = np.concatenate([schedule.end_time[lasting], claim_end])
    taken = np.concatenate([workload.processors[lasting], claimed])
    times = np.concatenate([begins, ends])
    change = np.concatenate([taken, -taken])
    order = np.lexsort((change, times))
    used = np.cumsum(change[order])
    if len(used) and (used.max() > workload.machine_processors or used[-1] != 0):
        moment = times[order][int(used.argmax())]
        reserved = " or reserved" if reservations else ""
        raise ScheduleError(
            f"{workload.name}: {used.max()} processors in use{reserved} at {moment} s,"
            f" the machine has {workload.machine_processors}"
        )
    if schedule.bgp_partition is not None and isinstance(workload.machine, BgpMachine):
        broken = broken_bgp_law(
            workload,
            workload.machine,
            schedule.bgp_partition,
            schedule.start_time,
            schedule.end_time,
        )
        if broken:
            raise ScheduleError(f"{workload.name}: {broken}")
    if schedule.allocation is not None and schedule.slurm_partition is not None:
        first(schedule.slurm_partition < 0, "ran nowhere")
        broken = broken_law(
            workload,
            fit_requests(workload),
            schedule.slurm_partition,
            schedule.allocation,
            schedule.start_time,
            schedule.end_time,
            whole_nodes=whole_nodes,
        )
        if broken:
            raise ScheduleError(f"{workload.name}: {broken}")


def check_promises(workload: Workload, schedule: Schedule) -> None:
    """Check that no job started later than it was promised.

    That is its latest start under slack-based backfilling, else its first planned start: a law of
    conservative backfilling in reservation order (and one by one). Of both as long as no running
    job outlives its estimate and nobody's times are changed.

    Raises
    ------
    ScheduleError
        Naming the first job that started too late, or saying that there are no plans.
    """
    if schedule.first_planned_start is None:
        raise ScheduleError(f"{workload.name}: not every job was planned, nothing was promised")
    promised = schedule.first_planned_start
    if schedule.latest_start is not None:
        promised = schedule.latest_start
    late = schedule.start_time > promised
    if late.any():
        job = int(np.flatnonzero(late)[0])
        raise ScheduleError(
            f"{workload.name}: job {workload.job_id[job]} was promised"
            f" {promised[job]} and started at {schedule.start_time[job]}"
        )
