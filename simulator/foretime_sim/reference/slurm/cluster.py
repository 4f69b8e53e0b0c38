"""A cluster under Slurm, lived through second by second: when each loop runs."""

from __future__ import annotations

from collections.abc import Sequence

from foretime_estimators.jobs.errors import InputError

from foretime_sim.reference.slurm.fractions import Fractions
from foretime_sim.reference.slurm.jobs.job import Run, SlurmJob
from foretime_sim.reference.slurm.jobs.jobs_of_workload import slurm_jobs
from foretime_sim.reference.slurm.jobs.schedule import JobOutcome, SlurmSchedule
from foretime_sim.reference.slurm.limits.limits import Limits
from foretime_sim.reference.slurm.loops.backfill_loop import BackfillCycle
from foretime_sim.reference.slurm.loops.controller import PERIODIC_TIMEOUT, Controller
from foretime_sim.reference.slurm.loops.interfaces import Limits as AnyLimits
from foretime_sim.reference.slurm.loops.interfaces import Priorities as AnyPriorities
from foretime_sim.reference.slurm.loops.main_loop import MainLoop
from foretime_sim.reference.slurm.loops.submission import submit
from foretime_sim.reference.slurm.priorities.epoch_priorities import EpochPriorities
from foretime_sim.reference.slurm.priorities.priorities import Priorities
from foretime_sim.sites.slurm.refusals import unmodelled_refusal
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload

