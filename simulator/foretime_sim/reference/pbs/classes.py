"""Equivalence classes: jobs that are alike to the scheduler share one verdict a cycle.

``create_resresv_sets`` and ``create_resresv_sets_resdef`` in job_info.cpp of OpenPBS. Alike are
jobs with the same select, place and walltime, and of those resources that sched_config names in its
line ``resources``; of one queue or one person only where such have limits. soft_walltime makes no
difference unless that line names it.
"""

from __future__ import annotations

from collections.abc import Hashable

from foretime_sim.reference.pbs.job import PbsJob
from foretime_sim.sites.pbs.site import PbsSite

_ALWAYS = {"cput", "walltime", "min_walltime", "max_walltime"}


def class_of(site: PbsSite, job: PbsJob) -> Hashable:
    """Give what is the same of all jobs that are alike."""
    queue = site.queue(job.queue)
    of_queue = (
        bool(queue.limits.max_run or queue.limits.max_run_res or queue.resources_available)
        or any(host.queue == queue.name for host in site.hosts)
        or queue.name.startswith(site.scheduler.dedicated_prefix)
    )
    whose = [site.server.limits, *([queue.limits] if of_queue else [])]
    limited = {name for limits in whose for name in limits.max_run_res}
    names = _ALWAYS | set(site.scheduler.resources) | limited
    people = {"u": job.user, "g": job.group, "p": job.project}
    return (
        queue.name if of_queue else None,
        tuple(
            name if any(limits.name_any(kind) for limits in whose) else None
            for kind, name in people.items()
        ),
        tuple(
            (
                chunk.count,
                tuple(sorted(chunk.resources.items())),
                tuple(sorted(chunk.labels.items())),
            )
            for chunk in job.chunks
        ),
        (job.place, job.exclusive),
        tuple(sorted((name, amount) for name, amount in job.list.items() if name in names)),
    )
