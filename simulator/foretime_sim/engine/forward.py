"""Forward runs: a snapshot's queue run to empty, once for each sample of its jobs' runtimes.

The simulated scheduler plans with requested and scheduled times, as `foretime_sim.engine.engine`
does; the sampled runtimes only end jobs. The samples are run on several threads without the
interpreter's lock, each in an engine of its own, so the result is the same for any number of
threads.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import psutil
from foretime_estimators.arrays import Int8Array, Int64Array
from foretime_estimators.jobs.errors import InputError
from foretime_estimators.time_units import LONGEST_S

from foretime_sim import _core
from foretime_sim.engine.admission import After, Dependencies, GroupLimit
from foretime_sim.engine.native.engine_core import core_policy
from foretime_sim.engine.native.pbs_names import PbsNames
from foretime_sim.engine.native.snapshot_columns import NEVER as CORE_NEVER
from foretime_sim.engine.native.snapshot_columns import checked_column, checked_times, or_never
from foretime_sim.engine.node_snapshot import HeldNodes, NodeRequests
from foretime_sim.engine.nodes_beginning import give_nodes, notes_of, told_of
from foretime_sim.engine.schedule import NEVER
from foretime_sim.engine.snapshot import PendingJobs, RunningJobs, Snapshot
from foretime_sim.engine.snapshot_notes import GuardNotes, PlanNotes, SlurmNotes
from foretime_sim.engine.told_jobs import ToldJob, own_arrivals
from foretime_sim.engine.told_pbs_jobs import ToldPbsJob, own_pbs_arrivals
from foretime_sim.machines.machine import Machine
from foretime_sim.policies.advance_reservations import (
    check_interval,
    node_reservations,
    of_processors,
)
from foretime_sim.policies.backfilling import Place
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.policy_calls import has_python
from foretime_sim.policies.role_times import RoleTimes, ScheduledTimes, by_role
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import JobResources, Request, fit_request
from foretime_sim.workloads.resource_requests import distinct_rows

__all__ = [
    "NEVER",
    "After",
    "Dependencies",
    "GroupLimit",
    "GuardNotes",
    "HeldNodes",
    "NodeRequests",
    "PendingJobs",
    "PlanNotes",
    "RunningJobs",
    "SampledArrivals",
    "SlurmNotes",
    "Snapshot",
    "ToldJob",
    "ToldPbsJob",
    "first_pass",
    "first_plan",
    "forward_runs",
    "start_times_of",
]


@dataclass(frozen=True, slots=True)
class SampledArrivals:
    """Jobs that are submitted later, each in one sample only; columns of shape (jobs,).

    Attributes
    ----------
    sample
        In which sample, from 0.
    submit_time
        Seconds, after the snapshot.
    processors, requested_time, actual_runtime
        Times in seconds.
    scheduled_time, time_limit, priority, requests
        As those of `foretime_sim.engine.snapshot.PendingJobs`.
    owner, owners
        Where the snapshot tells whose its jobs are: a row of ``owners`` for each job.
    slurm_partitions
        On nodes, in place of ``requests``: where the jobs go, each with its processors as tasks.
        With neither they go to the default slurm_partition. Jobs that could never run there are
        left out, as in a real queue they are in nobody's way.
    """

    sample: Int64Array
    submit_time: Int64Array
    processors: Int64Array
    requested_time: Int64Array
    actual_runtime: Int64Array
    scheduled_time: ScheduledTimes = None
    time_limit: Int64Array | None = None
    priority: Int64Array | None = None
    requests: NodeRequests | None = None
    slurm_partitions: Labels | None = None
    owner: Int64Array | None = None
    owners: tuple[ToldJob, ...] | tuple[ToldPbsJob, ...] = ()

    def rows(self, chosen: Int64Array) -> SampledArrivals:
        """Give some of the jobs, by row."""
        taken: dict[str, Any] = {}
        for column in fields(self):
            values = getattr(self, column.name)
            if isinstance(values, np.ndarray):
                taken[column.name] = values[chosen]
        times, labels = self.scheduled_time, self.slurm_partitions
        if isinstance(times, RoleTimes):
            roles = (times.queue, times.backfill, times.drain)
            taken["scheduled_time"] = RoleTimes(*(r if r is None else r[chosen] for r in roles))
        if self.requests is not None:
            taken["requests"] = replace(self.requests, number=self.requests.number[chosen])
        if labels is not None:
            taken["slurm_partitions"] = replace(labels, codes=labels.codes[chosen])
        return replace(self, **taken)


def forward_runs(
    snapshot: Snapshot,
    policy: Policy,
    actual_runtime: Int64Array,
    *,
    arrivals: SampledArrivals | None = None,
    threads: int | None = None,
) -> Int64Array:
    """Say when every job of a snapshot starts, in each of many samples of their runtimes.

    A run begins with a scheduling pass over the queue as it stands (but see
    `Snapshot.pass_due`), and ends when the last pending job has started. Ctrl-C is heeded between
    samples.

    Parameters
    ----------
    snapshot
        The running and pending jobs of one moment.
    policy
        What the scheduler does.
    actual_runtime
        Shape (samples, jobs), seconds, integers of 0 or more: columns are the running jobs, then
        the pending ones, in the order of the snapshot's rows. A job ends at
        start + min(actual runtime, time limit). A running job whose runtime is below its age ends
        at the moment of the snapshot: draw runtimes conditional on the age.
    arrivals
        Jobs submitted later, by sample. (Those that are the same in all samples can be pending
        jobs of the snapshot instead.)
    threads
        How many to use; ``None``: one for each physical core that this process may use.

    Returns
    -------
    Int64Array
        Start times, shape (samples, jobs), seconds; those of running jobs are as given. Under a
        site's Slurm or PBS, a job that never starts, as by a limit, has `NEVER`.

    Raises
    ------
    InputError
        If a column's length, type or a value is impossible; it names the row and the field.

    Examples
    --------
    >>> import numpy as np
    >>> from foretime_sim import Policy, Snapshot, forward_runs
    >>> from foretime_sim.engine.stepwise import Engine
    >>> engine = Engine(8, Policy())
    >>> for _ in range(2):
    ...     job = engine.submit(0, 8, actual_runtime=600, requested_time=3600)
    >>> _ = engine.advance(60)
    >>> runtimes = np.array([[600, 600], [3600, 600]])  # two samples: how long the first may run
    >>> forward_runs(Snapshot.of(engine), Policy(), runtimes).tolist()
    [[0, 600], [0, 3600]]
    """
    return _run(snapshot, policy, actual_runtime, None, arrivals, threads, None)


def start_times_of(
    jobs: int | Sequence[int] | Int64Array,
    snapshot: Snapshot,
    policy: Policy,
    actual_runtime: Int64Array,
    *,
    arrivals: SampledArrivals | None = None,
    threads: int | None = None,
    until: int | None = None,
    most_cpu_s: float = math.inf,
) -> Int64Array:
    """Say when some pending jobs start, in each of many samples; runs end when they have.

    Parameters
    ----------
    jobs
        A job's column, or several, each once; -1 is the last, such as one that
        `Snapshot.with_job` has added.
    snapshot, policy, actual_runtime, arrivals, threads
        As for `forward_runs`.
    until
        Runs end at this time, seconds: who has not started by then has `NEVER`. ``None``: they
        go on until all jobs asked about have started.
    most_cpu_s
        What each run may take, seconds of a processor.

    Returns
    -------
    Int64Array
        Start times, seconds; shape (samples,) for one job, (samples, jobs) for several.

    Raises
    ------
    InputError
        As `forward_runs`, or if a job runs already, there is none of that column, or it is named
        twice.
    TimeoutError
        If a run takes longer.
    """
    single = isinstance(jobs, int | np.integer)
    named = [operator.index(job) for job in np.atleast_1d(np.asarray(jobs))]
    running, pending = len(snapshot.running), len(snapshot.pending)
    only = [(job + len(snapshot) if job < 0 else job) - running for job in named]
    seen: set[int] = set()
    for job, at in zip(named, only, strict=True):
        if not 0 <= at < pending:
            raise InputError(
                f"job {job} is not pending: the pending jobs have the columns from"
                f" {running} to {len(snapshot) - 1}"
            )
        if at in seen:
            raise InputError(f"job {running + at} is asked about twice")
        seen.add(at)
    starts = _run(snapshot, policy, actual_runtime, only, arrivals, threads, until, most_cpu_s)
    return starts[:, 0] if single else starts


def first_pass(snapshot: Snapshot, policy: Policy) -> Int8Array:
    """Say which pending jobs one scheduling pass starts at the moment of a snapshot.

    Running jobs run on beyond it; they are expected to end when the policy says so.

    Parameters
    ----------
    snapshot, policy
        As for `forward_runs`. A policy under which a pass does not start jobs at once, Slurm's,
        starts none.

    Returns
    -------
    Int8Array
        A `foretime_sim.engine.schedule.StartedBy` for each pending job, shape (pending,).

    Raises
    ------
    InputError
        As `forward_runs`.

    Examples
    --------
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.forward import first_pass
    >>> from foretime_sim.engine.stepwise import Engine
    >>> engine = Engine(8, Policy())
    >>> for processors, requested in ((6, 600), (8, 600), (2, 900), (2, 300)):
    ...     job = engine.submit(0, processors, actual_runtime=300, requested_time=requested)
    >>> first_pass(Snapshot.of(engine), Policy()).tolist()
    [1, 0, 0, 3]
    """
    return snapshot_beginning(snapshot, policy).first_pass()


def first_plan(snapshot: Snapshot, policy: Policy) -> Int64Array:
    """Say when pending jobs start by the plan that one pass makes at the moment of a snapshot.

    Running jobs are expected to end when the policy says so.

    Parameters
    ----------
    snapshot, policy
        As for `forward_runs`.

    Returns
    -------
    Int64Array
        Start times, seconds; shape (pending,). `NEVER` for a job that is not planned: it is not in
        the queue yet, the policy plans no more than the head, or no pass is due.

    Raises
    ------
    InputError
        As `forward_runs`.

    Examples
    --------
    >>> from foretime_sim import Policy, Snapshot
    >>> from foretime_sim.engine.forward import first_plan
    >>> from foretime_sim.engine.stepwise import Engine
    >>> from foretime_sim.policies.families import Backfill
    >>> engine = Engine(8, Policy())
    >>> for processors, requested in ((6, 600), (8, 600), (4, 900), (2, 300)):
    ...     job = engine.submit(0, processors, actual_runtime=300, requested_time=requested)
    >>> first_plan(Snapshot.of(engine), Policy(backfill=Backfill.CONSERVATIVE)).tolist()
    [0, 600, 1200, 0]
    """
    return np.minimum(snapshot_beginning(snapshot, policy).first_plan(), NEVER)


def snapshot_beginning(snapshot: Snapshot, policy: Policy) -> _core.Beginning:
    """Give the core a snapshot with its machine; InputError as `forward_runs`."""
    return _with_nodes(snapshot, policy, None)[0]


def _run(
    snapshot: Snapshot,
    policy: Policy,
    actual_runtime: Int64Array,
    only: list[int] | None,
    arrivals: SampledArrivals | None,
    threads: int | None,
    until: int | None = None,
    most_cpu_s: float = math.inf,
) -> Int64Array:
    runtimes = _checked_runtimes(snapshot, actual_runtime)
    if threads is None:
        threads = usable_cores()
    elif threads < 1:
        raise InputError(f"threads is {threads}: give 1 or more, or None for one a core")
    if snapshot.machine is not None and arrivals is not None and arrivals.requests is None:
        arrivals = _placed(snapshot, snapshot.machine, arrivals)
    beginning, names = _with_nodes(
        snapshot, policy, None if arrivals is None else arrivals.requests
    )
    site = _site_of(policy)
    coming = _core.Arrivals()
    if arrivals is not None:
        coming, order = _arrivals(snapshot, policy, arrivals, len(runtimes))
        # Under an engine's own notes nobody knows the codes of its names.
        told = snapshot.told is not None and not notes_of(snapshot, site)
        if arrivals.owner is not None and told:
            owner = arrivals.owner[order]
            if isinstance(site, SlurmSite):
                own_arrivals(coming, site, told_of(ToldJob, arrivals.owners), owner)
            elif names is not None:
                own_pbs_arrivals(coming, names, told_of(ToldPbsJob, arrivals.owners), owner)
    end = CORE_NEVER if until is None else until
    starts: Int64Array = np.minimum(
        beginning.run(runtimes, coming, only, threads, end, most_cpu_s), NEVER
    )
    return starts


def _site_of(policy: Policy) -> SlurmSite | PbsSite | None:
    return policy.backfill.site if isinstance(policy.backfill, Slurm | Pbs) else None


def _with_nodes(
    snapshot: Snapshot, policy: Policy, arriving: NodeRequests | None
) -> tuple[_core.Beginning, PbsNames | None]:
    """Give the core a snapshot with its machine; the codes of names, too, if a PBS has some."""
    if has_python(policy):
        raise InputError(
            f"forward runs ask no policy in Python ({policy.order}, {policy.backfill}): take a"
            " built-in one, or run each sample in foretime_sim.engine.stepwise.Engine"
        )
    beginning = _beginning(snapshot, policy)
    site = _site_of(policy)
    if site is not None and snapshot.machine != site.machine:
        raise InputError(
            f"under {policy.backfill} the snapshot's machine is that of the site: give it"
            " machine=site.machine"
        )
    names = PbsNames(site) if isinstance(site, PbsSite) else None
    if snapshot.machine is not None:
        coarse = isinstance(policy.backfill, Slurm) and policy.backfill.coarse
        give_nodes(beginning, snapshot, arriving, site, names, coarse=coarse)
    return beginning, names


def usable_cores() -> int:
    """Give the number of physical cores that this process may use."""
    physical = psutil.cpu_count(logical=False) or psutil.cpu_count() or 1
    return min(physical, len(os.sched_getaffinity(0)))


def _checked_runtimes(snapshot: Snapshot, actual_runtime: Int64Array) -> Int64Array:
    runtimes = np.asarray(actual_runtime)
    jobs = len(snapshot)
    if runtimes.ndim != 2 or runtimes.shape[1] != jobs or runtimes.dtype.kind not in "iu":
        raise InputError(
            f"actual_runtime has shape {runtimes.shape} and type {runtimes.dtype}: give integers"
            f" of shape (samples, {jobs}), a column for each of {len(snapshot.running)} running"
            f" and {len(snapshot.pending)} pending jobs"
        )
    if runtimes.size and (runtimes.min() < 0 or runtimes.max() > LONGEST_S):
        sample, job = np.argwhere((runtimes < 0) | (runtimes > LONGEST_S))[0]
        raise InputError(
            f"actual_runtime of sample {sample}, job {job} is {runtimes[sample, job]} s:"
            f" it must be from 0 to {LONGEST_S}"
        )
    return np.ascontiguousarray(runtimes, dtype=np.int64)


def _beginning(snapshot: Snapshot, policy: Policy) -> _core.Beginning:
    claims = () if snapshot.machine is not None else of_processors(snapshot.reservations)
    check_interval(policy, claims)
    policy.check_in(Place.FORWARD)
    if snapshot.machine is not None:
        policy.check_in(Place.NODES)
    if policy.switching is not None and snapshot.current_order is not None:
        policy = replace(policy, order=snapshot.current_order)
    beginning = _core.Beginning(
        snapshot.machine_processors,
        core_policy(policy),
        snapshot.now,
        snapshot.estimated_at,
        snapshot.pass_due,
    )
    for claim in claims:
        beginning.add_reservation(claim.start, claim.duration, claim.processors)
    running, pending = snapshot.running, snapshot.pending
    _, _, drain = by_role(running.requested_time, running.scheduled_time, policy.roles)
    beginning.add_running(
        running.start_time,
        running.processors,
        running.requested_time,
        drain,
        running.time_limits(),
    )
    beginning.add_pending(
        pending.joins_at(),
        pending.processors,
        pending.requested_time,
        *by_role(pending.requested_time, pending.scheduled_time, policy.roles),
        pending.time_limits(),
        pending.priorities(),
    )
    if pending.guard is not None:
        beginning.add_guard_notes(or_never(pending.guard.planned_start), pending.guard.active)
    if pending.plans is not None:
        start, until = pending.plans.gained or (CORE_NEVER, -CORE_NEVER)
        changed, broken = pending.plans.changed, pending.plans.broken
        planned = or_never(pending.plans.planned_start)
        beginning.add_plan_notes(planned, changed, broken, start, until)
    if (waits := pending.dependencies) is not None:
        columns = (
            waits.job + len(running),
            waits.on,
            waits.event,
            waits.delay_s,
            waits.any_suffices,
        )
        beginning.add_dependencies(*(column.astype(np.int64) for column in columns))
    for group in snapshot.limits:
        beginning.add_limit(group.jobs.astype(np.int64), group.most_jobs, group.most_processors)
    return beginning


def _placed(snapshot: Snapshot, machine: Machine, arrivals: SampledArrivals) -> SampledArrivals:
    """Give arrivals with what they ask of nodes, but for those that could never run."""
    jobs = len(arrivals.sample)
    labels = arrivals.slurm_partitions
    codes = np.full(jobs, -1, np.int64) if labels is None else labels.codes.astype(np.int64)
    columns = (codes, arrivals.processors, arrivals.requested_time)
    first, which = distinct_rows(columns)
    rows = np.stack([column[first] for column in columns], axis=1)
    reserved = node_reservations(snapshot.reservations)
    fitted: list[Request] = []
    number = np.full(len(rows), -1, dtype=np.int64)
    for row, (code, processors, requested) in enumerate(rows.tolist()):
        name = None if labels is None or code < 0 else labels.names[code]
        asked = JobResources(None if name is None else tuple(name.split(",")))
        try:
            request = fit_request(machine, asked, processors, requested, reserved)
        except InputError:
            continue
        number[row] = len(fitted)
        fitted.append(request)
    kept = np.flatnonzero(number[which] >= 0)
    requests = NodeRequests(tuple(fitted), number[which[kept]])
    return replace(arrivals.rows(kept), requests=requests, slurm_partitions=None)


def _arrivals(
    snapshot: Snapshot, policy: Policy, arrivals: SampledArrivals, samples: int
) -> tuple[_core.Arrivals, Int64Array]:
    jobs = len(arrivals.sample)

    def column(name: str, least: int, most: int = LONGEST_S) -> Int64Array:
        return checked_column("arrivals", name, getattr(arrivals, name), jobs, least, most)

    sample = column("sample", 0, samples - 1)
    requested = column("requested_time", 1)
    times = checked_times("arrivals", arrivals.scheduled_time, jobs)
    limit = requested if arrivals.time_limit is None else column("time_limit", 1)
    priority = (
        np.zeros(jobs, np.int64) if arrivals.priority is None else column("priority", -LONGEST_S)
    )
    requests = arrivals.requests
    if requests is not None and snapshot.machine is None:
        raise InputError("arrivals: requests are for a machine of nodes: this snapshot has none")
    request_of = np.zeros(jobs, np.int64)
    processors = column("processors", 1, snapshot.machine_processors)
    if requests is not None and snapshot.pending.requests is not None:
        if len(requests) != jobs or not np.array_equal(requests.processors(), processors):
            raise InputError("arrivals: processors are not those of the tasks of their requests")
        request_of = requests.number + len(snapshot.pending.requests.distinct)
    columns = (
        column("actual_runtime", 0),
        column("submit_time", snapshot.now + 1),
        processors,
        requested,
        *by_role(requested, times, policy.roles),
        limit,
        priority,
        request_of,
    )
    order = np.argsort(sample, kind="stable")
    first = np.searchsorted(sample[order], np.arange(samples + 1)).astype(np.int64)
    return _core.Arrivals.of(first, *(values[order] for values in columns)), order
