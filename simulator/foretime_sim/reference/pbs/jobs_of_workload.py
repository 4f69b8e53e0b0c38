"""Jobs of a workload as PBS has them."""

from __future__ import annotations

from foretime_estimators.arrays import Int64Array

from foretime_sim.reference.pbs.job import Chunk, PbsJob
from foretime_sim.sites.pbs.site import PbsQueue, PbsSite
from foretime_sim.workloads.node_request import Request
from foretime_sim.workloads.resource_requests import fit_requests
from foretime_sim.workloads.workload import Workload

_MIB = 2**20


def pbs_jobs(
    workload: Workload, site: PbsSite, scheduled_time: Int64Array | None = None
) -> list[PbsJob]:
    """Give the jobs of a workload on a site's machine, with times in epoch seconds.

    Parameters
    ----------
    workload
        It has the site's machine.
    site
        What tells queues and defaults.
    scheduled_time
        Shape (jobs,), seconds: a soft_walltime where it is below the requested time.
    """
    fitted = fit_requests(workload)
    asked = [(*chunks_of(request, site), request) for request in fitted.requests]
    made = []
    for job in range(len(workload)):
        chunks, place, request = asked[fitted.request_of[job]]
        choice = request.choices[0]
        queue = site.queue(site.machine.slurm_partitions[choice.slurm_partition].name)
        requested = int(workload.requested_time[job])
        scheduled = requested if scheduled_time is None else int(scheduled_time[job])
        user = None if workload.users is None else workload.users.get(job)
        project = None if workload.projects is None else workload.projects.get(job)
        made.append(
            PbsJob(
                job,
                int(workload.submit_time[job]) + workload.epoch_of_zero,
                int(workload.actual_runtime[job]),
                chunks,
                user=user or "",
                project=project or "",
                queue=queue.name,
                walltime_s=requested,
                soft_walltime_s=_soft(scheduled, requested, site, queue),
                place=place,
                exclusive=choice.exclusive,
            )
        )
    return made


def _soft(scheduled: int, requested: int, site: PbsSite, queue: PbsQueue) -> int | None:
    """Give a job's own soft_walltime, or the default; none that is not below its walltime."""
    defaults = {**site.server.resources_default, **queue.resources_default}
    soft = scheduled if scheduled < requested else defaults.get("soft_walltime", requested)
    return soft if 0 < soft < requested else None


def chunks_of(request: Request, site: PbsSite) -> tuple[tuple[Chunk, ...], str]:
    """Give the select statement and the place of a request.

    Nodes are chunks on as many hosts, tasks without nodes chunks anywhere. Memory counts where
    hosts have any.
    """
    choice = request.choices[0]
    name = site.machine.slurm_partitions[choice.slurm_partition].name
    owned = {host.queue for host in site.hosts}
    mine = [host for host in site.hosts if host.queue == (name if name in owned else None)]
    counts_memory = any(host.resources.get("mem", 0) for host in mine)

    def chunk(count: int, tasks: int, of_node: bool) -> Chunk:
        memory = choice.memory_per_task_mib * tasks + of_node * request.memory_per_node_mib
        resources = {
            "ncpus": tasks * request.cpus_per_task,
            "mem": memory * _MIB if counts_memory else 0,
            "ngpus": of_node * request.gpus_per_node,
        }
        return Chunk(count, {what: amount for what, amount in resources.items() if amount})

    if request.nodes:
        least, more = divmod(request.tasks, request.nodes)
        found = [(more, least + 1), (request.nodes - more, least)]
        return tuple(chunk(count, tasks, True) for count, tasks in found if count), "scatter"
    if request.memory_per_node_mib or request.gpus_per_node:
        return (chunk(1, request.tasks, True),), "free"
    return (chunk(request.tasks, 1, False),), "free"
