"""What a site's own PBS costs: whole logs, deep queues, against its specification.

Ratios are within one run. The deep queue has a load at which hundreds of jobs wait.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from foretime_sim.engine.engine import simulate
from foretime_sim.models import lublin2003
from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.reference.pbs.jobs_of_workload import pbs_jobs
from foretime_sim.reference.pbs.run import run_pbs
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsServer, PbsSite
from foretime_sim.workloads.resource_requests import with_machine
from foretime_sim.workloads.workload import Workload

HOSTS, CPUS = 64, 16
JOBS = 20_000
SITES: dict[str, tuple[dict[str, Any], PbsServer, int]] = {
    "default": ({}, PbsServer(), 100_000),
    "strict": ({"strict_ordering": True}, PbsServer(), 20_000),
    "strict-depth-10": ({"strict_ordering": True}, PbsServer(backfill_depth=10), 20_000),
    "fair-share": ({"fair_share": True, "unknown_shares": 10}, PbsServer(), 20_000),
    "formula": ({}, PbsServer(job_sort_formula="10 * ncpus - walltime / 3600"), 100_000),
}
"""Settings of sched_config, the server, and the goal in jobs/s."""


def site(name: str) -> PbsSite:
    settings, server, _ = SITES[name]
    hosts = tuple(PbsHost(f"n{number}", {"ncpus": CPUS}) for number in range(HOSTS))
    return PbsSite(hosts, (PbsQueue("workq"),), server, PbsScheduler(**settings))


@cache
def workload(jobs: int, load: float) -> Workload:
    generated = lublin2003.generate(jobs, processors=HOSTS * CPUS, load=load)
    return with_machine(generated, site("default").machine)


@pytest.mark.parametrize("load", [0.8, 1.2], ids=["shallow", "deep"])
@pytest.mark.parametrize("name", SITES)
def test_pbs_site(benchmark: Any, name: str, load: float) -> None:
    benchmark.group = "sites under PBS"
    jobs, policy = workload(JOBS, load), Policy(backfill=Pbs(site(name)))
    schedule = benchmark.pedantic(simulate, args=(jobs, policy), rounds=2)
    benchmark.extra_info["jobs"] = len(jobs)
    benchmark.extra_info["deepest_queue"] = schedule.counters.deepest_queue
    benchmark.extra_info["goal_jobs_per_s"] = SITES[name][2]


@pytest.mark.parametrize("name", SITES)
def test_pbs_site_against_the_specification(benchmark: Any, name: str) -> None:
    """150 jobs in the native core and in plain Python."""
    benchmark.group = "sites under PBS, specification"
    of_site = site(name)
    jobs, policy = workload(JOBS, 1.2).head(150), Policy(backfill=Pbs(of_site))
    listed = pbs_jobs(replace(jobs, machine=of_site.machine), of_site)
    begin = time.perf_counter()
    run_pbs(of_site, listed)
    plain = time.perf_counter() - begin
    benchmark.pedantic(simulate, args=(jobs, policy), rounds=3)
    benchmark.extra_info["times_reference"] = round(plain / benchmark.stats.stats.min)


@pytest.mark.parametrize("name", ["default", "strict"])
def test_a_queue_ten_times_as_deep_costs_no_more_than_ten_times_as_much_a_job(
    benchmark: Any, name: str
) -> None:
    benchmark.group = "sites under PBS, depth"
    policy = Policy(backfill=Pbs(site(name)))
    few, many = workload(2_000, 1.5), workload(20_000, 1.5)

    def seconds_a_job(jobs: Workload) -> float:
        begin = time.process_time()
        simulate(jobs, policy)
        return (time.process_time() - begin) / len(jobs)

    short = min(seconds_a_job(few) for _ in range(3))
    benchmark.pedantic(seconds_a_job, args=(many,), rounds=1)
    benchmark.extra_info["ratio"] = round(seconds_a_job(many) / short, 1)
    benchmark.extra_info["goal_ratio"] = 10