NEVER = 2**62
WAKES_WITH_SECONDS_VERSION = (24, 11)
"""From here on, or somewhat before: `_slurmctld_background` waits until the next full second."""


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
    From 24.11 on the background thread wakes with each second of the clock, so it sees what came in
    the second before; in 22.05 it sleeps for a second at a time, and what came in the same second
    is taken to be seen. So the order within a second is: the main loop (24.11 and newer), ends,
    priorities, submissions, the main loop (before, and where ends ask for it at once), the backfill
    loop; ``fractions`` tells another. Jobs leave their nodes at once: there is no epilog. Loops
    take no time.
    """

    def __init__(
        self,
        controller: Controller,
        started_at: int,
        patience_s: int,
        fractions: Fractions | None = None,
    ) -> None:
        self.controller = controller
        self.parameters = controller.parameters
        self.patience_s = patience_s
        self.wakes_with_seconds = controller.site.version >= WAKES_WITH_SECONDS_VERSION
        self.fractions = fractions or Fractions(main=0.0 if self.wakes_with_seconds else 0.5)
        self.to_submit = sorted(controller.jobs, key=lambda job: (job.submit_time, job.index))
        self.last_full = self.last_queued_run = started_at  # of the background thread
        self.last_main = started_at
        self.last_backfill = self._last_backfill_before_jobs(started_at)
        self.main_runs = self.backfill_runs = 0
        self.queued_at: int | None = None  # when the main loop was asked for (job_sched_cnt)
        self.asked_for: int | None = None  # when it is to run at once (schedule())
        self.asked_full = False
        self.nodes_planned = False
        self.moments = controller.reservations.moments
        self.last_event = started_at
        self.looks_from = started_at

    def _last_backfill_before_jobs(self, started_at: int) -> int:
        """Give when the backfill loop last ran before the first submission; it keeps its period."""
        interval = self.parameters.bf_interval
        if not self.to_submit or interval <= 0:
            return started_at
        idle = self.to_submit[0].submit_time - started_at
        return started_at + max(idle - 1, 0) // interval * interval

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
        if controller.pending or times:
            times += [self.next_full(), self.next_queued(), self.next_backfill()]
            times += [controller.priorities.next_tick, *self.moments[:1]]
            if self.asked_for is not None:
                times.append(self.asked_for)
            if controller.limits.may_kill:
                times.append(self.next_look())
        return max(min(times, default=NEVER), controller.now)

    def next_full(self) -> int:
        """When the main loop next looks at the whole queue: every sched_interval."""
        interval = self.parameters.sched_interval
        return self.last_full + interval if interval > 0 else NEVER

    def next_queued(self) -> int:
        """When the main loop runs for what was submitted, or has ended.

        `_slurmctld_background` (controller.c) looks once a second, and keeps batch_sched_delay
        since its last run of either kind.
        """
        if self.queued_at is None:
            return NEVER
        seen_at = self.queued_at + 1 if self.wakes_with_seconds else self.queued_at
        return max(seen_at, self.last_queued_run + self.parameters.batch_sched_delay)

    def next_look(self) -> int:
        """When running jobs are looked at next whose minutes may be used up."""
        since = self.controller.now - self.looks_from
        return self.controller.now + PERIODIC_TIMEOUT - since % PERIODIC_TIMEOUT

    def next_backfill(self) -> int:
        """When the backfill loop runs next: bf_interval after the last time, if anything changed.

        `backfill_agent` and `_more_work` (backfill.c); where nothing has changed by then it looks
        again every second.
        """
        if not self.parameters.backfill or self.parameters.bf_interval <= 0:
            return NEVER
        if self.controller.last_update < self.last_backfill:
            return NEVER
        return max(self.last_backfill + self.parameters.bf_interval, self.controller.last_update)

    # What

    def step(self, now: int) -> None:
        """Let everything of one second happen."""
        fractions = self.fractions
        parts = (
            (fractions.of_main(now), self.wake),
            (fractions.tick, self.tick),
            (fractions.submission, self.take_in),
            (fractions.of_backfill(now), self.run_backfill_if_due),
            (1.0, self.run_main_if_asked),
        )
        passed = 0.0
        for fraction, part in sorted(parts, key=lambda each: each[0]):
            self.end_jobs(now, passed, fraction)
            part(now)
            passed = fraction

    def end_jobs(self, now: int, after: float, before: float) -> None:
        """Let the jobs end that do so within a part of a second."""
        for run in [run for run in self.controller.running if run.end <= now]:
            if after <= self.fractions.of_end(run) < before:
                self.end_job(run, now)

    def end_job(self, run: Run, now: int) -> None:
        """Let a job end.

        Of one that is killed as slurmctld looks nodes tell by the epilog's message.
        """
        self.controller.finish(run)
        self.happened(now)
        by_epilog = self.parameters.epilog or (run.killed and self.controller.looks)
        if by_epilog and not self.parameters.defer:
            self.ask_for_main(now)
        else:
            self.queue_main(now)

    def tick(self, now: int) -> None:
        """Work usage and priorities out anew, if that is due."""
        controller = self.controller
        if controller.priorities.next_tick <= now:
            controller.priorities.tick(now)
            controller.limits.tick(now)
            controller.last_update = now

    def take_in(self, now: int) -> None:
        """Take up what is submitted, and look at reservations."""
        controller = self.controller
        while self.to_submit and self.to_submit[0].submit_time <= now:
            submit(controller, self.to_submit.pop(0))
            self.happened(now)
            self.queue_main(now)
        while self.moments and self.moments[0] <= now:
            self.moments.pop(0)
            self.happened(now)
            controller.last_update = now
            self.queue_main(now)

    def run_backfill_if_due(self, now: int) -> None:
        """Run a backfill cycle if one is due, after a main loop that was asked for."""
        self.run_main_if_asked(now)
        if self.next_backfill() <= now:
            self.run_backfill(now)

    def end_used_up(self, now: int) -> None:
        """End running jobs whose minutes are used up (`job_time_limit`, job_mgr.c).

        Each is charged as it ends (`acct_policy_job_fini`), before the next is looked at; it has
        KillWait to end, but is gone at once here.
        """
        if (now - self.looks_from) % PERIODIC_TIMEOUT or now == self.looks_from:
            return
        for run in list(self.controller.running):
            if self.controller.limits.is_killed(run.job, now):
                run.end, run.killed, run.used_up = now, run.end > now, run.end > now
                self.end_job(run, now)

    def wake(self, now: int) -> None:
        """Let the background thread look at running jobs, and ask for the main loop if it is due.

        `_slurmctld_background` (controller.c), in this order.
        """
        self.end_used_up(now)
        full = self.next_full() <= now
        if full:
            self.last_full = now
        if full or self.next_queued() <= now:
            self.queued_at = None
            self.last_queued_run = now
            self.asked_full |= full
            self.ask_for_main(now)
        self.run_main_if_asked(now)

    def happened(self, now: int) -> None:
        """Note that something happened which may let jobs start."""
        self.last_event = now

    def queue_main(self, now: int) -> None:
        """Ask for the main loop soon (`queue_job_scheduler`)."""
        if self.queued_at is None:
            self.queued_at = now

    def ask_for_main(self, now: int) -> None:
        """Ask for the main loop at once (`schedule`); it keeps sched_min_interval.

        Ends do where they come with an epilog's message (`_slurm_rpc_epilog_complete`); otherwise
        the agent that tells the nodes of the end only queues it (agent.c).
        """
        pause = self.parameters.sched_min_interval_us
        pause = -(-pause // 1_000_000) if pause >= 1_000_000 else 0
        at = max(now, self.last_main + pause)
        self.asked_for = at if self.asked_for is None else min(self.asked_for, at)

    def run_main_if_asked(self, now: int) -> None:
        """Run the main loop, on the whole queue if that was asked for (`_sched_agent`)."""
        if self.asked_for is None or self.asked_for > now:
            return
        full, self.asked_full, self.asked_for = self.asked_full, False, None
        self.last_main = now
        self.main_runs += 1
        if MainLoop(self.controller, full=full).run():
            self.happened(now)

    def run_backfill(self, now: int) -> None:
        """Run a backfill cycle.

        Nodes that are planned, or were, count as a change, so that the next cycle comes for sure
        (`_handle_planned`); before 24.11 only idle ones.
        """
        cycle = BackfillCycle(self.controller)
        self.backfill_runs += 1
        if cycle.run():
            self.happened(now)
        self.last_backfill = now
        planned = cycle.plans.planned_nodes
        if not self.wakes_with_seconds:
            planned = {node for node in planned if self.controller.use.is_idle(node)}
        if planned or self.nodes_planned:
            self.controller.last_update = now
        self.nodes_planned = bool(planned)


def simulate_slurm(
    workload: Workload,
    site: SlurmSite,
    site_jobs: SiteJobs | None = None,
    *,
    priorities: AnyPriorities | None = None,
    limits: AnyLimits | None = None,
    started_at: int | None = None,
    fractions: Fractions | None = None,
    looks_at_limits: Sequence[int] = (),
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
        Default: those of the site.
    started_at
        When slurmctld began, from which on the loops' periods count; default: the first
        submission. Earlier than that the loops just run.
    fractions
        At which fraction of a second what happens; default: as `Cluster` has it.
    looks_at_limits
        Seconds at which slurmctld looks for jobs over their limits, as it does every 30 s: they end
        then. Empty: at their limits, as in the core.
    patience_s
        How long to wait for a start when nothing else happens any more, before the jobs that wait
        are left; default: some rounds of both loops, a week where there are limits.

    Raises
    ------
    InputError
        If a job could never run, or the site does what is not modelled.

    Notes
    -----
    Left out: what a loop's own time changes (bf_max_time, bf_yield_interval, max_sched_time,
    max_rpc_cnt), and the moments in which nodes complete, so that CompleteWait has no effect;
    preemption, which is refused; flags of reservations, and licenses that they hold; heterogeneous
    jobs, deadlines, required nodes, contiguous nodes, how many switches a job
    asks for, topologies other than topology/tree; sockets, threads and
    which GPU a core is next to; CR_LLN, bf_busy_nodes, pack_serial_at_end, bf_topopt_enable, and
    bf_node_space_size other than bf_max_job_test. All jobs are batch jobs.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.reference.slurm.cluster import simulate_slurm
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> workload = generate("lublin2003", jobs=20, seed=1)
    >>> schedule = simulate_slurm(workload, SlurmSite(Machine.flat(256)))
    >>> all(job.start is not None for job in schedule.jobs)
    True
    """
    refusal = unmodelled_refusal(site)
    if refusal is not None:
        raise InputError(f"site: {refusal}")
    jobs = slurm_jobs(workload, site, site_jobs or SiteJobs())
    parameters = site.parameters
    if patience_s is None:
        rounds = 3 * max(parameters.sched_interval, parameters.bf_interval, 60)
        patience_s = rounds + parameters.bf_min_age_reserve
        if site.enforced:
            patience_s = max(patience_s, 604_800)
    first = min((job.submit_time for job in jobs), default=0)
    began = first if started_at is None else started_at
    epoch = workload.epoch_of_zero
    controller = Controller(
        site,
        jobs,
        priorities or EpochPriorities(Priorities(site, began + epoch), epoch),
        limits or Limits(site, began),
        epoch,
    )
    controller.now = began
    controller.looks = looks_at_limits
    cluster = Cluster(controller, began, patience_s, fractions)
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
        used_up=run.used_up,
    )
