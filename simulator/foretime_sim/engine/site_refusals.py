"""What of a site no simulation has, whatever scheduler it is under."""

from __future__ import annotations

from foretime_estimators.jobs.errors import InputError

from foretime_sim.engine.native.pbs_core import check_pbs_site
from foretime_sim.sites.pbs.site import PbsSite
from foretime_sim.sites.slurm.refusals import unmodelled_refusal
from foretime_sim.sites.slurm.site import SlurmSite


def site_refusals(site: SlurmSite | PbsSite) -> list[str]:
    """Say what of a site the engine has not, and what to change; empty if it can be simulated.

    Examples
    --------
    >>> from foretime_sim.engine.site_refusals import site_refusals
    >>> from foretime_sim.machines.machine import Machine
    >>> from foretime_sim.sites.slurm.site import SlurmSite
    >>> site_refusals(SlurmSite(Machine.flat(64)))
    []
    """
    if isinstance(site, SlurmSite):
        refusal = unmodelled_refusal(site)
        return [] if refusal is None else [refusal]
    try:
        check_pbs_site(site)
    except InputError as error:
        return [str(error)]
    return []
