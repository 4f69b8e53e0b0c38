"""Workloads on the machines of sites: a policy of a site schedules on that site's nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from foretime_estimators.jobs.errors import InputError

from foretime_sim.policies.pbs import Pbs
from foretime_sim.policies.policy import Policy
from foretime_sim.policies.slurm import Slurm
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.limits import Limits
from foretime_sim.sites.slurm.releases import release_text
from foretime_sim.sites.slurm.scheduler_words import scheduler_parameters
from foretime_sim.sites.slurm.site import SlurmSite
from foretime_sim.sites.slurm.uncounted import notes_on
from foretime_sim.workloads.resource_requests import fit_requests, left_out_note, with_machine
from foretime_sim.workloads.workload import Workload


def site_of(policy: Policy) -> SlurmSite | PbsSite | None:
    """Give the site that a policy schedules; ``None`` for a policy of no site."""
    return policy.backfill.site if isinstance(policy.backfill, Slurm | Pbs) else None


def on_machine_of(policy: Policy, workload: Workload) -> Workload:
    """Put a workload on the machine of a policy's site; without a site it stays where it is.

    Raises
    ------
    InputError
        If a job could never run there, or the workload is on another machine.

    Examples
    --------
    >>> from foretime_sim import Policy, generate
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.policies.site_machine import on_machine_of
    >>> from foretime_sim.policies.slurm import Slurm
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> policy = Policy(backfill=Slurm(SlurmSite(Machine.flat(300))))
    >>> on_machine_of(policy, generate("lublin2003", jobs=10, seed=1)).machine_processors
    300
    """
    site = site_of(policy)
    if site is None or workload.machine == site.machine:
        return workload
    if workload.machine is not None:
        raise InputError(
            f"{workload.name}: it is on another machine than the site's: give the site alone"
        )
    return with_machine(workload, site.machine)


def on_one_pool(workload: Workload) -> Workload:
    """Give the workload with jobs asking for processors alone, for a pool in the place of a site.

    A pool has no partitions, nodes, GPUs or features to be asked for. On a machine that it has
    already the workload stays as it is.
    """
    return workload if workload.machine is not None else replace(workload, requests=None)


def that_fit_on_all(sites: Sequence[SlurmSite | PbsSite], workload: Workload) -> Workload:
    """Leave out the jobs that could never run on the machine of one of the sites.

    So every policy has the same jobs; the workload's notes say how many were left out, and why.

    Raises
    ------
    InputError
        If no job is left.
    """
    for number, site in enumerate(sites, 1):
        machine = site.machine
        fitted = fit_requests(replace(workload, machine=machine, machine_processors=machine.cpus))
        if fitted.reasons:
            kept = fitted.request_of >= 0
            if not kept.any():
                reason = next(iter(fitted.reasons.values()))
                which = "this site" if len(sites) == 1 else f"site {number} of {len(sites)}"
                raise InputError(f"{workload.name}: no job can run on {which}: {reason}")
            notes = (*workload.notes, left_out_note(fitted.limits))
            workload = replace(workload.take(np.flatnonzero(kept)), notes=notes)
    return workload


def assumptions(site: SlurmSite | PbsSite) -> tuple[str, ...]:
    """Say in sentences which scheduler a run of a site stands for, and what of it is left out.

    Examples
    --------
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.policies.site_machine import assumptions
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> assumptions(SlurmSite(Machine.flat(64)))  # doctest: +ELLIPSIS, +NORMALIZE_WHITESPACE
    ('Scheduled as by Slurm 26.05: first submitted first, backfill every 30 s.',
     'SchedulerParameters: default_queue_depth=100, bf_interval=30, bf_resolution=60, ...')
    """
    if isinstance(site, PbsSite):
        return _assumptions_of_pbs(site)
    parameters = site.parameters
    loops = f"backfill every {parameters.bf_interval} s" if parameters.backfill else "no backfill"
    weighed = _weighed(site)
    order = f"priorities by {', '.join(weighed)}" if weighed else "first submitted first"
    limits = "limits of QOS and associations, " if _has_limits(site) else ""
    said = [
        f"Scheduled as by Slurm {release_text(site.version)}: {order}, {limits}{loops}.",
        f"SchedulerParameters: {scheduler_parameters(parameters)}.",
    ]
    said += notes_on(site)
    if site.enforced:
        said.append("Jobs whose user and account the site's associations do not name are refused.")
    elif site.associations and weighed:
        said.append(
            "Jobs whose user and account the site's associations do not name have no fair share."
        )
    if _ends_jobs(site):
        said.append("Running jobs are ended when the minutes of a limit are used up.")
    if site.not_modelled:
        words = "; ".join(each.removesuffix(".") for each in site.not_modelled)
        said.append(f"Of the site is left out: {words}.")
    return tuple(said)


def _weighed(site: SlurmSite) -> list[str]:
    """Name what a site's priorities go by."""
    priority = site.priority
    weights = {
        "age": priority.weight_age if site.associations else 0,
        "association": priority.weight_assoc,
        "fair share": priority.weight_fair_share,
        "job size": priority.weight_job_size,
        "partition": priority.weight_partition,
        "QOS": priority.weight_qos,
        "TRES": any(priority.weight_tres.values()),
    }
    return [name for name, weight in weights.items() if weight and priority.multifactor]


def _limits_of(site: SlurmSite) -> list[Limits]:
    return [
        *(qos.limits for qos in site.qos.values()),
        *(each.limits for each in site.associations),
    ]


def _has_limits(site: SlurmSite) -> bool:
    counts = not site.enforced.isdisjoint({"limits", "safe", "all"})
    return counts and any(limits != Limits() for limits in _limits_of(site))


def _ends_jobs(site: SlurmSite) -> bool:
    """Whether Slurm would end running jobs for what their groups have used."""
    if not _has_limits(site) or not site.enforced.isdisjoint({"safe", "all"}):
        return False
    return any(
        limits.grp_tres_mins or limits.max_tres_mins_per_job or limits.grp_wall_s is not None
        for limits in _limits_of(site)
    )


def _assumptions_of_pbs(site: PbsSite) -> tuple[str, ...]:
    settings, server = site.scheduler, site.server
    orders = ["job_sort_formula"] if server.job_sort_formula else []
    orders += ["fair share"] if settings.fair_share else []
    orders += [key for key, _ in settings.job_sort_key]
    by = ", then ".join([*orders, "first submitted first"])
    depth = 1 if server.backfill_depth is None else server.backfill_depth
    planned = f"top jobs up to a depth of {depth}" if settings.strict_ordering else "no top jobs"
    said = [f"Scheduled as by OpenPBS {site.version}: {by}; {planned}."]
    if site.not_modelled:
        said.append(f"Of the site is left out: {'; '.join(site.not_modelled)}.")
    return tuple(said)
