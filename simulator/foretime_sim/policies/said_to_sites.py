"""What a log's jobs said to the site that they ran on, told to the site that a policy is of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.workloads.job_log import count_jobs
from foretime_sim.workloads.site_jobs import SiteJob
from foretime_sim.workloads.workload import Workload

_SHOWN = 5


def with_known_qos(
    workload: Workload, sites: Iterable[SlurmSite | PbsSite]
) -> tuple[Workload, tuple[str, ...]]:
    """Leave out the QOS that a site does not name: such jobs run under their default.

    Sites without any QOS pass over what jobs say of it, and so does PBS.

    Returns
    -------
    tuple
        The workload, and a note if there were such jobs.

    Examples
    --------
    >>> from foretime_sim import generate
    >>> from foretime_sim.policies.said_to_sites import with_known_qos
    >>> with_known_qos(generate("lublin2003", jobs=10, seed=1), ())[1]
    ()
    """
    said = workload.site_jobs
    if said is None or said.qos is None:
        return workload, ()
    named = [set(site.qos) for site in sites if isinstance(site, SlurmSite) and site.qos]
    unknown = [
        place for place, name in enumerate(said.qos.names) if any(name not in one for one in named)
    ]
    without = np.isin(said.qos.codes, unknown)
    if not without.any():
        return workload, ()
    shown = ", ".join(said.qos.names[place] for place in unknown[:_SHOWN])
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    codes = np.where(without, -1, said.qos.codes).astype(np.int32)
    note = (
        f"{count_jobs(int(without.sum()))} of QOS that the site does not name ({shown}{more}) run"
        " under their default."
    )
    left = replace(said, qos=replace(said.qos, codes=codes))
    return replace(workload, site_jobs=left), (note,)


def said_by(workload: Workload, policy: Policy, job: int) -> SiteJob | None:
    """Give what a job says to the policy's site; ``None`` where nobody listens.

    Examples
    --------
    >>> from foretime_sim import Policy, generate
    >>> from foretime_sim.policies.said_to_sites import said_by
    >>> said_by(generate("lublin2003", jobs=10, seed=1), Policy(), 0)
    """
    if workload.site_jobs is None or not isinstance(policy.backfill, Slurm):
        return None
    return workload.site_jobs.job(job)
