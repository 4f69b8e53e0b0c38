"""The native priorities and their specification agree to the last bit, whatever happens."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from foretime_sim import _core
from foretime_sim.reference.slurm.priorities.priorities import NEVER, Priorities
from foretime_sim.reference.slurm.priorities.usage import RESET_PERIODS
from foretime_sim.sites.slurm.priority_tables import PriorityTables
from foretime_sim.sites.slurm.site import SlurmSite
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.slurm.slurm_priority_sites import (
    Job,
    job_tables,
    random_jobs,
    random_site,
)

EVENTS = ("submit", "hold", "eligible", "recompute", "start", "end", "tick", "tick", "wait", "look")


class Both:
    """The specification and the core, who see the same."""

    def __init__(self, site: SlurmSite, jobs: list[Job], now: int) -> None:
        self.site, self.jobs, self.now = site, jobs, now
        self.plain = Priorities(site, now)
        self.tables = PriorityTables.of(site)
        self.native = _core.SlurmPriorities(self.tables, job_tables(site, self.tables, jobs), now)
        self.looks = False  # which fixes effective usage until the next tick, as sshare does
        self.waiting: set[int] = set()
        self.running: set[int] = set()

    def submit(self, job: Job, *, held: bool) -> None:
        if job.index in self.waiting | self.running:
            return
        job.eligible_time = None if held else self.now
        self.plain.submitted(job, self.now, held=held)
        self.native.submitted(job.index, job.eligible_time, self.now, held)
        self.waiting.add(job.index)

    def act(self, event: str, job: Job, number: int) -> None:
        if event in ("submit", "hold"):
            self.submit(job, held=event == "hold")
        elif event == "wait":
            self.now += number
        elif event == "look":
            self.looks = not self.looks
        elif event == "tick":
            self.now = max(self.now, min(self.plain.next_tick, self.now + number))
            self.plain.tick(self.now)
            self.native.tick(self.now)
        elif event == "eligible" and job.index in self.waiting:
            job.eligible_time = self.now
            self.native.set_eligible(job.index, self.now)
        elif event == "recompute" and job.index in self.waiting:
            job.eligible_time = self.now
            self.native.set_eligible(job.index, self.now)
            self.plain.recompute(job, self.now)
            self.native.recompute(job.index, self.now)
        elif event == "start" and job.index in self.waiting:
            self.waiting.remove(job.index)
            self.running.add(job.index)
            tres = {**job.tres, "cpu": job.tres["cpu"] + number % 3}
            name = job.slurm_partitions[number % len(job.slurm_partitions)]
            place = self.site.machine.partition_index(name)
            self.plain.started(job, tres, self.now, name)
            self.native.started(job.index, place, self.tables.counts(tres), self.now)
        elif event == "end" and job.index in self.waiting | self.running:
            self.waiting.discard(job.index)
            self.running.discard(job.index)
            self.plain.ended(job, self.now)
            self.native.ended(job.index, self.now)

    def compare(self) -> None:
        due = None if self.plain.next_tick == NEVER else self.plain.next_tick
        assert self.native.next_tick == due
        for place, member in enumerate(self.plain.fair_share.members):
            assert self.native.raw_usage(place) == float(member.usage_raw)
            if self.site.associations[place].user and self.looks:
                assert self.native.factor_of(place) == self.plain.fair_share.factor_of(place)
        for job in self.jobs:
            if job.index not in self.waiting | self.running:
                continue
            for name in job.slurm_partitions:
                place = self.site.machine.partition_index(name)
                expected = self.plain.priority_of(job, name, self.now)
                assert self.native.priority_of(job.index, place) == expected, (job, name)


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_core_has_every_priority_of_the_specification(seed: int) -> None:
    rng = Random(seed)
    site = random_site(rng)
    jobs = random_jobs(rng, site)
    now = rng.randrange(2_000_000_000)
    if rng.random() < 0.5:
        site = replace(site, usage_at=max(now - rng.randrange(1000), 0))
    both = Both(site, jobs, now)
    both.compare()
    for _ in range(60):
        both.act(rng.choice(EVENTS), rng.choice(jobs), rng.randrange(500))
        both.compare()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_usage_is_forgotten_at_the_same_moments(seed: int) -> None:
    rng = Random(seed)
    period = rng.choice(RESET_PERIODS[2:])
    site = random_site(rng)
    settings = replace(site.priority, usage_reset_period=period, calc_period_s=36_000)
    both = Both(replace(site, priority=settings), [Job(0)], rng.randrange(2_000_000_000))
    for _ in range(100):
        both.now = min(both.plain.next_tick, both.now + 40_000_000)
        if rng.random() < 0.1:
            both.now += rng.randrange(3_000_000)
        both.plain.tick(both.now)
        both.native.tick(both.now)
        both.compare()
