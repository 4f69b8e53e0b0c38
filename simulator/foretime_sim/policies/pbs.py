"""PBS's own scheduling, as one site has set it up."""

from __future__ import annotations

from dataclasses import dataclass

from foretime_sim.policies.backfilling import Backfilling, Place
from foretime_sim.sites.pbs.site import PbsSite


@dataclass(frozen=True, slots=True)
class Pbs(Backfilling):
    """OpenPBS's scheduler, with the queues, hosts, limits and fair share of a site.

    A cycle follows each submission and each end; it goes through the queue in the site's order, not
    that of `Policy.order` (docs/pbs_model.md). A job whose scheduled time is below its requested
    time has it as its soft_walltime, and is extended as PBS does.

    Attributes
    ----------
    site
        How the server and its scheduler are set up; its machine is the one that jobs run on.

    Examples
    --------
    >>> from foretime_sim import Policy, generate, simulate
    >>> from foretime_sim.policies.pbs import Pbs
    >>> from foretime_sim.sites.pbs.site import PbsHost, PbsQueue, PbsSite
    >>> from foretime_sim.workloads.resource_requests import with_machine
    >>> hosts = tuple(PbsHost(f"n{number}", {"ncpus": 16}) for number in range(16))
    >>> site = PbsSite(hosts, (PbsQueue("workq"),))
    >>> workload = with_machine(generate("lublin2003", jobs=100, seed=1), site.machine)
    >>> len(simulate(workload, Policy(backfill=Pbs(site))))
    100
    """

    site: PbsSite

    @property
    def name(self) -> str:
        """The same for all sites."""
        return "pbs"

    @property
    def shown(self) -> dict[str, str | int]:
        """The release."""
        return {"pbs": self.site.version}

    def refusal(self, place: Place) -> str | None:
        """Say that it plans around reservations of hosts, not of processors."""
        if place is Place.RESERVATIONS:
            return (
                "backfilling is pbs: reservations of processors are not PBS's; put reservations of"
                " hosts into the site"
            )
        return None
