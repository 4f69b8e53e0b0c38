"""The test of one job by the backfill loop: now, and later as plans of others end."""

from __future__ import annotations

import enum

from foretime_sim.reference.slurm.jobs.job import Run
from foretime_sim.reference.slurm.jobs.schedule import Loop
from foretime_sim.reference.slurm.loops.backfill_plans import BackfillPlans
from foretime_sim.reference.slurm.loops.controller import Verdict
from foretime_sim.reference.slurm.loops.queue import QueueRecord
from foretime_sim.reference.slurm.nodes.node_space import Slot, has_licenses
from foretime_sim.reference.slurm.nodes.will_run import WillRun, will_run

TIMED_TESTS_VERSION = (24, 11)
"""From here on the select plugin is told the time that backfill asks for; in 22.05 it is not."""
LICENSE_REASON_VERSION = (24, 5)
"""From here on a job that lacks planned licenses has that reason (CHANGELOG)."""
UNKNOWN_START_S = 500
"""Where limits hold a job under assoc_limit_stop, and nothing is known of later."""


class Next(enum.Enum):
    """How the cycle goes on after a job."""

    JOB = "with the next one"
    STOP = "not at all"


class BackfillTest:
    """The test of one job: now, and later as often as plans of others end.

    From TRY_LATER on in `_attempt_backfill`.
    """

    def __init__(self, plans: BackfillPlans, record: QueueRecord, now_only: bool) -> None:
        self.plans = plans
        self.controller = plans.controller
        self.space = plans.space
        self.now = plans.now
        self.record = record
        self.job = record.job
        self.now_only = now_only
        self.counted = False
        self.estimate_before = self.job.estimate  # that of another slurm_partition
        self.time_limit_before = self.job.time_limit_s
        self.time_limit_s = self.job.time_limit_s
        if 0 < self.job.time_min_s < self.time_limit_s:
            self.time_limit_s = self.job.time_limit_s = self.job.time_min_s

    def run(self) -> Next:
        """Test from now on, then from each later start, until the job is started or planned."""
        later: int | None = self.now
        following = Next.JOB
        while later is not None:
            self.job.time_limit_s = self.time_limit_s
            later, following = self.test(later)
        if self.job.is_pending:
            self.job.time_limit_s = self.time_limit_before
        return following

    def give_up(self, later: int | None) -> tuple[int | None, Next]:
        """Try later, if there is a later and the job may be planned (SKIP_SCHED_OR_TRY_LATER)."""
        if later is not None and not self.now_only:
            self.job.estimate = None
            return later, Next.JOB
        self.job.estimate = self.estimate_before
        return None, Next.JOB

    def test(self, start: int) -> tuple[int | None, Next]:
        """Test a start; give the next one to test, or None."""
        partition_index = self.record.partition_index
        in_partition = self.controller.nodes_of_partition[partition_index]
        usable = self.controller.reservations.usable(self.job, start, in_partition)
        if usable is None or start > self.space.window_end:
            return None, Next.JOB
        end = max(start, self.now) + self.time_limit_s
        nodes = in_partition - usable.closed
        free, later, licensed = self.free_of_plans(nodes, start, end)
        if usable.overlap:
            later = self.end_of_reservation(start, later)
        free &= self.controller.configured_nodes(self.job, self.record.number)
        if not licensed or len(free) < self.job.min_nodes:
            return self.give_up(later)
        if not self.counted:
            self.plans.tested += 1
            self.counted = True
        found = self.when_it_runs(free, start, later)
        if found is None:
            return self.give_up(later)
        planned = max(found.start, start)
        self.job.estimate = planned
        overlap_tested = False
        if planned > self.now and self.plans.version >= TIMED_TESTS_VERSION:
            if self.overlaps(planned, found.nodes):
                return self.after_overlap(planned, start)
            overlap_tested = True
        if planned <= self.now:
            done = self.start_now(free, later)
            if done is not None:
                return None, done
            planned, later = self.job.estimate, None
        return self.plan(planned, found.nodes, start, later, overlap_tested)

    def overlaps(self, planned: int, nodes: frozenset[int]) -> bool:
        """Whether others have planned to have some of the nodes by then."""
        slot = self.plans.slot_of(planned, self.time_limit_s)
        return self.space.overlaps(*slot, nodes, self.plans.licenses_kept(self.job))

    def when_it_runs(self, free: frozenset[int], start: int, later: int | None) -> WillRun | None:
        """Ask the select plugin."""
        timed = self.plans.version >= TIMED_TESTS_VERSION
        return will_run(
            self.controller.choice(self.job, self.record.number),
            free,
            self.controller.use,
            self.controller.running,
            self.controller.ends,
            self.now,
            now_only=self.now_only,
            start=start if timed else None,
            end=later if timed else None,
        )

    def free_of_plans(
        self, nodes: frozenset[int], start: int, end: int
    ) -> tuple[frozenset[int], int | None, bool]:
        """Nodes without plans from start to end, the next start worth a test, and licenses.

        The next start is the first end of a slot after which there are nodes that were not there.
        From 24.11 on it is, failing that, the end of the second slot after the job's. Where
        licenses lack, it is the end of the first slot that lacks them. 22.05 takes the last such
        slot, which comes to the same: all starts in between lack them, too.
        """
        free, later = nodes, None
        slots = self.space.slots
        for number, slot in enumerate(slots):
            has_next = number + 1 < len(slots)
            if slot.end > start and has_next and later is None:
                following = slots[number + 1]
                if not (nodes & following.nodes) <= (free & slot.nodes):
                    later = slot.end
            if slot.end <= start:
                continue
            if slot.begin > end:
                if self.plans.version >= TIMED_TESTS_VERSION and later is None:
                    later = self._end_of_next(slots, number)
                break
            free &= slot.nodes
            if not has_licenses(slot, self.plans.licenses_kept(self.job)):
                if self.plans.version >= LICENSE_REASON_VERSION:
                    self.controller.refuse(self.job, "Licenses")
                return free, slot.end, False
        return free, later, True

    @staticmethod
    def _end_of_next(slots: list[Slot], number: int) -> int | None:
        return slots[number + 1].end if number + 2 < len(slots) else None

    def end_of_reservation(self, start: int, later: int | None) -> int | None:
        """Take the end of a reservation, if it comes before the next start worth a test."""
        end = self.controller.reservations.next_end(start)
        if end is None:
            return later
        end = self.space.round_up(end) + 1
        if end < self.space.window_end and (later is None or end < later):
            return end
        return later

    def after_overlap(self, planned: int, start: int) -> tuple[int | None, Next]:
        """Try again from the start found, or a resolution later if it was the one tested.

        The latter came after 22.05, which tests the same time again until bf_max_time.
        """
        self.job.estimate = None
        return planned + (self.plans.parameters.bf_resolution if planned == start else 0), Next.JOB

    def start_now(self, free: frozenset[int], later: int | None) -> Next | None:
        """Start the job; None if it could not and is to be planned from now on after all.

        Any free node may do: the choice is made anew (`_start_job`).
        """
        job, plans = self.job, self.plans
        verdict = self.controller.select_nodes(
            job, self.record.number, free, Loop.BACKFILL, self.time_limit_before
        )
        job.time_limit_s = self.time_limit_before
        if verdict is Verdict.STARTED and job.run is not None:
            if job.time_min_s and not self.controller.soft_limits:
                job.time_limit_s = self.limit_left(job.run)
            self.controller.set_ends(job.run)
            plans.reserve_running(job.run)
            plans.rejected_array.clear()
            plans.started += 1
            if 0 < plans.parameters.bf_max_job_start <= plans.started:
                return Next.STOP
            return Next.JOB
        if verdict is Verdict.RESERVED or (
            verdict is Verdict.POLICY and not plans.parameters.assoc_limit_stop
        ):
            job.estimate = self.estimate_before
            return Next.JOB
        if verdict is Verdict.POLICY:
            job.estimate = self.now + UNKNOWN_START_S if later is None else later
        return None

    def limit_left(self, run: Run) -> int:
        """Time limit of a started job that has a least time (`_reset_job_time_limit`).

        To the next plan on its nodes, though not below its least time. Before 25.05.3 it is the
        least time at once (CHANGELOG).
        """
        job, limit = self.job, self.time_limit_before
        if self.plans.version < (25, 5):
            return min(job.time_min_s, limit)
        for slot in self.space.slots:
            begins_within = self.now != slot.begin < run.start + limit
            if begins_within and not run.allocation.nodes <= slot.nodes:
                limit = min(limit, max(slot.begin - self.now, 0) // 60 * 60)
        return max(job.time_min_s, limit)

    def plan(
        self,
        planned: int,
        nodes: frozenset[int],
        start: int,
        later: int | None,
        overlap_tested: bool,
    ) -> tuple[int | None, Next]:
        """Note the start, and take the nodes out of the table for its time."""
        job, plans, parameters = self.job, self.plans, self.plans.parameters
        if planned > self.now and self.now_only:
            self.keep_earlier(planned)
            return None, Next.JOB
        if later is not None and planned > later:
            job.estimate = None
            return later, Next.JOB
        if planned > self.now + parameters.bf_window:
            self.keep_earlier(planned)
            return None, Next.JOB
        if not overlap_tested and self.overlaps(planned, nodes):
            return self.after_overlap(planned, start)
        if not parameters.assoc_limit_stop:
            tres = job.tres | {"node": len(nodes)}
            reason = self.controller.limits.why_not_started(job, tres, self.now, nodes)
            if reason is not None:
                self.controller.refuse(job, reason, policy=True)
                return None, Next.JOB
        if plans.are_enough(self.record.partition_index):
            return None, Next.JOB
        plans.count(self.record)
        if not (parameters.bf_one_resv_per_job and self.estimate_before is not None):
            if self.space.is_full:
                return None, Next.STOP
            slot = plans.slot_of(planned, self.time_limit_s)
            self.space.reserve(*slot, nodes, plans.licenses_kept(job))
            plans.planned_nodes |= nodes
        self.keep_earlier(planned)
        return None, Next.JOB

    def keep_earlier(self, planned: int) -> None:
        """Keep the plan of another slurm_partition if that is earlier."""
        if self.estimate_before is not None and self.estimate_before < planned:
            self.job.estimate = self.estimate_before
