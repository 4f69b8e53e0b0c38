"""The native core schedules as the specification of PBS does, job for job."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from foretime_sim import Policy, simulate
from foretime_sim.engine.schedule import NEVER, ScheduleError, check
from foretime_sim.policies.pbs import Pbs
from foretime_sim.reference.pbs.jobs_of_workload import pbs_jobs
from foretime_sim.reference.pbs.run import PbsRun, run_pbs
from foretime_sim.sites.pbs.limits import PbsLimits
from foretime_sim.sites.pbs.site import PbsServer, PbsSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.resource_columns import ResourceRequests
from foretime_sim.workloads.workload import Workload
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pbs.pbs_sites import site_of
from tests.support.pbs.pbs_workloads import pbs_sites, pbs_workloads, workload_on


def check_same(workload: Workload, site: PbsSite, soft: np.ndarray | None) -> PbsRun:
    """Both schedule alike, on the same hosts, and never run the same jobs."""
    by_hand = run_pbs(site, pbs_jobs(workload, site, soft))
    native = simulate(workload, Policy(backfill=Pbs(site)), soft, allocation=True, check=True)
    starts = [
        by_hand.start[job] - workload.epoch_of_zero if job in by_hand.start else NEVER
        for job in range(len(workload))
    ]
    assert native.start_time.tolist() == starts
    assert list(native.never_ran) == [job for job, start in enumerate(starts) if start == NEVER]
    if native.allocation is None:
        assert not by_hand.start
        return by_hand
    had: list[dict[str, int]] = [{} for _ in range(len(workload))]
    columns = (native.allocation.job, native.allocation.node, native.allocation.cpus)
    for job, node, cpus in zip(*(column.tolist() for column in columns), strict=True):
        had[job][site.hosts[node].name] = cpus
    placed = [
        {name: has["ncpus"] for name, has in by_hand.placement.get(job, {}).items()}
        for job in range(len(workload))
    ]
    assert had == placed
    return by_hand


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_jobs_start_when_and_where_the_specification_starts_them(data: st.DataObject) -> None:
    site = data.draw(pbs_sites())
    workload, soft = data.draw(pbs_workloads(site))
    check_same(workload, site, soft)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_a_pool_is_scheduled_alike(data: st.DataObject) -> None:
    site = data.draw(pbs_sites(pool=True))
    workload, soft = data.draw(pbs_workloads(site))
    check_same(workload, site, soft)


def test_a_job_that_a_limit_refuses_never_runs() -> None:

    site = site_of(1, 4)
    limits = PbsLimits(max_queued={"u:PBS_GENERIC": 1})
    site = dataclasses.replace(site, server=dataclasses.replace(site.server, limits=limits))
    workload = workload_on(site, [(0, 4, 10, 10), (1, 4, 10, 10)])
    schedule = simulate(workload, Policy(backfill=Pbs(site)))
    assert schedule.start_time.tolist() == [0, NEVER]
    assert schedule.never_ran[1].startswith("a limit on what is queued")


@pytest.mark.parametrize("fair_share", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("fuzzy_s", [1, 60])
def test_busy_sites_with_top_jobs_are_scheduled_alike(
    fuzzy_s: int, depth: int, fair_share: bool
) -> None:
    settings = {
        "strict_ordering": True,
        "fair_share": fair_share,
        "unknown_shares": 1,
        "opt_backfill_fuzzy_s": fuzzy_s,
    }
    site = site_of(3, 4, settings, server=PbsServer(backfill_depth=depth))
    draws = np.random.default_rng(fuzzy_s + depth)
    jobs = 80
    rows = np.stack(
        [
            draws.integers(0, 12, jobs).cumsum(),
            draws.integers(1, 9, jobs),
            draws.integers(1, 300, jobs),
            draws.choice([100, 200, 400], jobs),  # so that many are alike
        ],
        axis=1,
    )
    users = Labels(draws.integers(0, 3, jobs).astype(np.int32), ("ann", "bob", "cid"))
    workload = workload_on(site, [tuple(row) for row in rows.tolist()], users=users)
    soft = np.maximum(workload.requested_time * draws.integers(2, 7, jobs) // 6, 1)
    assert check_same(workload, site, soft).top_jobs


def test_an_exclusive_job_has_its_chunk_and_its_host_to_itself() -> None:
    asked = ResourceRequests(exclusive=np.ma.MaskedArray([1, 0], mask=[False, True]))
    workload = workload_on(site_of(1, 4), [(0, 1, 10, 10), (0, 1, 10, 10)], requests=asked)
    schedule = simulate(workload, Policy(backfill=Pbs(site_of(1, 4))), check=True)
    assert schedule.allocation is not None
    assert schedule.allocation.cpus.tolist() == [1, 1]
    assert schedule.start_time.tolist() == [0, 10]
    both = dataclasses.replace(schedule, start_time=np.array([0, 5]), end_time=np.array([10, 15]))
    with pytest.raises(ScheduleError, match="node 0 of an exclusive job has another at 5 s"):
        check(workload, both, workload.requested_time, whole_nodes=False)
