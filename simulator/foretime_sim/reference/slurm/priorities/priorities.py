"""Priorities of jobs as Slurm's queue has them: worked out at submission, and at every tick.

Live 22.05.8 and 26.05.5 give every digit of it (``tests/slurm/model/test_priorities.py``).

Not here: several QOS of a job (24.05 and newer), a site-factor plug-in, priorities that operators
set, PriorityUsageResetPeriod in local time (days begin in UTC), settings changed on the way.

Sources: src/plugins/priority/multifactor/priority_multifactor.c, src/plugins/priority/basic, and
``set_job_prio`` (src/slurmctld/job_mgr.c) of 22.05.8 and 25.11.7.

What Slurm does, and one might not expect:

- A tick is of the decay thread, every PriorityCalcPeriod. It decays what was used, charges running
  jobs in the order of their submission, and works out the priorities of pending ones on the way.
  So under classic fair share what a job sees of others' usage depends on its place among them.
- Between ticks priorities stand still. A job gets its first one when it is submitted, from the fair
  share of that moment, and another when it is released or changed.
- The end of a job charges what was used since the last tick only where limits are enforced
  (``_adjust_limit_usage`` of acct_policy.c). Elsewhere that part is lost, and a job that begins and
  ends between two ticks costs nothing.
- A suspended job is charged on.
- Memory that is not counted on nodes (CR_Core) is no part of what a job is given: it weighs and
  bills nothing from its start on, though it did while the job waited.
- All tasks of an array that wait are one record in Slurm. Here each is a job; they have the same
  priority.
- Without associations (no slurmdbd) there are no ticks, no age and no fair share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from foretime_sim.reference.slurm.jobs.billing import billing
from foretime_sim.reference.slurm.priorities.factors import Factors, FactorsOfJobs, PricedJob
from foretime_sim.reference.slurm.priorities.fair_share import FairShare
from foretime_sim.reference.slurm.priorities.usage import UsageClock, charge
from foretime_sim.sites.slurm.accounts import Accounts
from foretime_sim.sites.slurm.site import SlurmSite

NEVER = 2**62
"""``next_tick`` where there is none."""
_HIGHEST_BASIC = 0xFFFF0000
_UINT32 = 0xFFFFFFFF


@dataclass(slots=True)
class _Known:
    """A job that is in the queue or runs."""

    job: PricedJob
    association: int | None
    usage_factor: float | None
    held: bool = False
    priority: int = 0
    among_several: dict[str, int] = field(default_factory=dict)
    factors: dict[str, Factors] = field(default_factory=dict)
    is_changed: bool = False
    started_at: int | None = None
    slurm_partition: str = ""
    billable: float = 0.0
    tres: Mapping[str, int] = field(default_factory=dict)


class Priorities:
    """Priorities on a site from some moment on.

    Parameters
    ----------
    site
        See `SlurmSite`; without associations, as without slurmdbd.
    now
        Epoch seconds. The decay thread begins, as in a new slurmctld: fair share is worked out
        from the site's usage as it was at ``site.usage_at``.

    Attributes
    ----------
    fair_share, clock
        Usage, and when it is worked out.

    Raises
    ------
    InputError
        As `Accounts` and `UsageClock`.
    """

    def __init__(self, site: SlurmSite, now: int) -> None:
        self._site, self._settings = site, site.priority
        self._accounts = Accounts(site)
        self._factors = FactorsOfJobs(site)
        self._charges_ends = bool({"limits", "safe", "all"} & site.enforced)
        self._shows_running = "CALCULATE_RUNNING" in self._settings.flags
        self._only_up = "INCR_ONLY" in self._settings.flags
        self._jobs: dict[int, _Known] = {}
        self._lowest = _HIGHEST_BASIC
        self.fair_share = FairShare(site)
        self.clock = UsageClock(self._settings, now, site.usage_at)
        self._has_ticks = self._settings.multifactor and bool(site.associations)
        if self._has_ticks:
            if self.clock.resets_at_once:
                self.fair_share.reset()
            if self.fair_share.is_fair_tree:
                self.fair_share.apply_fair_tree()
            else:
                self.fair_share.begin_classic()

    @property
    def next_tick(self) -> int:
        """When `tick` is due; `NEVER` where nothing changes with time."""
        return self.clock.next_tick if self._has_ticks else NEVER

    # What happens to jobs -------------------------------------------------------------------------

    def submitted(self, job: PricedJob, now: int, *, held: bool = False) -> None:
        """Take up a job; a held one has the priority 0 until `recompute`.

        Raises
        ------
        InputError
            If it names a QOS that the site does not have.
        """
        association = self._accounts.association_of(job.user, job.account, job.slurm_partitions)
        qos = self._accounts.qos_of(association, job.qos)
        factor = None if qos is None else self._site.qos[qos].usage_factor
        if factor is not None and factor < 0:
            factor = None
        known = _Known(job, association, factor, held, slurm_partition=job.slurm_partitions[0])
        self._jobs[job.index] = known
        if not held:
            self._set(known, now)

    def recompute(self, job: PricedJob, now: int) -> None:
        """Work out a priority between ticks, as when a job is released, changed or requeued.

        What is known of the job is taken from the one given.
        """
        known = self._jobs[job.index]
        known.job, known.held = job, False
        known.is_changed = True
        self._set(known, now)

    def started(
        self,
        job: PricedJob,
        tres: Mapping[str, int],
        now: int,
        slurm_partition: str | None = None,
    ) -> None:
        """Note a start with what was given to the job; ``None``: in its first slurm_partition."""
        known = self._jobs[job.index]
        known.started_at = now
        known.slurm_partition = slurm_partition or job.slurm_partitions[0]
        known.tres = dict(tres)
        weights = self._site.rules_of(known.slurm_partition).billing_weights
        known.billable = billing(tres, weights, self._settings.flags)
        known.is_changed = True

    def ended(self, job: PricedJob, now: int) -> None:
        """Note the end of a job that ran, or of one that is cancelled as it waits."""
        known = self._jobs.pop(job.index)
        if known.started_at is not None and self._charges_ends and self._has_ticks:
            self._charge(known, now)

    # The decay thread -----------------------------------------------------------------------------

    def tick(self, now: int) -> None:
        """Work out usage, fair share and priorities (one turn of ``_decay_thread``)."""
        if not self._has_ticks:
            return
        clock, fair_share = self.clock, self.fair_share
        if clock.resets(now):
            fair_share.reset()
        if not fair_share.is_fair_tree:
            fair_share.begin_classic()
        kept = clock.kept(now)
        if kept is not None and kept != 1:
            fair_share.decay(kept)
        if fair_share.is_fair_tree:
            for known in self._jobs.values():
                if known.started_at is not None:
                    self._charge(known, now)
            fair_share.apply_fair_tree()
            for known in self._jobs.values():
                self._tick_job(known, now)
        elif kept is not None:
            for known in self._jobs.values():
                if known.started_at is not None:
                    self._charge(known, now)
                self._tick_job(known, now)
        clock.last_ran = now
        clock.next_tick += clock.period_s
        if clock.next_tick <= now:
            clock.next_tick = now + clock.period_s

    def _charge(self, known: _Known, until: int) -> None:
        if known.association is None or known.started_at is None:
            return
        since = max(known.started_at, self.clock.last_ran)
        self.fair_share.charge(
            known.association,
            charge(until - since, known.billable, self.clock.decay_factor, known.usage_factor),
        )

    def _tick_job(self, known: _Known, now: int) -> None:
        if known.held or (known.started_at is not None and not self._shows_running):
            return
        priority = self._multifactor(known, now)
        if not self._only_up or known.priority < priority:
            known.priority = priority

    # Working out ----------------------------------------------------------------------------------

    def _set(self, known: _Known, now: int) -> None:
        """``set_job_prio``."""
        if self._settings.multifactor:
            known.priority = self._multifactor(known, now)
        else:
            known.priority = self._basic(known.job.nice)

    def _multifactor(self, known: _Known, now: int) -> int:
        """``_get_priority_internal``: also of each slurm_partition, where there are several."""
        job = known.job
        age, fair_share = self._factors.age(job, now), self._fair_share_of(known)
        for name in {known.slurm_partition: None} | dict.fromkeys(job.slurm_partitions):
            if known.is_changed or name not in known.factors:
                tres = job.tres if known.started_at is None else known.tres
                known.factors[name] = self._factors.fixed(job, tres, name)
            known.factors[name] = known.factors[name].aged(age, fair_share)
        known.is_changed = False
        if len(job.slurm_partitions) > 1:
            for name in job.slurm_partitions:
                priority = known.factors[name].priority_among_several
                if not self._only_up or known.among_several.get(name, 0) < priority:
                    known.among_several[name] = priority
        return known.factors[known.slurm_partition].priority

    def _fair_share_of(self, known: _Known) -> float:
        if known.association is None or not self._settings.weight_fair_share:
            return 0.0
        factor = self.fair_share.factor_of(known.association)
        return factor * float(self._settings.weight_fair_share)

    def _basic(self, nice: int) -> int:
        """``priority_p_set`` of priority/basic: one less than the lowest so far, less nice."""
        priority = self._lowest - 1 if self._lowest >= 2 else 1
        if nice <= 0 or priority > nice + 1:
            priority = (priority - nice) & _UINT32
        priority = max(priority, 1)
        self._lowest = min(self._lowest, (priority + nice) & _UINT32)
        return priority

    # What there is --------------------------------------------------------------------------------

    def priority_of(self, job: PricedJob, slurm_partition: str, now: int) -> int:
        """Give the priority that the queue has of a job in a slurm_partition; 0 if it is held.

        ``now`` changes nothing: priorities are those of the last tick or submission.
        """
        known = self._jobs[job.index]
        if known.held:
            return 0
        return known.among_several.get(slurm_partition, known.priority)

    def factors_of(self, job: PricedJob, slurm_partition: str) -> Factors:
        """Give what a job's priority was last made of, as ``sprio`` has it."""
        return self._jobs[job.index].factors[slurm_partition]
