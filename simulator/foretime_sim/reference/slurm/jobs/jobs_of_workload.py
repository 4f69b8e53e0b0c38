"""Jobs of a workload as slurmctld takes them up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from foretime_estimators.arrays import MaskedInt64Array
from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.admission import After
from foretime_sim.reference.slurm.jobs.job import SlurmJob
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.labels import Labels
from foretime_sim.workloads.node_request import fit_request
from foretime_sim.workloads.resource_requests import job_resources
from foretime_sim.workloads.site_jobs import SiteJobs
from foretime_sim.workloads.workload import Workload


def whole_minutes(seconds: int) -> int:
    """Round a time limit up to minutes, as Slurm keeps it (`time_str2mins`); at least one.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.jobs_of_workload import whole_minutes
    >>> whole_minutes(61), whole_minutes(0)
    (120, 60)
    """
    return max(-(-seconds // 60), 1) * 60


def licenses_of(text: str | None) -> Mapping[str, int]:
    """Read ``--licenses``: ``name``, ``name:count``, several separated by commas.

    Examples
    --------
    >>> from foretime_sim.reference.slurm.jobs.jobs_of_workload import licenses_of
    >>> licenses_of("matlab:2,ansys")
    {'matlab': 2, 'ansys': 1}
    """
    found: dict[str, int] = {}
    for word in (text or "").split(","):
        name, _, count = word.strip().partition(":")
        if name:
            found[name] = found.get(name, 0) + int(count or 1)
    return found


def slurm_jobs(workload: Workload, site: SlurmSite, site_jobs: SiteJobs) -> list[SlurmJob]:
    """Make the job records of a workload, in its order.

    Raises
    ------
    InputError
        For the first job that could never run, or that names what the site has not.
    """
    jobs = []
    for index in range(len(workload)):
        asked = job_resources(workload, index)
        reservation = _label(site_jobs.reservations, index)
        processors = int(workload.processors[index])
        requested = int(workload.requested_time[index])
        where = f"{workload.name}: job {workload.job_id[index]}"
        try:
            request = fit_request(
                site.machine,
                replace(asked, reservation=reservation),
                processors,
                requested,
                site.reservations,
            )
        except InputError as error:
            raise InputError(f"{where} could never run on this machine: {error}") from error
        names = tuple(
            site.machine.slurm_partitions[choice.slurm_partition].name for choice in request.choices
        )
        licenses = licenses_of(_label(site_jobs.licenses, index))
        for name, count in licenses.items():
            if count > site.licenses.get(name, 0):
                raise InputError(
                    f"{where} asks for {count} of the license {name!r}, of which the site has"
                    f" {site.licenses.get(name, 0)}: add it to the site's licenses"
                )
        after = _number(site_jobs.after, index, -1)
        jobs.append(
            SlurmJob(
                index=index,
                request=request,
                slurm_partitions=names,
                submit_time=int(workload.submit_time[index]),
                runtime=int(workload.actual_runtime[index]),
                time_limit_s=whole_minutes(requested),
                user=_label(workload.users, index),
                account=_label(workload.projects, index),
                qos=_label(site_jobs.qos, index),
                nice=_number(site_jobs.nice, index, 0),
                site_factor=_number(site_jobs.site_factor, index, 0),
                time_min_s=_minutes(_number(site_jobs.time_min_s, index, 0)),
                begin_time=_number(site_jobs.begin_time, index, 0),
                reservation=reservation,
                licenses=licenses,
                array=_label(workload.array_ids, index),
                array_most_running=_number(site_jobs.array_most_running, index, 0),
                after=None if after < 0 else after,
                after_end=_number(site_jobs.after_what, index, After.END) == After.END,
                node_groups=tuple(choice.groups_by_size for choice in request.choices),
                memory_per_node_mib=tuple(
                    site.rules_of(name).default_memory_per_node_mib for name in names
                ),
            )
        )
    return jobs


def _minutes(seconds: int) -> int:
    return whole_minutes(seconds) if seconds else 0


def _label(column: Labels | None, job: int) -> str | None:
    return None if column is None else column.get(job)


def _number(column: MaskedInt64Array | None, job: int, missing: int) -> int:
    if column is None or bool(np.ma.getmaskarray(column)[job]):
        return missing
    return int(column.data[job])
