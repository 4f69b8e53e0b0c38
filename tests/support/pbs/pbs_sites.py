"""Small PBS sites and jobs for tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.reference.pbs.run import PbsRun, run_pbs
from foretime_sim.sites.pbs.scheduler import PbsScheduler
from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite


def site_of(
    hosts: int = 1, cpus: int = 4, scheduler: Mapping[str, Any] | None = None, **settings: Any
) -> PbsSite:
    """Give a site of hosts n0, n1, ... whose ends of jobs are not taken together."""
    settings.setdefault("queues", (PbsQueue("workq"),))
    told = {"opt_backfill_fuzzy_s": 1, **(scheduler or {})}
    names = [f"n{number}" for number in range(hosts)]
    return PbsSite(
        tuple(PbsHost(name, {"ncpus": cpus}) for name in names),
        scheduler=PbsScheduler(**told),
        **settings,
    )


def job(
    index: int, cpus: int, runtime_s: int, walltime_s: int | None = None, **rest: Any
) -> PbsJob:
    """Give a job of one chunk, submitted at its number of seconds."""
    rest.setdefault("submit_time", index)
    rest.setdefault("chunks", (Chunk(1, {"ncpus": cpus}),))
    return PbsJob(index, runtime_s=runtime_s, walltime_s=walltime_s or runtime_s, **rest)


def starts(site: PbsSite, *jobs: PbsJob) -> list[int | None]:
    """Run jobs; gives when each started."""
    run: PbsRun = run_pbs(site, jobs)
    return [run.start.get(each.index) for each in jobs]
