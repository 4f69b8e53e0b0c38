"""A cluster under Slurm, lived through second by second: when each loop runs."""

from __future__ import annotations

from foretime_estimators.jobs.errors import InputError

from foretime_sim.reference.slurm.backfill_loop import BackfillCycle
from foretime_sim.reference.slurm.controller import Controller
from foretime_sim.reference.slurm.interfaces import (
    BasicPriorities,
    Limits,
    NoLimits,
    Priorities,
)
from foretime_sim.reference.slurm.job import SlurmJob
from foretime_sim.reference.slurm.jobs_of_workload import slurm_jobs
from foretime_sim.reference.slurm.main_loop import MainLoop
from foretime_sim.reference.slurm.schedule import JobOutcome, SlurmSchedule
from foretime_sim.reference.slurm.submission import submit
from foretime_sim.sites.site_jobs import SiteJobs
from foretime_sim.sites.slurm_site import SlurmSite
from foretime_sim.workloads.workload import Workload

NEVER = 2**62


class Cluster:
    """The clock of one slurmctld.

    Parameters
    ----------
    controller
        What it knows.
    started_at
        When slurmctld began: the loops' periods count from then.
    patience_s
        How long to wait for a start once nothing but the loops happens.

    Notes
    -----
    Within a second: ends, priorities, submissions, the main loop, the backfill loop. Jobs leave
    their nodes at once: there is no epilog. Loops take no time.
    """

    def __init__(self, controller: Controller, started_at: int, patience_s: int) -> None:
        self.controller = controller
        self.parameters = controller.parameters
        self.patience_s = patience_s
        self.to_submit = sorted(controller.jobs, key=lambda job: (job.submit_time, job.index))
        self.last_full = self.last_main = self.last_backfill = started_at
        self.main_runs = self.backfill_runs = 0
        self.queued_at: int | None = None  # when the main loop was asked for (job_sched_cnt)
        self.asked_for: int | None = None  # when it is to run at once (schedule())
        self.moments = controller.reservations.moments
        self.last_event = started_at

    def run(self) -> None:
        """Live until every job has ended, or nothing will ever start those that wait."""
        while (now := self.next_time()) < NEVER:
            if now > self.last_event + self.patience_s and not self.something_comes():
                break
            self.controller.now = now
            self.step(now)

    def something_comes(self) -> bool:
        """Whether anything but a loop will happen."""
        controller = self.controller
        return bool(
            self.to_submit
            or controller.running
            or self.moments
            or any(job.begin_time > controller.now for job in controller.pending)
        )

    # When

    def next_time(self) -> int:
        """Give the next second in which something happens."""
        controller = self.controller
        times = [run.end for run in controller.running]
        if self.to_submit:
            times.append(self.to_submit[0].submit_time)
        if controller.pending:
            times += [self.next_main(), self.next_backfill(), *self.moments[:1]]
        if controller.pending or controller.running or self.to_submit:
            times.append(controller.priorities.next_tick)
        return max(min(times, default=NEVER), controller.now)

    def next_main(self) -> int:
        """When the main loop runs next.

        `_slurmctld_background` (controller.c) looks once a second: every sched_interval for a full
        run; for jobs that were submitted, from the next second on, batch_sched_delay after the last
        run of either kind. Ends of jobs ask `_sched_agent` (job_scheduler.c) directly, which keeps
        sched_min_interval.
        """
        times = [self.next_full()]
        if self.queued_at is not None:
            delay = self.parameters.batch_sched_delay
            times.append(max(self.queued_at + 1, self.last_main + delay))
        if self.asked_for is not None:
            times.append(self.asked_for)
        return min(times)

    def next_full(self) -> int:
        """When the main loop next looks at the whole queue."""
        interval = self.parameters.sched_interval
        if interval <= 0:
            return NEVER
        periods = max((self.controller.now - self.last_full) // interval, 1)
        at = self.last_full + periods * interval
        return at if at >= self.controller.now else at + interval

    def next_backfill(self) -> int:
        """When the backfill loop runs next: bf_interval after the last time, if anything changed.

        `backfill_agent` and `_more_work` (backfill.c); where nothing has changed by then it looks
        again every second.
        """
        if not self.parameters.backfill or self.parameters.bf_interval <= 0:
            return NEVER
        due = self.last_backfill + self.parameters.bf_interval
        changed = self.controller.last_update
        if changed < self.last_backfill:
            return NEVER
        return due if changed <= due else changed + 1

    # What

    def step(self, now: int) -> None:
        """Let everything of one second happen."""
        controller = self.controller
        for run in [run for run in controller.running if run.end <= now]:
            controller.finish(run)
            self.happened(now)
            self.ask_for_main(now)
        if controller.priorities.next_tick <= now:
            controller.priorities.tick(now)
            controller.last_update = now
        while self.to_submit and self.to_submit[0].submit_time <= now:
            submit(controller, self.to_submit.pop(0))
            self.happened(now)
            self.queue_main(now)
        while self.moments and self.moments[0] <= now:
            self.moments.pop(0)
            self.happened(now)
            controller.last_update = now
            self.queue_main(now)
        if not controller.pending:
            return
        if self.next_main() <= now:
            self.run_main(now)
        if self.next_backfill() <= now:
            self.run_backfill(now)

    def happened(self, now: int) -> None:
        """Note that something happened which may let jobs start."""
        self.last_event = now

    def queue_main(self, now: int) -> None:
        """Ask for the main loop soon (`queue_job_scheduler`)."""
        if self.queued_at is None:
            self.queued_at = now

    def ask_for_main(self, now: int) -> None:
        """Ask for the main loop at once, or soon with ``defer`` (`_slurm_rpc_epilog_complete`)."""
        if self.parameters.defer:
            self.queue_main(now)
            return
        pause = -(-self.parameters.sched_min_interval_us // 1_000_000)
        if self.parameters.sched_min_interval_us < 1_000_000:
            pause = 0
        at = max(now, self.last_main + pause)
        self.asked_for = at if self.asked_for is None else min(self.asked_for, at)

    def run_main(self, now: int) -> None:
        """Run the main loop, on the whole queue if that is due."""
        full = self.next_full() <= now
        if full:
            self.last_full = now
        if full or (self.queued_at is not None and self.queued_at < now):
            self.queued_at = None
        self.asked_for = None
        self.last_main = now
        self.main_runs += 1
        if MainLoop(self.controller, full=full).run():
            self.happened(now)

    def run_backfill(self, now: int) -> None:
        """Run a backfill cycle; planned nodes count as a change (`_handle_planned`)."""
        cycle = BackfillCycle(self.controller)
        self.backfill_runs += 1
        if cycle.run():
            self.happened(now)
        self.last_backfill = now
        if cycle.plans.planned:
            self.controller.last_update = now


def check_site(site: SlurmSite) -> None:
    """Refuse what is not modelled.

    Raises
    ------
    InputError
        If the site preempts.
    """
    if site.preempt_type != "preempt/none" and site.preempt_mode.upper() != "OFF":
        raise InputError(
            f"preempt_type is {site.preempt_type} with preempt_mode {site.preempt_mode}: preemption"
            " is not modelled; set preempt_mode to OFF to see the site without it"
        )


def simulate_slurm(
    workload: Workload,
    site: SlurmSite,
    site_jobs: SiteJobs | None = None,
    *,
    priorities: Priorities | None = None,
    limits: Limits | None = None,
    started_at: int | None = None,
    patience_s: int | None = None,
) -> SlurmSchedule:
    """Schedule a workload as one slurmctld would.

    Parameters
    ----------
    workload
        Its ``requests`` are asked of the site's machine; its own is not looked at.
    site
        Machine, parameters, reservations, licenses.
    site_jobs
        What jobs say besides; ``None``: nothing.
    priorities, limits
        Default: priority/basic, and no limits.
    started_at
        When slurmctld began, from which on the loops' periods count; default: the first
        submission. Earlier than that the loops just run.
    patience_s
        How long to wait for a start when nothing else happens any more, before the jobs that wait
        are left; default: some rounds of both loops, a week where there are limits.

    Raises
    ------
    InputError
        If a job could never run, or the site does what is not modelled.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.cluster import simulate_slurm
    >>> from foretime_sim.sites.slurm_site import SlurmSite
    >>> workload = generate("lublin2003", jobs=20, seed=1)
    >>> schedule = simulate_slurm(workload, SlurmSite(Machine.flat(256)))
    >>> all(job.start is not None for job in schedule.jobs)
    True
    """
    check_site(site)
    jobs = slurm_jobs(workload, site, site_jobs or SiteJobs())
    parameters = site.parameters
    if patience_s is None:
        rounds = 3 * max(parameters.sched_interval, parameters.bf_interval, 60)
        patience_s = rounds + parameters.bf_min_age_reserve
        if limits is not None:
            patience_s = max(patience_s, 604_800)
    first = min((job.submit_time for job in jobs), default=0)
    began = first if started_at is None else started_at
    controller = Controller(
        site, jobs, priorities or BasicPriorities(), limits or NoLimits(), workload.epoch_of_zero
    )
    controller.now = began
    cluster = Cluster(controller, began, patience_s)
    cluster.run()
    return SlurmSchedule(
        tuple(outcome(job) for job in jobs),
        cluster.main_runs,
        cluster.backfill_runs,
        {job.index: job.reason or "" for job in jobs if job.refused},
    )


def outcome(job: SlurmJob) -> JobOutcome:
    """Say what became of a job."""
    run = job.run
    if run is None:
        return JobOutcome(planned_start=job.estimate, reason=job.reason)
    return JobOutcome(
        start=run.start,
        end=run.end,
        loop=run.loop,
        slurm_partition=run.partition_index,
        nodes=tuple(sorted(run.allocation.cpus.items())),
        planned_start=job.estimate,
        killed=run.killed,
    )
