"""Forward runs of long queues that plan for few jobs, and less often for later hours."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from foretime_estimators.arrays import Int64Array
from foretime_sim import Policy, Snapshot, forward_runs
from foretime_sim.engine.stepwise import Engine
from foretime_sim.machines.machine import Machine, NodeGroup, SlurmPartition
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.slurm.parameters import SlurmParameters
from foretime_sim.sites.slurm.priority import SlurmPriority
from foretime_sim.sites.slurm.site import SlurmSite

NODES, CPUS = 20, 8


def site_of(**parameters: Any) -> SlurmSite:
    return SlurmSite(
        Machine((NodeGroup("n", NODES, CPUS),), (SlurmPartition("all", ("n",)),)),
        parameters=SlurmParameters(**parameters),
        priority=SlurmPriority(multifactor=False),
    )


def long_queue(site: SlurmSite, jobs: int, longest_s: int) -> tuple[Snapshot, Int64Array]:
    """Give some jobs that run and many that wait, and for how long each of them runs."""
    rng = np.random.default_rng(7)
    processors = np.floor(2 ** rng.uniform(0, np.log2(NODES * CPUS / 2), jobs)).astype(np.int64)
    requested = rng.integers(1, longest_s // 60 + 1, jobs) * 60
    runtime = np.maximum(1, requested * rng.beta(0.8, 2, jobs)).astype(np.int64)
    engine = Engine(site.machine.cpus, Policy(backfill=Slurm(site)))
    for asked in zip(processors.tolist(), runtime.tolist(), requested.tolist(), strict=True):
        engine.submit(0, *asked)
    engine.advance(40)
    snapshot = Snapshot.of(engine)
    return snapshot, runtime[snapshot.engine_index][None, :]


def starts(snapshot: Snapshot, slurm: Slurm, runtime: Int64Array) -> Int64Array:
    found = forward_runs(snapshot, Policy(backfill=slurm), runtime, threads=1)[0]
    pending: Int64Array = found[-len(snapshot.pending.submit_time) :]
    return pending


def test_thirty_jobs_are_planned_for_as_with_that_many_reserved() -> None:
    # Cycles are as far apart as ever: a twentieth of the run is less than the interval.
    snapshot, runtime = long_queue(site_of(bf_interval=600), 200, 1_800)
    many, few = (site_of(bf_interval=600, bf_job_part_count_reserve=most) for most in (1_000, 30))
    coarse = starts(snapshot, Slurm(many, coarse=True), runtime)
    assert coarse.max() < 20 * 600
    assert coarse.tolist() == starts(snapshot, Slurm(few), runtime).tolist()
    assert coarse.tolist() != starts(snapshot, Slurm(many), runtime).tolist()


@pytest.mark.parametrize(
    ("ends_at", "apart_s"),
    # Of 30 s a twentieth of 10 min; of four times as much from 40 min on.
    [(300, 30), (1_500, 75), (10_000, 120)],
)
def test_cycles_are_the_further_apart_the_later(ends_at: int, apart_s: int) -> None:
    site = site_of(bf_interval=30)
    small, most = CPUS, NODES * CPUS
    begun: set[int] = set()
    for later in range(0, 2 * apart_s, 5):
        engine = Engine(most, Policy(backfill=Slurm(site)))
        engine.submit(0, most - small, 90_000, 90_000)
        engine.submit(0, small, ends_at + later, 80_000)
        engine.advance(10)
        engine.submit(10, most, 600, 600)  # it waits for both
        engine.submit(10, small, 600, 600)  # it has room once the second ends
        engine.advance(40)
        snapshot = Snapshot.of(engine)
        runtime = np.array([[90_000, ends_at + later, 600, 600]])
        _, start = starts(snapshot, Slurm(site, coarse=True), runtime)
        assert 0 <= start - (ends_at + later) <= 1.05 * apart_s + 5
        begun.add(int(start))
    first, second = sorted(begun)[-2:]
    assert second - first == pytest.approx(apart_s, rel=0.06)


def test_a_long_queue_waits_about_as_long_as_in_full() -> None:
    site = site_of()
    snapshot, runtime = long_queue(site, 600, 14_400)
    full = starts(snapshot, Slurm(site), runtime) - snapshot.now
    coarse = starts(snapshot, Slurm(site, coarse=True), runtime) - snapshot.now
    assert coarse.mean() == pytest.approx(full.mean(), rel=0.1)
    assert np.abs(coarse - full).mean() < 0.25 * full.mean()
